"""Export ResNet-50 to TorchScript and prove it. `tritonstack build` runs this in the environment ``torch``."""

import sys
from functools import partial
from pathlib import Path

from tritonstack.exporters import answers, proof, report, resnet, script, torchscript
from tritonstack.exporters.arguments import Arguments
from tritonstack.exporters.modules import answer_of

MODEL = Path("resnet50-torchscript/1/model.pt")
# TorchScript has no names: Triton's pytorch backend takes a tensor's position from the end of its name.
GRAPH = resnet.graph_of("INPUT__0", "OUTPUT__0")


def work(arguments: Arguments) -> None:
    options, target = arguments.options, arguments.target
    loaded = resnet.load(arguments)
    module = resnet.adapted(loaded.model, GRAPH)
    source = partial(answer_of, module, GRAPH)

    torchscript.export(module, GRAPH, target / MODEL, resnet.example(GRAPH))
    batches = proof.batches(options.max_batch_size)
    difference = proof.prove_torchscript(
        target / MODEL,
        source,
        GRAPH,
        batches=batches,
        tolerance=options.tolerance,
        sample=arguments.the_sample,
        seed=options.seed,
    )
    answers.write(target / "sample/answer.json", source(arguments.the_sample))
    resnet.write_labels(loaded.model, target / "labels.txt")
    figures = {"largest_difference": difference, "largest_proved_batch": batches[-1]}
    report.write(arguments, figures, inputs=loaded.inputs)


if __name__ == "__main__":
    sys.exit(script.run(work))
