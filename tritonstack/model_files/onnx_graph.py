"""Inputs, outputs and operators of an ONNX file, without weights: fields are passed over where they can be.

Source of the field numbers: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from tritonstack.model_files.protobuf_fields import (
    Field,
    ProtobufError,
    field_text,
    message_fields,
    only_field,
    text_field,
)

_NEGATIVE = 1 << 63
"""From here on a number of the wire format is a negative one of 64 bits."""

_MODEL_IR, _MODEL_OPSETS, _MODEL_GRAPH = 1, 8, 7
_GRAPH_NODE, _GRAPH_INITIALIZER, _GRAPH_INPUT, _GRAPH_OUTPUT, _GRAPH_SPARSE = 1, 5, 11, 12, 15
_NODE_OPERATOR, _TENSOR_NAME, _TENSOR_EXTERNAL, _SPARSE_VALUES = 4, 8, 13, 1
_MODEL_FUNCTIONS, _FUNCTION_NODE, _NODE_ATTRIBUTE, _SPARSE_TENSORS = 25, 7, 5, (1, 2)
_ATTRIBUTE_TENSORS, _ATTRIBUTE_GRAPHS, _ATTRIBUTE_SPARSE = (5, 10), (6, 11), (22, 23)
_ATTRIBUTE_NUMBER, _ATTRIBUTE_TEXT, _ATTRIBUTE_TEXTS = 3, 4, 9
_NODE_DOMAIN, _FUNCTION_NAME, _FUNCTION_DOMAIN = 7, 1, 10
_CONTROL_FLOW = ("If", "Loop", "Scan", "SequenceMap")
"""Operators whose attributes are graphs."""
_MOST_GRAPHS = 50
_EXTENT = ("offset", "length")
"""Keys of a TensorProto's external_data beside ``location``: onnx docs/ExternalData.md."""
_NUMBER = re.compile(r"[0-9]{1,18}")
_KINDS = {4: "sequence", 5: "map", 7: "opaque value", 8: "sparse tensor", 9: "optional value"}
"""Field of a TypeProto that is no tensor's → what it stands for."""

DATATYPES: Mapping[int, str] = {
    1: "FP32", 2: "UINT8", 3: "INT8", 4: "UINT16", 5: "INT16", 6: "INT32", 7: "INT64", 8: "BYTES", 9: "BOOL",
    10: "FP16", 11: "FP64", 12: "UINT32", 13: "UINT64", 16: "BF16",
}  # fmt: skip
"""ONNX's number of an element type → KServe's name; complex and 8-bit floating-point types have none."""


OnnxError = ProtobufError
"""The file is no ONNX model, or is damaged."""


@dataclass(frozen=True, kw_only=True)
class GraphTensor:
    """One input or output of a graph."""

    name: str  # its name
    datatype: str  # KServe's name of its type; empty where it has none, or is no tensor
    # its axes, the batch first: a number, or None where the length is free; None where the rank is unknown
    shape: tuple[int | None, ...] | None
    kind: str = "tensor"  # ``tensor``, or what it is instead: ``sequence``, ``map``, …
    # the names of its axes (``batch``), empty where one has none; only free axes have names
    symbols: tuple[str, ...] = dataclasses.field(default=(), compare=False)


@dataclass(frozen=True, kw_only=True)
class OnnxGraph:
    """What a graph takes and gives. Inputs that have a value in the file stand apart: a request may override them.

    ``opset``: of the standard operators; ``ir_version``: of the file's format. 0 where the file has none.
    """

    inputs: tuple[GraphTensor, ...]
    outputs: tuple[GraphTensor, ...]
    opset: int
    ir_version: int = 0
    overridable: tuple[GraphTensor, ...] = ()


def read_graph(path: Path) -> OnnxGraph:
    """The graph of an ONNX file; reads kilobytes, however large the weights are. Raises :class:`OnnxError`."""
    with path.open("rb") as stream:
        end = os.fstat(stream.fileno()).st_size
        graphs = []
        opset = ir_version = 0
        for field in message_fields(stream, 0, end):
            if field.number == _MODEL_GRAPH and field.is_message:
                graphs.append(field)
            elif field.number == _MODEL_OPSETS and field.is_message:
                opset = _opset(stream, field) or opset
            elif field.number == _MODEL_IR and not field.is_message:
                ir_version = field.value
        if len(graphs) != 1:
            raise OnnxError("no graph" if not graphs else "several graphs")
        return replace(_graph(stream, graphs[0], opset), ir_version=ir_version)


def external_files(path: Path) -> tuple[str, ...]:
    """The files that a graph keeps values in, as it names them: paths from its own folder, each once.

    Raises :class:`OnnxError`.
    """
    return tuple(external_data(path))


