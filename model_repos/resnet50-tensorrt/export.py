"""Export the ONNX graph of ResNet-50 that its TensorRT engine is built from, and prove it. Runs in ``torch``."""

import sys
from functools import partial
from pathlib import Path

from tritonstack.exporters import answers, onnx_graph, proof, report, resnet, script
from tritonstack.exporters.arguments import Arguments
from tritonstack.exporters.modules import answer_of

MODEL = Path("resnet50-tensorrt/1/model.onnx")


def work(arguments: Arguments) -> None:
    options, target = arguments.options, arguments.target
    graph = options.the_graph
    loaded = resnet.load(arguments)
    module = resnet.adapted(loaded.model, graph)
    source = partial(answer_of, module, graph)

    onnx_graph.export(module, graph, target / MODEL, resnet.example(graph))
    batches = proof.batches(options.max_batch_size)
    difference = proof.prove_onnx(
        target / MODEL,
        source,
        graph,
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
