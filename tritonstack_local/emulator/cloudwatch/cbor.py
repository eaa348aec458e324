"""CBOR (RFC 8949) as far as CloudWatch's answers need it, written; botocore reads it."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_UNSIGNED, _NEGATIVE, _TEXT, _LIST, _MAP, _TAG = 0, 1, 3, 4, 5, 6
_EPOCH_TAG = 1


@dataclass(frozen=True)
class Time:
    """Seconds since the epoch, marked as a time."""

    seconds: float


def encode(value: Any) -> bytes:
    """Of numbers, texts, booleans, times, lists, and dictionaries by text."""
    return b"".join(_parts(value))


def _parts(value: Any) -> Iterator[bytes]:
    if isinstance(value, bool):
        yield b"\xf5" if value else b"\xf4"
    elif isinstance(value, int):
        yield _head(_UNSIGNED, value) if value >= 0 else _head(_NEGATIVE, -1 - value)
    elif isinstance(value, float):
        yield b"\xfb" + struct.pack(">d", value)
    elif isinstance(value, Time):
        yield _head(_TAG, _EPOCH_TAG)
        yield from _parts(float(value.seconds))
    elif isinstance(value, str):
        text = value.encode()
        yield _head(_TEXT, len(text)) + text
    elif isinstance(value, list):
        yield _head(_LIST, len(value))
        for item in value:
            yield from _parts(item)
    else:
        yield _head(_MAP, len(value))
        for key, item in value.items():
            yield from _parts(key)
            yield from _parts(item)


def _head(kind: int, number: int) -> bytes:
    """Major type and argument."""
    if number < 24:
        return bytes([kind << 5 | number])
    for size, form in ((24, ">B"), (25, ">H"), (26, ">I")):
        if number < 1 << 8 * struct.calcsize(form):
            return bytes([kind << 5 | size]) + struct.pack(form, number)
    return bytes([kind << 5 | 27]) + struct.pack(">Q", number)
