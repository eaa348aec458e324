"""A request of seeded values for a model that nobody wrote one for: within the types' ranges, short where free."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

SHORT, SIDE = 8, 64
"""Lengths of free axes: of sequences, and of the sides of images (four axes or more)."""
IMAGE_AXES = 4
MANY = 10_000
"""Tensors with more numbers get fewer digits, so that the file stays readable and small."""

_WORDS = ("seven", "small", "boats", "sail", "slowly", "past", "the", "harbour")


def lengths(shape: Iterable[int | None], *, rows: int = 0) -> list[int]:
    """A tensor's shape in a request: short lengths where they are free, ``rows`` for the first axis of a batch.

    ``shape``: None or -1 where a length is free. ``rows``: 0 where the first axis is an axis like the others.
    """
    axes = [None if axis == -1 else axis for axis in shape]
    free = SIDE if len(axes) >= IMAGE_AXES else SHORT
    return [axis if axis is not None else rows if rows and index == 0 else free for index, axis in enumerate(axes)]


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