def external_data(path: Path) -> Mapping[str, int]:
    """The files that a graph keeps values in → the bytes that it reads of each: the end of the last value.

    Of initialisers, sparse ones, and tensors among the attributes of nodes, those of graphs in control flow and of
    functions included. A value that states no length counts as far as it begins. Raises :class:`OnnxError`.
    """
    with path.open("rb") as stream:
        found: dict[str, int] = {}
        for part in message_fields(stream, 0, os.fstat(stream.fileno()).st_size):
            places: Iterable[tuple[str, int]] = ()
            if part.is_message and part.number == _MODEL_GRAPH:
                places = _external_of_graph(stream, part, 0)
            elif part.is_message and part.number == _MODEL_FUNCTIONS:
                nodes = (each for each in message_fields(stream, part.start, part.end) if each.number == _FUNCTION_NODE)
                places = (place for node in nodes for place in _external_of_node(stream, node, 0))
            for name, end in places:
                found[name] = max(found.get(name, 0), end)
        return found


def _external_of_graph(stream: BinaryIO, graph: Field, depth: int) -> Iterator[tuple[str, int]]:
    if depth > _MOST_GRAPHS:
        raise OnnxError(f"graphs nested more than {_MOST_GRAPHS} deep")
    for field in message_fields(stream, graph.start, graph.end):
        if not field.is_message:
            continue
        if field.number == _GRAPH_INITIALIZER:
            yield from _locations(stream, field)
        elif field.number == _GRAPH_SPARSE:
            yield from _external_of_sparse(stream, field)
        elif field.number == _GRAPH_NODE:
            yield from _external_of_node(stream, field, depth)


def _external_of_sparse(stream: BinaryIO, sparse: Field) -> Iterator[tuple[str, int]]:
    for field in message_fields(stream, sparse.start, sparse.end):
        if field.is_message and field.number in _SPARSE_TENSORS:
            yield from _locations(stream, field)


def _external_of_node(stream: BinaryIO, node: Field, depth: int) -> Iterator[tuple[str, int]]:
    if not node.is_message:
        return
    for attribute in message_fields(stream, node.start, node.end):
        if attribute.number != _NODE_ATTRIBUTE or not attribute.is_message:
            continue
        for field in message_fields(stream, attribute.start, attribute.end):
            if not field.is_message:
                continue
            if field.number in _ATTRIBUTE_TENSORS:
                yield from _locations(stream, field)
            elif field.number in _ATTRIBUTE_SPARSE:
                yield from _external_of_sparse(stream, field)
            elif field.number in _ATTRIBUTE_GRAPHS:
                yield from _external_of_graph(stream, field, depth + 1)


def operators(path: Path) -> frozenset[str]:
    """The types of a graph's nodes (``MatMul``), but for those within control flow. Raises :class:`OnnxError`."""
    with path.open("rb") as stream:
        return frozenset(text_field(stream, node, _NODE_OPERATOR) for node in _of_graphs(stream, _GRAPH_NODE))


@dataclass(frozen=True, kw_only=True)
class GraphNode:
    """One operator of a graph."""

    operator: str
    domain: str  # empty for the standard's operators
    attributes: Mapping[str, str | int | tuple[str, ...]]  # texts, numbers and lists of texts; of operators asked for


def graph_nodes(path: Path, *, attributes_of: Collection[str] = ()) -> Iterator[GraphNode]:
    """The nodes of a file's graph, those within control flow included. Raises :class:`OnnxError`.

    ``attributes_of``: operators whose attributes are read.
    """
    with path.open("rb") as stream:
        for graph in message_fields(stream, 0, os.fstat(stream.fileno()).st_size):
            if graph.number == _MODEL_GRAPH and graph.is_message:
                yield from _nodes(stream, graph, attributes_of, depth=0)


def _nodes(stream: BinaryIO, graph: Field, attributes_of: Collection[str], *, depth: int) -> Iterator[GraphNode]:
    if depth > _MOST_GRAPHS:
        raise OnnxError(f"graphs nested more than {_MOST_GRAPHS} deep")
    for node in message_fields(stream, graph.start, graph.end):
        if node.number != _GRAPH_NODE or not node.is_message:
            continue
        operator = text_field(stream, node, _NODE_OPERATOR)
        wanted = operator in attributes_of
        parts = [*message_fields(stream, node.start, node.end)] if wanted or operator in _CONTROL_FLOW else []
        attributes = [each for each in parts if each.number == _NODE_ATTRIBUTE and each.is_message]
        read = {text_field(stream, each, 1): _attribute(stream, each) for each in attributes} if wanted else {}
        yield GraphNode(operator=operator, domain=text_field(stream, node, _NODE_DOMAIN), attributes=read)
        for field in (field for each in attributes for field in message_fields(stream, each.start, each.end)):
            if field.number in _ATTRIBUTE_GRAPHS and field.is_message:
                yield from _nodes(stream, field, attributes_of, depth=depth + 1)


