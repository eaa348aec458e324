"""Build Inception V3 as a frozen GraphDef out of the weights that ``export_weights.py`` left, and prove it.

`tritonstack build` runs this in the environment ``tensorflow``, which has no PyTorch: the proof holds TensorFlow's
answers against those that PyTorch gave for the same pictures.
"""

import sys
from pathlib import Path

from network import probabilities
from tensors import GRAPH, INPUT, PROBABILITIES

from tritonstack.exporters import graphdef, handoff, report, script
from tritonstack.exporters.arguments import Arguments

MODEL = Path("inception-graphdef/1/model.graphdef")
TOOLS = ("numpy", "tensorflow-cpu")


def export(arguments: Arguments) -> None:
    """Write the GraphDef and prove it on every case that PyTorch answered."""
    weights = handoff.read_weights(arguments.target)
    path = arguments.target / MODEL
    graphdef.export(lambda inputs: {PROBABILITIES: probabilities(inputs[INPUT], weights)}, GRAPH, path)
    cases = handoff.read_cases(arguments.target)
    difference = graphdef.prove(path, GRAPH, cases, tolerance=arguments.options.tolerance)
    report.write(arguments, {"largest_difference": difference}, report.versions(TOOLS))


if __name__ == "__main__":
    sys.exit(script.run(export))
