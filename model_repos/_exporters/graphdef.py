"""Write a frozen TensorFlow GraphDef, as Triton's tensorflow backend loads it, and prove it.

Runs in the environment ``tensorflow``.
"""

# mypy: disable-error-code="import-not-found,import-untyped"
# TensorFlow is in the environment that exports run in, not in the one that checks types.

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from _exporters.cases import Case, compare
from _exporters.script import Arrays, ExportError, Graph, Tensor, atomic, say

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # no lines for its own developers; read at its import
import tensorflow as tf

Build = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Placeholders by the graph's input names → tensors by its output names. Weights are constants in it."""

_VARIABLES = ("Variable", "VariableV2", "VarHandleOp")


def export(build: Build, graph: Graph, path: Path) -> None:
    """Write a GraphDef. The same model gives the same bytes.

    A GraphDef names neither its inputs and outputs nor their shapes: inputs are placeholders, outputs
    are nodes of the configured names (``src/tensorflow_backend_tf.cc`` of triton-inference-server/tensorflow_backend).
    Attributes at their defaults are left out: an older TensorFlow may lack them.

    Args:
        build: see :data:`Build`.
        graph: names, types and axes of the file.
        path: of the file.

    Raises:
        ExportError: the outputs are not the graph's, by type or shape, or weights are variables: a variable's value
            is not in a GraphDef.
    """
    made = tf.Graph()
    with made.as_default():
        inputs = {
            tensor.name: tf.compat.v1.placeholder(_type(tensor), _shape(tensor), tensor.name) for tensor in graph.inputs
        }
        outputs = build(inputs)
        for tensor in graph.outputs:
            _name_output(outputs[tensor.name], tensor)
        definition = tf.compat.v1.train.export_meta_graph(graph=made, strip_default_attrs=True).graph_def
    variables = [node.name for node in definition.node if node.op in _VARIABLES]
    if variables:
        raise ExportError(f"{variables[0]} is a variable: a GraphDef needs weights that are constants")
    for node in definition.node:
        node.attr.pop("_output_shapes", None)  # of a graph in memory; not needed to load it
    with atomic(path) as temporary:
        temporary.write_bytes(definition.SerializeToString(deterministic=True))
    say(f"{path.name}: {len(definition.node)} operators, {path.stat().st_size / 2**20:.1f} MiB")


def prove(path: Path, graph: Graph, cases: Iterator[Case], *, tolerance: float) -> float:
    """Compare a GraphDef, loaded as Triton's tensorflow backend does, with the source framework.

    Args:
        path: of the file.
        graph: names of inputs and outputs.
        cases: inputs with the source framework's outputs.
        tolerance: the largest absolute difference of a floating-point value.

    Returns:
        The largest difference.

    Raises:
        ExportError: the file is no GraphDef, lacks a tensor, or differs: the message names the tensor.
    """
    loaded = _load(path)
    nodes = {node.name for node in loaded.as_graph_def().node}
    lacking = [tensor.name for tensor in (*graph.inputs, *graph.outputs) if tensor.name not in nodes]
    if lacking:
        raise ExportError(f"{path.name} has no node {', '.join(lacking)}")
    with tf.compat.v1.Session(graph=loaded) as session:

        def exported(inputs: Arrays) -> Arrays:
            fed = {f"{name}:0": array for name, array in inputs.items()}
            found: Arrays = session.run({tensor.name: f"{tensor.name}:0" for tensor in graph.outputs}, fed)
            return found

        return compare(exported, cases, graph, tolerance=tolerance, failures=(tf.errors.OpError, ValueError))


def _load(path: Path) -> Any:
    definition, loaded = tf.compat.v1.GraphDef(), tf.Graph()
    try:
        definition.ParseFromString(path.read_bytes())
        with loaded.as_default():
            tf.import_graph_def(definition, name="")
    except (OSError, ValueError, tf.errors.OpError, DecodeError) as error:
        raise ExportError(f"TensorFlow cannot load {path.name}: {error}") from error
    return loaded


def _name_output(value: Any, tensor: Tensor) -> None:
    """Name an output. Raises :class:`ExportError` where type or shape differ from the graph."""
    found, wanted = value.shape.as_list(), list(_shape(tensor))
    if value.dtype != _type(tensor) or found != wanted:
        raise ExportError(
            f"output {tensor.name}: {value.dtype.name} {found} built, {_type(tensor).name} {wanted} wanted"
        )
    tf.identity(value, tensor.name)


def _type(tensor: Tensor) -> Any:
    return tf.as_dtype(tensor.numpy)


def _shape(tensor: Tensor) -> tuple[int | None, ...]:
    """With None for dynamic axes."""
    return tuple(None if isinstance(axis, str) else axis for axis in tensor.shape)
