"""Export RoBERTa large to ONNX and prove it. `tritonstack build` runs this in the environment ``torch``."""

import sys
from pathlib import Path

from tritonstack.exporters import encoders, onnx_graph, proof, report, script
from tritonstack.exporters.arguments import Arguments

MODEL = Path("roberta-large-onnx/1/model.onnx")
TEXT = Path(__file__).with_name("sample") / "text.txt"


def work(arguments: Arguments) -> None:
    options, path = arguments.options, arguments.target / MODEL
    prepared = encoders.prepare(arguments, encoders.ROBERTA, options.the_graph, text=TEXT)
    onnx_graph.export(prepared.module, prepared.graph, path, prepared.example)
    batches = proof.batches(options.max_batch_size)
    difference = proof.prove_onnx(
        path,
        prepared.reference,
        prepared.graph,
        batches=batches,
        tolerance=options.tolerance,
        sample=prepared.sample,
        draws=prepared.draws,
        axes={"sequence": (16, 200)},  # the sample is proved at the length that requests have
        seed=options.seed,
    )
    figures = {"largest_difference": difference, "largest_proved_batch": batches[-1]}
    report.write(arguments, figures, inputs=prepared.loaded.inputs)


if __name__ == "__main__":
    sys.exit(script.run(work))
