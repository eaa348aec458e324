"""How many bytes each published system's requests and answers have, as JSON and as binary: docs/clients.md's table.

    python -m benchmarks.payloads          prints it
    python -m benchmarks.payloads --write  puts it into docs/clients.md

Nothing runs: names, types and shapes come from each system's config.pbtxt, the requests are those that the client
builds, and an answer is counted as the same tensors in the same two formats. The values are drawn with a fixed seed, as
many digits long as such values are.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from tritonclient.utils import triton_to_np_dtype

from tritonstack.client.body import Array, PayloadFormat, encode
from tritonstack.models.model_config import ModelConfig, Tensor, read_config
from tritonstack.paths import REPOSITORY

PAGE = REPOSITORY / "docs" / "clients.md"
START, END = "<!-- payload bytes: python -m benchmarks.payloads --write -->", "<!-- end of payload bytes -->"
JPEG_BYTES = 576_464
"""The photograph of the AWS walkthroughs, shiba_inu_dog.jpg."""
SENTENCE_TOKENS = 16
VOCABULARY = 30_000


@dataclass(frozen=True, kw_only=True)
class Case:
    """One question to one system.

    Attributes:
        title: the row's first words.
        folder: the model folder.
        outputs: those that are asked for; all where none is named.
        length: of what may have any length in the request: a JPEG's bytes, a text's tokens.
        answer_length: of what may have any length in the answer.
    """

    title: str
    folder: str
    outputs: tuple[str, ...] = ()
    length: int = SENTENCE_TOKENS
    answer_length: int = SENTENCE_TOKENS


@dataclass(frozen=True, kw_only=True)
class Row:
    """One case's bytes: request and answer, each in both formats."""

    case: Case
    request_json: int
    request_binary: int
    answer_json: int
    answer_binary: int


CASES = (
    Case(title="ResNet50, 224 x 224 pixels", folder="resnet50-onnx"),
    Case(title="RoBERTa large, 512 tokens, every output", folder="roberta-large-onnx", answer_length=512),
    Case(title="RoBERTa large, the pooled output alone", folder="roberta-large-onnx", outputs=("pooled_output",)),
    Case(title="BERT in TensorRT, 128 tokens, every output", folder="bert-tensorrt"),
    Case(title="BERT in TensorRT, the pooled output alone", folder="bert-tensorrt", outputs=("pooled_output",)),
    Case(title=f"Inception ensemble, a JPEG of {JPEG_BYTES:,} bytes", folder="inception-ensemble", length=JPEG_BYTES),
    Case(title=f"T5, {SENTENCE_TOKENS} tokens", folder="t5-python"),
    Case(title="BERT large, 512 tokens, every output", folder="bert-large"),
    Case(title="BERT large, the pooled output alone", folder="bert-large", outputs=("pooled_output",)),
)


@dataclass
class Draw:
    """Values as such tensors have them, always the same."""

    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def tensor(self, tensor: Tensor, *, max_batch_size: int, length: int) -> Array:
        """A batch of one of a configuration's tensor."""
        batch = (1,) if max_batch_size > 0 else ()
        shape = (*batch, *(length if side == -1 else side for side in tensor.dims))
        dtype = np.dtype(triton_to_np_dtype(tensor.data_type))
        if dtype == np.uint8:
            return self.random.integers(0, 256, shape, dtype=np.uint8)
        if dtype.kind == "i":
            values = self.random.integers(0, VOCABULARY, shape) if "mask" not in tensor.name else np.ones(shape)
            return values.astype(dtype)
        return self.random.standard_normal(shape).astype(dtype)


def rows(cases: Sequence[Case] = CASES) -> list[Row]:
    """Every case's bytes."""
    return [_row(case) for case in cases]


def markdown(found: Sequence[Row]) -> str:
    """The table as the page has it."""
    lines = [
        "| question | request: JSON | binary | times | answer: JSON | binary | times |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {row.case.title} | {_pair(row.request_json, row.request_binary)} "
        f"| {_pair(row.answer_json, row.answer_binary)} |"
        for row in found
    ]
    return "\n".join(lines)


def page_with(table: str, page: str) -> str:
    """The page with that table between its marks. Raises ValueError where they are missing."""
    before, start, rest = page.partition(START)
    _, end, after = rest.partition(END)
    if not start or not end:
        raise ValueError(f"no {START} … {END} on the page")
    return f"{before}{START}\n{table}\n{END}{after}"


def main(arguments: Sequence[str]) -> int:
    """Print the table, or write it into the page."""
    table = markdown(rows())
    if list(arguments) == ["--write"]:
        text = page_with(table, PAGE.read_text())
        temporary = PAGE.with_name(f"{PAGE.name}.new")
        temporary.write_text(text)
        temporary.replace(PAGE)
    else:
        sys.stdout.write(f"{table}\n")
    return 0


def _row(case: Case) -> Row:
    config = _config(case.folder)
    draw = Draw()
    batch = config.max_batch_size
    inputs = {one.name: draw.tensor(one, max_batch_size=batch, length=case.length) for one in config.inputs}
    wanted = [one for one in config.outputs if not case.outputs or one.name in case.outputs]
    outputs = {one.name: draw.tensor(one, max_batch_size=batch, length=case.answer_length) for one in wanted}
    return Row(
        case=case,
        request_json=_bytes(inputs, "json", case.outputs),
        request_binary=_bytes(inputs, "binary", case.outputs),
        answer_json=_bytes(outputs, "json"),
        answer_binary=_bytes(outputs, "binary"),
    )


def _bytes(arrays: dict[str, Array], payload_format: PayloadFormat, outputs: Sequence[str] = ()) -> int:
    return len(encode(arrays, outputs=outputs, payload_format=payload_format).content)


def _config(folder: str) -> ModelConfig:
    """The configuration of the model that requests reach, which is called like its folder."""
    return read_config((REPOSITORY / "model_repos" / folder / folder / "config.pbtxt").read_text())


def _pair(json: int, binary: int) -> str:
    return f"{json:,} | {binary:,} | {json / binary:.1f}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
