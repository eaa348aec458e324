"""What TensorFlow's files state: signatures of a SavedModel, inputs and outputs of a frozen graph. Weights are skipped.

Source: tensorflow/core/protobuf/saved_model.proto, meta_graph.proto (SignatureDef, TensorInfo);
tensorflow/core/framework/graph.proto, node_def.proto, types.proto.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tritonstack.model_files.onnx_graph import GraphTensor
from tritonstack.model_files.protobuf_fields import (
    Field,
    ProtobufError,
    field_text,
    message_fields,
    only_field,
    text_field,
)

DATATYPES: Mapping[int, str] = {
    1: "FP32", 2: "FP64", 3: "INT32", 4: "UINT8", 5: "INT16", 6: "INT8", 7: "BYTES", 9: "INT64", 10: "BOOL",
    14: "BF16", 17: "UINT16", 19: "FP16", 22: "UINT32", 23: "UINT64",
}  # fmt: skip
"""TensorFlow's number of a type → KServe's name."""
_META_GRAPHS, _SIGNATURES, _KEY, _VALUE = 2, 5, 1, 2
_INPUTS, _OUTPUTS, _TYPE, _SHAPE, _AXIS, _LENGTH = 1, 2, 2, 3, 2, 1
_NODE, _NODE_NAME, _NODE_OPERATOR, _NODE_INPUT = 1, 1, 2, 3
_INTERNAL = "__saved_model"
"""Of signatures that TensorFlow writes for itself: ``__saved_model_init_op``."""
_FREE = 1 << 63
_MOST_NODES = 200_000
_SIDE = ("Const", "NoOp", "Assert", "Placeholder")
"""Operators whose results nobody takes, and which are no outputs."""


@dataclass(frozen=True, kw_only=True)
class Signature:
    """What a function of a SavedModel takes and gives."""

    inputs: tuple[GraphTensor, ...]
    outputs: tuple[GraphTensor, ...]


def signatures(graph: Path) -> Mapping[str, Signature]:
    """The signatures of ``saved_model.pb`` by their names, but TensorFlow's own. Raises :class:`ProtobufError`."""
    found: dict[str, Signature] = {}
    with graph.open("rb") as stream:
        for meta in message_fields(stream, 0, os.fstat(stream.fileno()).st_size):
            if meta.number != _META_GRAPHS or not meta.is_message:
                continue
            for entry in message_fields(stream, meta.start, meta.end):
                if entry.number == _SIGNATURES and entry.is_message:
                    name, value = text_field(stream, entry, _KEY), only_field(stream, entry, _VALUE)
                    if value is not None and not name.startswith(_INTERNAL):
                        found[name] = Signature(
                            inputs=_tensors(stream, value, _INPUTS), outputs=_tensors(stream, value, _OUTPUTS)
                        )
    return found


def _tensors(stream: BinaryIO, signature: Field, number: int) -> tuple[GraphTensor, ...]:
    """Inputs or outputs of a signature, by name: a map's order means nothing."""
    tensors = []
    for entry in message_fields(stream, signature.start, signature.end):
        if entry.number != number or not entry.is_message:
            continue
        info = only_field(stream, entry, _VALUE)
        kind = only_field(stream, info, _TYPE) if info else None
        shape = only_field(stream, info, _SHAPE) if info else None
        axes = [
            _axis(stream, axis)
            for axis in (message_fields(stream, shape.start, shape.end) if shape else ())
            if axis.number == _AXIS and axis.is_message
        ]
        tensors.append(
            GraphTensor(
                name=text_field(stream, entry, _KEY),
                datatype=DATATYPES.get(kind.value, "") if kind else "",
                shape=None if shape is None else tuple(axes),
            )
        )
    return tuple(sorted(tensors, key=lambda each: each.name))


def _axis(stream: BinaryIO, axis: Field) -> int | None:
    length = only_field(stream, axis, _LENGTH)
    return None if length is not None and length.value >= _FREE else length.value if length else 0


def graph_ends(path: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of a frozen graph's placeholders, and of the nodes whose results no other takes.

    Raises :class:`ProtobufError`.
    """
    operators: dict[str, str] = {}
    taken: set[str] = set()
    with path.open("rb") as stream:
        for node in message_fields(stream, 0, os.fstat(stream.fileno()).st_size):
            if node.number != _NODE or not node.is_message:
                continue
            if len(operators) >= _MOST_NODES:
                raise ProtobufError(f"a graph of more than {_MOST_NODES:,} nodes")
            operators[text_field(stream, node, _NODE_NAME)] = text_field(stream, node, _NODE_OPERATOR)
            for field in message_fields(stream, node.start, node.end):
                if field.number == _NODE_INPUT and field.is_message:
                    taken.add(field_text(stream, field).removeprefix("^").split(":")[0])
    inputs = tuple(name for name, operator in operators.items() if operator in ("Placeholder", "PlaceholderV2"))
    ends = (name for name, operator in operators.items() if name not in taken and operator not in _SIDE)
    return inputs, tuple(ends)
