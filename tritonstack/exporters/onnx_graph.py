"""Export a PyTorch module to an ONNX file that is what the recipe says: names, types, axes, operator set."""

# mypy: disable-error-code="import-not-found"
# PyTorch and ONNX are in the environment that exports run in, not in the one that checks types.

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import torch
from onnx import helper, version_converter
from torch import nn

from tritonstack.errors import WorkFailedError
from tritonstack.exporters.arguments import Arrays
from tritonstack.exporters.files import whole
from tritonstack.exporters.graph import DTYPES, Graph, Tensor
from tritonstack.exporters.progress import say

OWN_OPSET = 18
"""The operator set that PyTorch exports in; ONNX converts to older ones.

TensorRT reads the axes of reductions from the attribute that they were until 17: it took them for all axes
(https://github.com/NVIDIA/TensorRT/issues/3467) and refuses such graphs since 10.0.
"""

EMBED_LIMIT = 2**31 - 2**26
"""Bytes of weights up to which one file holds all: a protobuf message ends at 2 GiB, some room is for the graph."""

LARGE_WEIGHT = 2**20
"""Bytes from which an initializer is a weight, whose values no conversion of operators reads."""


def export(model: nn.Module, graph: Graph, path: Path, example: Arrays, *, embed_limit: int = EMBED_LIMIT) -> None:
    """Write ``path``. The same model gives the same bytes, with nothing in it about where it was made.

    Args:
        model: takes tensors in the order of the graph's inputs, gives a tensor or a tuple in that of its outputs.
        graph: what the file must be.
        path: of the ONNX file; above ``embed_limit`` bytes of weights they go into ``<path>.data`` beside it.
        example: inputs by name; every dynamic axis has a size of at least 2 in it.
        embed_limit: see above.

    Raises:
        WorkFailedError: PyTorch cannot export the model, or the graph is not as the recipe says: every difference.
    """
    say(f"exporting to ONNX, operator set {graph.opset}")
    proto = _converted(_program(model, graph, example).model_proto, graph)
    _anonymise(proto)
    problems = [*_differences(proto, graph)]
    if problems:
        raise WorkFailedError("the exported graph is not as the recipe says:\n  " + "\n  ".join(problems))
    # The oldest version of the format that has these operators: releases' ONNX Runtimes refuse newer ones.
    proto.ir_version = helper.find_min_ir_version_for(proto.opset_import)
    size = sum(len(one.raw_data) for one in proto.graph.initializer)
    _save(proto, path, external=size > embed_limit)
    say(f"{path.name}: {len(proto.graph.node)} operators, {size / 2**20:.1f} MiB of weights")


