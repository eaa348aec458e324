"""Export BERT large to TorchScript and prove it. `tritonstack build` runs this in the environment ``torch``."""

import sys
from pathlib import Path

from tritonstack.exporters import encoders, script
from tritonstack.exporters.cases import batches
from tritonstack.exporters.script import Arguments, Graph, Tensor
from tritonstack.exporters.torch_export import export_torchscript, prove_torchscript

MODEL = Path("bert-large/1/model.pt")
TEXT = Path(__file__).with_name("sample") / "text.txt"


def graph_of(*, length: int, width: int) -> Graph:
    """The tensors of config.pbtxt: TorchScript has no names, no shapes and no operator set."""
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
    export_torchscript(encoders.NamedEncoder(prepared.module), graph, path, prepared.example)
    proved = batches(options)
    difference = prove_torchscript(
        path,
        prepared.reference,
        graph,
        batches=proved,
        tolerance=options.tolerance,
        sample=prepared.sample,
        draws=prepared.draws,
        seed=options.seed,
    )
    figures = {"largest_difference": difference, "largest_proved_batch": proved[-1]}
    script.write_report(arguments, figures, inputs=prepared.loaded.inputs)


if __name__ == "__main__":
    sys.exit(script.run(work))