def _attribute(stream: BinaryIO, attribute: Field) -> str | int | tuple[str, ...]:
    """The value of an AttributeProto: i = 3, s = 4, strings = 9; nothing of those is a list of no texts."""
    texts = []
    for field in message_fields(stream, attribute.start, attribute.end):
        if field.number == _ATTRIBUTE_NUMBER and not field.is_message:
            return field.value
        if field.number == _ATTRIBUTE_TEXT and field.is_message:
            return field_text(stream, field)
        if field.number == _ATTRIBUTE_TEXTS and field.is_message:
            texts.append(field_text(stream, field))
    return tuple(texts)


def function_names(path: Path) -> frozenset[tuple[str, str]]:
    """Domain and operator of each function that a file defines itself. Raises :class:`OnnxError`."""
    with path.open("rb") as stream:
        return frozenset(
            (text_field(stream, each, _FUNCTION_DOMAIN), text_field(stream, each, _FUNCTION_NAME))
            for each in message_fields(stream, 0, os.fstat(stream.fileno()).st_size)
            if each.number == _MODEL_FUNCTIONS and each.is_message
        )


def _of_graphs(stream: BinaryIO, number: int) -> Iterator[Field]:
    """The messages of this number of a file's graph."""
    for graph in message_fields(stream, 0, os.fstat(stream.fileno()).st_size):
        if graph.number == _MODEL_GRAPH and graph.is_message:
            messages = (field for field in message_fields(stream, graph.start, graph.end) if field.is_message)
            yield from (field for field in messages if field.number == number)


def _locations(stream: BinaryIO, tensor: Field) -> Iterator[tuple[str, int]]:
    """``location`` among a TensorProto's external_data, entries of key = 1 and value = 2, and where its bytes end."""
    entries = {
        text_field(stream, field, 1): text_field(stream, field, 2)
        for field in message_fields(stream, tensor.start, tensor.end)
        if field.number == _TENSOR_EXTERNAL and field.is_message
    }
    if "location" in entries:
        given = [entries.get(key, "") for key in _EXTENT]
        offset, length = (int(text) if _NUMBER.fullmatch(text) else 0 for text in given)
        yield entries["location"], offset + length


def _graph(stream: BinaryIO, graph: Field, opset: int) -> OnnxGraph:
    inputs: list[GraphTensor] = []
    outputs: list[GraphTensor] = []
    given: set[str] = set()
    for field in message_fields(stream, graph.start, graph.end):
        if field.number == _GRAPH_INITIALIZER:
            given.add(text_field(stream, field, _TENSOR_NAME))
        elif field.number == _GRAPH_SPARSE:
            values = only_field(stream, field, _SPARSE_VALUES)
            given.add(text_field(stream, values, _TENSOR_NAME) if values else "")
        elif field.number == _GRAPH_INPUT:
            inputs.append(_value(stream, field))
        elif field.number == _GRAPH_OUTPUT:
            outputs.append(_value(stream, field))
    taken = tuple(tensor for tensor in inputs if tensor.name not in given)
    overridable = tuple(tensor for tensor in inputs if tensor.name in given)
    return OnnxGraph(inputs=taken, outputs=tuple(outputs), opset=opset, overridable=overridable)


def _value(stream: BinaryIO, value: Field) -> GraphTensor:
    """A ValueInfoProto: name = 1, type = 2 { tensor_type = 1 { elem_type = 1, shape = 2 { dim = 1 } } }."""
    name = text_field(stream, value, 1)
    kind = only_field(stream, value, 2)
    tensor = only_field(stream, kind, 1) if kind else None
    if tensor is None:
        others = [field.number for field in message_fields(stream, kind.start, kind.end)] if kind else []
        what = next((_KINDS[number] for number in others if number in _KINDS), "value of no type")
        return GraphTensor(name=name, datatype="", shape=None, kind=what)
    element = only_field(stream, tensor, 1)
    shape = only_field(stream, tensor, 2)
    axes = (
        None if shape is None else tuple(_axis(stream, axis) for axis in message_fields(stream, shape.start, shape.end))
    )
    return GraphTensor(
        name=name,
        datatype=DATATYPES.get(element.value, "") if element else "",
        shape=None if axes is None else tuple(length for length, _ in axes),
        symbols=tuple(symbol for _, symbol in axes or ()),
    )


def _axis(stream: BinaryIO, axis: Field) -> tuple[int | None, str]:
    """A dimension: dim_value = 1, or a name in dim_param = 2, or nothing; a negative length stands for none."""
    length = only_field(stream, axis, 1)
    if length is not None and not length.is_message and length.value < _NEGATIVE:
        return length.value, ""
    return None, text_field(stream, axis, 2)


def _opset(stream: BinaryIO, entry: Field) -> int:
    """The version of the standard operators: an OperatorSetIdProto with no domain; 0 for another's."""
    domain, version = text_field(stream, entry, 1), only_field(stream, entry, 2)
    return version.value if version is not None and domain in ("", "ai.onnx") else 0
