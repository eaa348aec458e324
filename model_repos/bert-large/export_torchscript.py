"""Export BERT large to TorchScript and prove it. `tritonstack build` runs this in the environment ``torch``."""

import sys
from pathlib import Path

from _exporters import encoders, script
from _exporters.script import Arguments, Graph, Tensor

MODEL = "bert-large/1/model.pt"
TEXT = Path(__file__).with_name("sample") / "text.txt"


def graph_of(*, length: int, classes: int) -> Graph:
    """The tensors of config.pbtxt: TorchScript has no names, no shapes and no operator set."""
    return Graph(
        opset=0,
        inputs=tuple(Tensor(name, "INT32", ("batch", length)) for name in ("token_ids", "attn_mask")),
        outputs=(Tensor("logits", "FP32", ("batch", classes)),),
    )


def work(arguments: Arguments) -> None:
    options = arguments.options.options
    graph = graph_of(length=options["length"], classes=options["classes"])
    prepared = encoders.prepare(arguments, encoders.BERT, graph, text=TEXT)
    prepared.export(arguments, MODEL, encoders.NamedEncoder(prepared.module))


if __name__ == "__main__":
    sys.exit(script.run(work))
