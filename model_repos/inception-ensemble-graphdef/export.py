"""Build Inception V3 as a frozen GraphDef from the weights that ``export_weights.py`` wrote, and prove it.

`tritonstack build` runs this in the environment ``tensorflow``, which has no PyTorch: the proof compares TensorFlow's
outputs with those of PyTorch for the same pictures.
"""

import sys
from pathlib import Path

from network import probabilities
from tensors import GRAPH, INPUT, PROBABILITIES

from _exporters import cases, graphdef, script

MODEL = Path("inception-graphdef/1/model.graphdef")
TOOLS = ("numpy", "tensorflow-cpu")


def export(arguments: script.Arguments) -> None:
    """Write the GraphDef and prove it on every case of PyTorch."""
    weights = cases.read_weights(arguments.target)
    path = arguments.target / MODEL
    graphdef.export(lambda inputs: {PROBABILITIES: probabilities(inputs[INPUT], weights)}, GRAPH, path)
    solved = cases.read_cases(arguments.target)
    difference = graphdef.prove(path, GRAPH, solved, tolerance=arguments.options.tolerance)
    script.write_report(arguments, {"largest_difference": difference}, script.versions(TOOLS))


if __name__ == "__main__":
    sys.exit(script.run(export))
