"""ONNX files with nothing but inputs, outputs and weights, written by hand: the format is protobuf's wire format.

Source of the field numbers: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

TYPES = {
    "FP32": 1,
    "UINT8": 2,
    "INT8": 3,
    "UINT16": 4,
    "INT16": 5,
    "INT32": 6,
    "INT64": 7,
    "BYTES": 8,
    "BOOL": 9,
    "FP16": 10,
    "FP64": 11,
    "UINT32": 12,
    "UINT64": 13,
    "BF16": 16,
}
"""KServe's name of a type → its number in ONNX."""


def varint(value: int) -> bytes:
    """A number of the wire format."""
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def part(number: int, content: bytes) -> bytes:
    """A field with a length: a message, a text, bytes."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def number(field: int, value: int) -> bytes:
    """A field with a number."""
    return varint(field << 3) + varint(value & (1 << 64) - 1)


def tensor(name: str, dtype: str, shape: Sequence[int | str | None]) -> bytes:
    """A ValueInfoProto: a word is a dynamic axis, None an axis of which nothing is known."""
    axes = b"".join(
        part(1, b"" if axis is None else number(1, axis) if isinstance(axis, int) else part(2, axis.encode()))
        for axis in shape
    )
    kind = part(1, number(1, TYPES[dtype]) + part(2, axes))
    return part(1, name.encode()) + part(2, kind)


def graph_file(graph: Mapping[str, Any]) -> bytes:
    """A ModelProto. ``weights``: initialisers, name → size in bytes; ``opset``: 17 unless given, ``ir_version`` 8."""
    body = b"".join(part(5, part(8, name.encode()) + part(9, bytes(size))) for name, size in weights(graph).items())
    body += b"".join(part(11, tensor(**each)) for each in graph["inputs"])
    body += b"".join(part(12, tensor(**each)) for each in graph["outputs"])
    versions = number(1, graph.get("ir_version", 8)) + part(8, number(2, graph.get("opset", 17)))
    return versions + part(7, body)


def weights(graph: Mapping[str, Any]) -> Mapping[str, int]:
    """The initialisers of a graph."""
    found: Mapping[str, int] = graph.get("weights", {})
    return found


def write_graph(path: Path, graph: Mapping[str, Any]) -> None:
    """Write a graph's file."""
    path.write_bytes(graph_file(graph))
