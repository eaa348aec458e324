"""A model's tensors and batch size as its backend completes them: from the graph, or by the model's own program."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from tritonstack.lint.python.auto_complete import completed_by_program
from tritonstack.lint.view import RepositoryView
from tritonstack.model_files.onnx_graph import GraphTensor, OnnxError, OnnxGraph, read_graph
from tritonstack.models.model_config import ModelConfig, Tensor
from tritonstack.models.model_view import ModelView
from tritonstack.untrusted.foreign_text import parse_program


@dataclass(frozen=True, kw_only=True)
class Completion:
    """A configuration as its backend completes it."""

    inputs: tuple[Tensor, ...]  # the inputs afterwards; ``outputs`` the outputs
    outputs: tuple[Tensor, ...]
    max_batch_size: int  # the same of that field
    is_known: bool = True  # False where reading does not show what is completed: then these are the written ones
    refusal: str = ""  # why completing it fails, and with it the load; empty where it does not
    line: int = 0  # where that is in the program of a Python model


def as_written(config: ModelConfig, *, is_known: bool = True) -> Completion:
    """A configuration that nothing completes, or whose completion is unknown."""
    return Completion(
        inputs=config.inputs, outputs=config.outputs, max_batch_size=config.max_batch_size, is_known=is_known
    )


DEFAULT_MAX_BATCH_SIZE = 4
"""The backends' ``default-max-batch-size``: core src/backend_manager.cc, kDefaultMaxBatchSize of server src."""

_NEVER = ("ensemble", "pytorch", "fil")
"""Backends that complete no tensors. What any other does beside the two below cannot be read from its files here."""


def complete(view: RepositoryView, model: ModelView, version: str = "") -> Completion:
    """The configuration as the backend completes it before Triton checks its tensors.

    ``version``: by whose program or graph, the newest served one unless it is given: Triton completes and checks it
    anew for each.
    """
    if model.is_ensemble or model.backend in _NEVER:
        return as_written(model.config)
    if model.backend == "python":
        return _by_program(model, version)
    if model.backend == "onnxruntime":
        return _from_graph(view, model, version)
    return as_written(model.config, is_known=False)


def python_program(model: ModelView, version: str) -> Path | None:
    """The program of one version of a Python model; a package goes before a module of its name."""
    file = model.model_file
    package = f"{version}/{file.removesuffix('.py')}/__init__.py"
    return model.on_disk(package if package in model.files else f"{version}/{file}")


def graph_path(model: ModelView, version: str = "") -> Path | None:
    """The graph that the onnxruntime backend loads, or that an engine is built from; None where it is not there.

    ``version``: of which, the newest served one that has a graph unless it is given.
    """
    name = model.model_file if model.backend == "onnxruntime" else "model.onnx"
    for each in (version,) if version else reversed(model.served_versions):
        for place in (f"{each}/{name}", f"{each}/{name}/model.onnx"):  # a folder holds external weights too
            if path := model.on_disk(place):
                return path
    return None


def promised_graph(view: RepositoryView, model: ModelView) -> OnnxGraph | None:
    """The graph that the export of the model's file gives according to the recipe."""
    for export in view.recipe.exports if view.recipe else ():
        makes_it = any(Path(name).suffix == ".onnx" and name.startswith(f"{model.name}/") for name in export.produces)
        if export.graph is not None and makes_it:
            inputs, outputs = (
                tuple(
                    GraphTensor(
                        name=each.name,
                        datatype=each.dtype,
                        shape=tuple(axis if isinstance(axis, int) else None for axis in each.shape),
                    )
                    for each in tensors
                )
                for tensors in (export.graph.inputs, export.graph.outputs)
            )
            return OnnxGraph(inputs=inputs, outputs=outputs, opset=export.graph.opset)
    return None


def completed_from_graph(model: ModelView, graph: OnnxGraph) -> Completion:
    """A configuration that lacks its inputs or its outputs, with the graph's.

    Source: onnxruntime_backend src/onnxruntime.cc (ModelState::AutoCompleteConfig, AutoCompleteMaxBatch,
    AutoCompleteIO).
    """
    written = as_written(model.config)
    given = written.inputs or model.config.node.has("batch_input")
    if given and written.outputs:
        return written
    batches = all(each.shape and each.shape[0] is None for each in (*graph.inputs, *graph.outputs))
    limit = written.max_batch_size
    if limit and not batches:
        return replace(
            written, refusal="the graph cannot batch: an axis of it is no free first one, and max_batch_size is not 0"
        )
    limit = limit or (DEFAULT_MAX_BATCH_SIZE if batches else 0)
    return replace(
        written,
        max_batch_size=limit,
        inputs=written.inputs if given else tuple(completed_tensor(each, limit) for each in graph.inputs),
        outputs=written.outputs or tuple(completed_tensor(each, limit) for each in graph.outputs),
    )


def completed_tensor(tensor: GraphTensor, limit: int) -> Tensor:
    """A graph's tensor in a configuration whose max_batch_size is ``limit``."""
    axes = tensor.shape or ()
    dims = tuple(-1 if axis is None else axis for axis in (axes[1:] if limit else axes))
    return Tensor(
        name=tensor.name, data_type=tensor.datatype, dims=dims or (1,), reshape=() if limit and not dims else None
    )


def _by_program(model: ModelView, version: str) -> Completion:
    """The configuration as a version's program completes it, where reading shows that."""
    version = version or next(reversed(model.served_versions), "")
    path = python_program(model, version) if version else None
    try:
        done = completed_by_program(parse_program(path.read_bytes()), model.config) if path else None
    except SyntaxError:
        done = None  # another rule's matter
    if done is None:
        return as_written(model.config, is_known=False)
    return Completion(
        inputs=done.inputs,
        outputs=done.outputs,
        max_batch_size=done.max_batch_size,
        refusal=done.refusal,
        line=done.line,
    )


def _from_graph(view: RepositoryView, model: ModelView, version: str) -> Completion:
    path = graph_path(model, version)
    try:
        graph = read_graph(path) if path else promised_graph(view, model)
    except OnnxError:
        return as_written(model.config, is_known=False)  # another rule's matter
    return completed_from_graph(model, graph) if graph else as_written(model.config, is_known=False)
