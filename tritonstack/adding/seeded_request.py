"""Sample requests of seeded values: lengths of free axes, values by type, the body's size."""

from __future__ import annotations

import gzip
import json
import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonstack.aws.sagemaker_rules import MAX_PAYLOAD_BYTES
from tritonstack.errors import InputError, Problem
from tritonstack.paths import write_bytes
from tritonstack.untrusted.gzip_reading import is_compressed

SHORT, SIDE = 8, 64
"""Usual lengths of free axes: of sequences, and of the sides of images (four axes or more)."""
IMAGE_AXES = 4
SHORTER = (32, 16, 8, 4, 2, 1)
"""Lengths for a request that would be too large with the usual ones."""
LONGER = (32, 128, 512, 2048, 16384)
"""Lengths for models that do not take the usual ones, such as a convolution over more, or audio."""
MANY = 10_000
"""Tensors with more numbers get fewer digits, so that the file stays readable and small."""

_WORDS = ("seven", "small", "boats", "sail", "slowly", "past", "the", "harbour")

Axes = Sequence[int | None]
"""A tensor's shape; None or -1 where a length is free."""


@dataclass(frozen=True, kw_only=True)
class FreeLengths:
    """Lengths of a request's free axes."""

    # Of the first axis: a batch of one row. 1 where it is no batch either: most models take it, and a model that
    # searches each of many rows takes minutes and gigabytes.
    first: int = 1
    others: int | None = None  # None: the usual ones

    def shape(self, axes: Iterable[int | None]) -> list[int]:
        """A tensor's shape in a request."""
        lengths = [None if axis == -1 else axis for axis in axes]
        usual = SIDE if len(lengths) >= IMAGE_AXES else SHORT
        free = usual if self.others is None else self.others
        return [
            length if length is not None else self.first if index == 0 else free for index, length in enumerate(lengths)
        ]


@dataclass(frozen=True, kw_only=True)
class RequestTensor:
    """An input as a request has it: its axes are those of one row, with the batch's first where there is one."""

    name: str
    datatype: str
    axes: Axes


_IN_JSON = {"BYTES": 27, "BOOL": 6, "UINT8": 4, "FP16": 4, "FP32": 4, "FP64": 4}
_IN_BINARY = {"BYTES": 27, "BOOL": 1, "INT8": 1, "UINT8": 1, "INT16": 2, "UINT16": 2, "FP16": 2} | dict.fromkeys(
    ("INT64", "UINT64", "FP64"), 8
)
"""The most bytes of a seeded value, as the sample's file and as a binary body have it."""
_HEADER_BYTES = 1024
"""The most bytes that a body says about a tensor beside its values."""


def attempts(tensors: Sequence[RequestTensor]) -> tuple[FreeLengths, ...]:
    """Lengths to try one after the other until a model takes them; every request is below SageMaker's limit.

    Raises :class:`InputError` where no request is, for the fixed lengths alone are too many.
    """
    shorter = (FreeLengths(), *(FreeLengths(others=length) for length in SHORTER))
    usual = next((each for each in shorter if request_bytes(tensors, each) <= MAX_PAYLOAD_BYTES), None)
    if usual is None:  # a sample that is too large as JSON is sent as a binary body
        binary = (each for each in shorter if _size(tensors, each, _IN_BINARY) <= MAX_PAYLOAD_BYTES)
        usual = next(binary, None)
    if usual is None:
        raise InputError([_too_large(tensors)])
    longer = (each for each in _longer() if request_bytes(tensors, each) <= MAX_PAYLOAD_BYTES)
    different: dict[str, FreeLengths] = {}
    for lengths in (usual, *longer):
        different.setdefault(str([lengths.shape(each.axes) for each in tensors]), lengths)
    return tuple(different.values())


def _longer() -> Iterator[FreeLengths]:
    """First the axes behind the first one, which mostly is a batch; then all."""
    yield from (FreeLengths(others=length) for length in LONGER)
    yield FreeLengths(first=SHORT)
    yield from (FreeLengths(first=length, others=length) for length in LONGER)


def request_bytes(tensors: Sequence[RequestTensor], lengths: FreeLengths) -> int:
    """The most bytes that a request of these lengths has, as JSON or as a binary body."""
    return max(_size(tensors, lengths, _IN_JSON), _size(tensors, lengths, _IN_BINARY))


def _size(tensors: Sequence[RequestTensor], lengths: FreeLengths, bytes_of_value: Mapping[str, int]) -> int:
    return sum(
        _HEADER_BYTES + math.prod(lengths.shape(each.axes)) * bytes_of_value.get(each.datatype, 4) for each in tensors
    )


def _too_large(tensors: Sequence[RequestTensor]) -> Problem:
    least = FreeLengths(others=1)
    largest = max(tensors, key=lambda each: _size([each], least, _IN_BINARY))
    size = _size(tensors, least, _IN_BINARY)
    shape = least.shape(largest.axes)
    return Problem(
        field=largest.name,
        found=f"{largest.datatype} {shape}: the smallest request has {size:,} bytes",
        allowed=f"at most {MAX_PAYLOAD_BYTES:,} bytes, the largest body that SageMaker takes",
        advice="export the model with a smaller or a free shape, with UINT8 or FP16 inputs, or with encoded images",
    )


def seeded_tensor(
    name: str, datatype: str, shape: Sequence[int], *, values: Sequence[Any] | None = None
) -> dict[str, Any]:
    """A tensor of KServe's JSON form; the same for the same name, type and shape. ``values``: the only ones.

    Floating-point values lie between 0 and 1, as of scaled images and features. Integers are 0 or 1, which every
    vocabulary and every mask has; only UINT8 has its whole range, as of pixels.
    """
    draw = random.Random(f"{name} {datatype} {list(shape)}")  # noqa: S311  (no secret)
    count = math.prod(shape)
    digits = 1 if count > MANY else 3
    if values:
        data: list[Any] = draw.choices(values, k=count)
    elif datatype == "BYTES":
        data = [" ".join(draw.choices(_WORDS, k=3)) for _ in range(count)]
    elif datatype == "BOOL":
        data = [draw.random() < 0.5 for _ in range(count)]
    elif datatype.startswith("FP"):
        data = [round(draw.random(), digits) for _ in range(count)]
    else:
        data = [draw.randint(0, 255 if datatype == "UINT8" else 1) for _ in range(count)]
    return {"name": name, "datatype": datatype, "shape": list(shape), "data": data}


def body_text(key: str, tensors: Iterable[Mapping[str, Any]]) -> str:
    """A file in KServe's JSON form, a tensor a line; ``key``: ``inputs`` or ``outputs``."""
    lines = ",\n".join(
        json.dumps(dict(tensor), ensure_ascii=False, separators=(",", ":") if len(tensor["data"]) > MANY else None)
        for tensor in tensors
    )
    return f'{{"{key}": [\n{lines}\n]}}\n'


COMPACT = 100_000
"""A sample's file with more bytes is stored compressed: values of few digits shrink to a fourth and less."""


def write_body(path: Path, text: str) -> None:
    """Write a file in KServe's JSON form; one whose name ends in ``.gz`` compressed, the same bytes every time."""
    content = text.encode()
    write_bytes(path, gzip.compress(content, mtime=0) if is_compressed(path) else content)