def _program(model: nn.Module, graph: Graph, example: Arrays) -> Any:
    tensors = tuple(torch.from_numpy(example[tensor.name]) for tensor in graph.inputs)
    words = dict.fromkeys(axis for tensor in graph.inputs for axis in tensor.shape if isinstance(axis, str))
    axes = {word: torch.export.Dim(word, min=1) for word in words}
    shapes = tuple(
        {position: axes[axis] for position, axis in enumerate(tensor.shape) if isinstance(axis, str)}
        for tensor in graph.inputs
    )
    try:
        return torch.onnx.export(
            model,
            tensors,
            input_names=[tensor.name for tensor in graph.inputs],
            output_names=[tensor.name for tensor in graph.outputs],
            opset_version=max(graph.opset, OWN_OPSET),
            dynamo=True,
            dynamic_shapes=(shapes,) if _takes_any_number(model) else shapes,
            external_data=False,
            verbose=False,
        )
    except (torch.onnx.errors.OnnxExporterError, RuntimeError, ValueError) as error:
        raise WorkFailedError(f"PyTorch cannot export the model to ONNX: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """What PyTorch met and in which line of the model, without its advice to its own developers."""
    text = str(error.__cause__ or error).strip()
    _, _, place = text.partition("The following call raised this error:\n")
    return "\n".join([text.splitlines()[0], *place.rstrip().splitlines()])


def _takes_any_number(model: nn.Module) -> bool:
    """Whether ``forward`` has one parameter ``*tensors``, which PyTorch wants one tuple of shapes for."""
    kinds = [parameter.kind for parameter in inspect.signature(model.forward).parameters.values()]
    return kinds == [inspect.Parameter.VAR_POSITIONAL]


def _anonymise(proto: Any) -> None:
    """Take out what tells where the graph was made (paths of sources) and differs from machine to machine."""
    del proto.metadata_props[:]
    proto.doc_string = ""
    graph = proto.graph
    for part in (graph, *graph.node, *graph.input, *graph.output, *graph.value_info, *graph.initializer):
        del part.metadata_props[:]
        part.doc_string = ""
    for function in proto.functions:
        for part in (function, *function.node, *function.value_info):
            del part.metadata_props[:]
            part.doc_string = ""


def _converted(proto: Any, graph: Graph) -> Any:
    """In the wanted operator set. PyTorch leaves its own where it cannot convert to a newer one."""
    try:
        if graph.opset < OWN_OPSET:
            weights = _take_weights(proto)
            proto = version_converter.convert_version(proto, graph.opset)
            _put_weights(proto, weights)
            _drop_unknown_zeros(proto, graph.opset)
    except (RuntimeError, version_converter.ConvertError) as error:
        raise WorkFailedError(f"the graph cannot be converted to operator set {graph.opset}: {error}") from error
    found = {one.domain: one.version for one in proto.opset_import}.get("")
    if found != graph.opset:
        raise WorkFailedError(f"PyTorch exports operator set {found}, the recipe says opset {graph.opset}")
    return proto


def _take_weights(proto: Any) -> dict[str, bytes]:
    """Take the values of large initializers out of a graph. Returns them by name.

    The conversion reads none of them, and would hold several copies: seven times a model's weights in all.
    """
    large = [one for one in proto.graph.initializer if len(one.raw_data) > LARGE_WEIGHT]
    taken = {one.name: one.raw_data for one in large}
    for one in large:
        one.ClearField("raw_data")
    return taken


def _put_weights(proto: Any, weights: dict[str, bytes]) -> None:
    """Put values back that :func:`_take_weights` took, and empty ``weights``."""
    for one in proto.graph.initializer:
        if one.name in weights:
            one.raw_data = weights.pop(one.name)
    if weights:
        raise WorkFailedError(f"the conversion lost the weights {', '.join(weights)}")


def _drop_unknown_zeros(proto: Any, opset: int) -> None:
    """Take out attributes of value 0 that the older operators lack: the conversion leaves ``noop_with_empty_axes``."""
    for node in proto.graph.node:
        if node.domain == "":
            known = onnx.defs.get_schema(node.op_type, opset).attributes
            kept = [one for one in node.attribute if one.name in known or one.type != one.INT or one.i != 0]
            del node.attribute[:]
            node.attribute.extend(kept)


def _differences(proto: Any, graph: Graph) -> Iterator[str]:
    """What is not as the recipe says. The recipe's words become the names of the dynamic axes."""
    for kind, wanted, found in (
        ("input", graph.inputs, proto.graph.input),
        ("output", graph.outputs, proto.graph.output),
    ):
        if [one.name for one in found] != [tensor.name for tensor in wanted]:
            names = ", ".join(one.name for one in found)
            yield f"{kind}s: {names} exported, the recipe says {', '.join(tensor.name for tensor in wanted)}"
            continue
        for tensor, one in zip(wanted, found, strict=True):
            yield from (f"{kind} {tensor.name}: {problem}" for problem in _tensor_differences(tensor, one))


def _tensor_differences(tensor: Tensor, value: Any) -> Iterator[str]:
    described = value.type.tensor_type
    wanted = helper.np_dtype_to_tensor_dtype(DTYPES[tensor.dtype])
    if described.elem_type != wanted:
        found = onnx.TensorProto.DataType.Name(described.elem_type)
        yield f"type {found} exported, the recipe says {tensor.dtype}"
    sizes = [dim.dim_value if dim.HasField("dim_value") else (dim.dim_param or "?") for dim in described.shape.dim]
    fits = len(sizes) == len(tensor.shape) and all(
        isinstance(size, str) if isinstance(axis, str) else size == axis
        for axis, size in zip(tensor.shape, sizes, strict=True)
    )
    if not fits:
        yield f"shape {sizes} exported, the recipe says {list(tensor.shape)}"
        return
    for axis, dim in zip(tensor.shape, described.shape.dim, strict=True):
        if isinstance(axis, str):
            dim.dim_param = axis


def _save(proto: Any, path: Path, *, external: bool) -> None:
    data = path.with_name(f"{path.name}.data")
    if external:
        path.parent.mkdir(parents=True, exist_ok=True)
        data.unlink(missing_ok=True)  # ONNX appends to it
        onnx.external_data_helper.convert_model_to_external_data(proto, location=data.name)
    with whole(path) as temporary:
        if external:
            onnx.save_model(proto, temporary)
        else:
            temporary.write_bytes(proto.SerializeToString(deterministic=True))
        try:
            onnx.checker.check_model(str(temporary), full_check=True)
        except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
            raise WorkFailedError(f"ONNX finds the exported graph invalid: {error}") from error
