"""Export BERT large to TorchScript and prove it. `tritonstack build` runs this in the environment ``torch``."""

import sys
from pathlib import Path

from tritonstack.exporters import encoders, proof, report, script, torchscript
from tritonstack.exporters.arguments import Arguments
from tritonstack.exporters.graph import Graph, Tensor

MODEL = Path("bert-large/1/model.pt")
TEXT = Path(__file__).with_name("sample") / "text.txt"


def graph_of(*, length: int, width: int) -> Graph:
    """The tensors of config.pbtxt: TorchScript itself has no names and no shapes. No operator set either."""
    return Graph(
        opset=0,
        inputs=tuple(Tensor(name, "INT32", ("batch", length)) for name in ("token_ids", "attn_mask")),
        outputs=(
            Tensor("output", "FP32", ("batch", length, width)),
            Tensor("pooled_output", "FP32", ("batch", width)),
        ),
    )


def work(arguments: Arguments) -> None:
    options, path = arguments.options, arguments.target / MODEL
    graph = graph_of(length=options.options["length"], width=options.options["config"]["hidden_size"])
    prepared = encoders.prepare(arguments, encoders.BERT, graph, text=TEXT)
    torchscript.export(encoders.NamedEncoder(prepared.module), graph, path, prepared.example)
    batches = proof.batches(options)
    difference = proof.prove_torchscript(
        path,
        prepared.reference,
        graph,
        batches=batches,
        tolerance=options.tolerance,
        sample=prepared.sample,
        draws=prepared.draws,
        seed=options.seed,
    )
    figures = {"largest_difference": difference, "largest_proved_batch": batches[-1]}
    report.write(arguments, figures, inputs=prepared.loaded.inputs)


if __name__ == "__main__":
    sys.exit(script.run(work))
