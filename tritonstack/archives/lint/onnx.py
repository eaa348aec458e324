"""Rules about a configuration against the ONNX file that it stands for, or against the graph that a recipe promises.

Source: onnxruntime_backend src/onnxruntime.cc (ModelInstanceState::ValidateInputs, ValidateOutputs, ModelState::
AutoCompleteConfig), src/onnx_utils.cc (CompareDimsSupported).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tritonstack.archives.lint.finding import Finding
from tritonstack.archives.lint.onnx_graph import GraphTensor, OnnxError, OnnxGraph, read_graph
from tritonstack.archives.lint.place import at_line
from tritonstack.archives.lint.view import ModelView, RepositoryView
from tritonstack.archives.model_config import Tensor

_BACKENDS = ("onnxruntime", "tensorrt")


def check(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """What differs between a configuration and its graph: the file's where it is there, else the recipe's."""
    if model.config.backend not in _BACKENDS:
        return
    for version in model.served_versions:
        path = model.on_disk(f"{version}/{_file_of(model)}")
        if path is None:
            continue
        try:
            graph = read_graph(path)
        except OnnxError as error:
            yield Finding(file=path, rule="onnx-unreadable", found=str(error), allowed="an ONNX model")
            continue
        yield from _compare(model, graph, str(path.relative_to(model.directory)))
        return
    promised = promised_graph(view, model)
    if promised is not None:
        yield from _compare(model, promised, "the graph of recipe.yaml")


def promised_graph(view: RepositoryView, model: ModelView) -> OnnxGraph | None:
    """The graph that the export of the model's file shall give, as the recipe says it."""
    exports = view.recipe.exports if view.recipe else ()
    for export in exports:
        makes_it = any(Path(name).suffix == ".onnx" and name.startswith(f"{model.name}/") for name in export.produces)
        if export.graph is not None and makes_it:
            inputs, outputs = (
                tuple(GraphTensor(name=each.name, datatype=each.dtype, shape=_axes(each.shape)) for each in tensors)
                for tensors in (export.graph.inputs, export.graph.outputs)
            )
            return OnnxGraph(inputs=inputs, outputs=outputs, opset=export.graph.opset)
    return None


def _file_of(model: ModelView) -> str:
    """The graph's file: what the backend loads, or what an engine is built from."""
    return model.config.model_file if model.config.backend == "onnxruntime" else "model.onnx"


def _axes(shape: Sequence[int | str]) -> tuple[int | None, ...]:
    return tuple(axis if isinstance(axis, int) else None for axis in shape)


def _compare(model: ModelView, graph: OnnxGraph, where: str) -> Iterator[Finding]:
    yield from _tensors(model, "input", model.config.inputs, {each.name: each for each in graph.inputs}, where)
    yield from _tensors(model, "output", model.config.outputs, {each.name: each for each in graph.outputs}, where)
    required = {tensor.name for tensor in model.config.inputs}
    missing = [each.name for each in graph.inputs if each.name not in required]
    if missing and model.config.inputs:
        found = f"input {missing[0]} of {where}, which the configuration lacks"
        yield at_line(model, model.config.node.line_of("input"), "onnx-tensor", found, "every input of the graph")


def _tensors(
    model: ModelView, kind: str, tensors: Sequence[Tensor], known: Mapping[str, GraphTensor], where: str
) -> Iterator[Finding]:
    made_by_triton = {
        str(typed.value)
        for message in model.config.node.nodes("batch_input")
        for typed in message.scalars.get("target_name", ())
    }
    for tensor in tensors:
        in_graph = known.get(tensor.name)
        if in_graph is None:
            if tensor.name not in made_by_triton:
                found, allowed = f"{kind} {tensor.name}, which {where} lacks", ", ".join(sorted(known)) or f"no {kind}"
                yield at_line(model, tensor.line, "onnx-tensor", found, allowed)
            continue
        if in_graph.datatype and not _is_type(model, tensor.data_type, in_graph.datatype):
            found = f"{kind} {tensor.name} as {tensor.data_type}"
            yield at_line(model, tensor.line, "onnx-type", found, f"{in_graph.datatype}, as in {where}")
        if in_graph.shape is not None:
            yield from _shape(model, f"{kind} {tensor.name}", tensor, in_graph.shape, where)


def _is_type(model: ModelView, configured: str, in_graph: str) -> bool:
    """Whether the backend gives a graph's type as the configured one: TensorRT may make INT32 of INT64."""
    is_narrowed = model.config.backend == "tensorrt" and (configured, in_graph) == ("INT32", "INT64")
    return configured == in_graph or is_narrowed


def _shape(model: ModelView, what: str, tensor: Tensor, axes: tuple[int | None, ...], where: str) -> Iterator[Finding]:
    dims = tensor.dims if tensor.reshape is None else tensor.reshape
    shown = [-1 if axis is None else axis for axis in axes]
    if not model.is_batched:
        if not _fits(dims, axes):
            found = f"{what} with {list(dims)}, without batching"
            yield at_line(model, tensor.line, "onnx-shape", found, f"{shown}, as in {where}")
    elif not axes or axes[0] is not None:
        found = f"{what} with max_batch_size {model.config.max_batch_size}"
        allowed = f"max_batch_size: 0, for {where} has {shown} without a free first axis"
        yield at_line(model, tensor.line, "onnx-batch", found, allowed)
    elif not _fits(dims, axes[1:]):
        found = f"{what} with {list(dims)} behind the batch dimension"
        yield at_line(model, tensor.line, "onnx-shape", found, f"{shown[1:]}, as in {where}")


def _fits(dims: Sequence[int], axes: Sequence[int | None]) -> bool:
    """Whether every shape that the configuration allows is one that the graph takes, and no rank differs.

    A length that the configuration leaves free and the graph does not is refused by the backend, too.
    """
    return len(dims) == len(axes) and all(
        axis is None or axis == length for length, axis in zip(dims, axes, strict=True)
    )
