"""ONNX files with inputs, outputs, weights and optional nodes, written by hand in protobuf's wire format.

Source of the field numbers: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

TYPES = {
    "FP32": 1, "UINT8": 2, "INT8": 3, "UINT16": 4, "INT16": 5, "INT32": 6, "INT64": 7, "BYTES": 8, "BOOL": 9,
    "FP16": 10, "FP64": 11, "UINT32": 12, "UINT64": 13, "BF16": 16,
}  # fmt: skip
"""KServe's name of a type → its number in ONNX."""


def varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def part(number: int, content: bytes) -> bytes:
    """A field with a length: a message, a text, bytes."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value & (1 << 64) - 1)


def tensor(name: str, dtype: str, shape: Sequence[int | str | None] | None) -> bytes:
    """A ValueInfoProto: a string is a dynamic axis, None an unknown axis or an unknown shape."""
    axes = b"".join(
        part(1, b"" if axis is None else number(1, axis) if isinstance(axis, int) else part(2, axis.encode()))
        for axis in shape or ()
    )
    kind = part(1, number(1, TYPES[dtype]) + (b"" if shape is None else part(2, axes)))
    return part(1, name.encode()) + part(2, kind)


def sequence(name: str, dtype: str) -> bytes:
    kind = part(4, part(1, part(1, number(1, TYPES[dtype]))))
    return part(1, name.encode()) + part(2, kind)


Attribute = int | str | Sequence[int] | Sequence[str]


def node(op: str, inputs: Sequence[str], outputs: Sequence[str], domain: str = "", **attributes: Attribute) -> bytes:
    names = b"".join([part(1, each.encode()) for each in inputs] + [part(2, each.encode()) for each in outputs])
    given = b"".join(part(5, part(1, name.encode()) + _value(value)) for name, value in attributes.items())
    return names + part(4, op.encode()) + given + (part(7, domain.encode()) if domain else b"")


def _value(value: Attribute) -> bytes:
    if isinstance(value, int):
        return number(3, value) + number(20, 2)
    if isinstance(value, str):
        return part(4, value.encode()) + number(20, 3)
    if value and isinstance(value[0], str):
        return b"".join(part(9, str(each).encode()) for each in value) + number(20, 8)
    return b"".join(number(8, int(each)) for each in value) + number(20, 7)


def function(domain: str, op: str) -> bytes:
    """A FunctionProto of one input and one output, which hands on what it is given."""
    names = part(1, op.encode()) + part(4, b"a") + part(5, b"b") + part(7, node("Identity", ["a"], ["b"]))
    return names + part(9, number(2, 17)) + part(10, domain.encode())


FLAT = "minus one"
"""The initialiser that nodes of :func:`loadable` take: the shape [-1]."""


def loadable(graph: Mapping[str, Any]) -> list[bytes]:
    """Nodes with which ONNX Runtime loads the graph, whatever its shapes; the outputs have no meaning."""
    first = graph["inputs"][0]["name"]
    nodes = [
        node("Cast", [first], ["as_number"], to=TYPES["FP32"]),
        # A shape that is computed, of a length that is, too: ONNX Runtime infers nothing from it, not even the rank.
        node("NonZero", ["as_number"], ["places"]),
        node("Reshape", ["places", FLAT], ["as_shape"]),
        node("Reshape", ["as_number", "as_shape"], ["of_any_shape"]),
    ]
    for each in graph["outputs"]:
        if each.get("kind") == "sequence":
            nodes.append(node("SequenceConstruct", ["of_any_shape"], [each["name"]]))
        else:
            nodes.append(node("Cast", ["of_any_shape"], [each["name"]], to=TYPES[each["dtype"]]))
    return nodes


def graph_file(graph: Mapping[str, Any]) -> bytes:
    """A ModelProto.

    ``weights``: initialisers, name → size in bytes, or the file that holds them; ``opset``: 17 unless given,
    ``ir_version`` 8; ``nodes``: none unless given, each as :func:`node` makes it, or its arguments; ``domains``: those
    of operators that are not the standard's; ``functions``: as :func:`function` makes them. An output of
    ``kind: sequence`` is one.
    """
    nodes = (each if isinstance(each, bytes) else node(**each) for each in graph.get("nodes", ()))
    body = b"".join(part(1, each) for each in nodes)
    body += b"".join(part(5, part(8, name.encode()) + _content(held)) for name, held in weights(graph).items())
    if "nodes" in graph:
        body += part(5, number(1, 1) + number(2, TYPES["INT64"]) + part(8, FLAT.encode()) + part(9, b"\xff" * 8))
    body += b"".join(part(11, tensor(**each)) for each in graph["inputs"])
    body += b"".join(part(12, _output(each)) for each in graph["outputs"])
    versions = number(1, graph.get("ir_version", 8)) + part(8, number(2, graph.get("opset", 17)))
    versions += b"".join(part(8, part(1, domain.encode()) + number(2, 1)) for domain in graph.get("domains", ()))
    return versions + part(7, body) + b"".join(part(25, each) for each in graph.get("functions", ()))


def _output(each: Mapping[str, Any]) -> bytes:
    return sequence(each["name"], each["dtype"]) if each.get("kind") == "sequence" else tensor(**each)


def _content(held: int | str) -> bytes:
    if isinstance(held, int):
        return part(9, bytes(held))
    return part(13, part(1, b"location") + part(2, held.encode())) + number(14, 1)


def weights(graph: Mapping[str, Any]) -> Mapping[str, int | str]:
    found: Mapping[str, int | str] = graph.get("weights", {})
    return found


def write_graph(path: Path, graph: Mapping[str, Any]) -> None:
    path.write_bytes(graph_file(graph))
