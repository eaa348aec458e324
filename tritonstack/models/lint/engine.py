"""Rules about a TensorRT model's configuration against the engine that its recipe has built.

Source: tensorrt_backend src/instance_state.cc (ModelInstanceState::InitializeConfigExecuteInputBindings,
ValidateDimension), src/tensorrt_utils.cc (CompareDimsSupported).
"""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack.models.engine_recipe import Engine, EngineShapes
from tritonstack.models.lint.completion import promised_graph
from tritonstack.models.lint.finding import Finding
from tritonstack.models.lint.place import at_field, at_line
from tritonstack.models.lint.view import ModelView, RepositoryView
from tritonstack.models.model_config import Tensor

KEEPS_INT64_SINCE = 10
"""The first TensorRT whose engines have INT64 inputs and outputs; before it the parser makes INT32 of them."""


def check(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """What differs between a configuration and the engine's profile."""
    if model.backend != "tensorrt":
        return
    yield from _integers(view, model)
    engine = view.recipe.engine if view.recipe and model.name == view.addressed else None
    if engine is None:
        return
    yield from _batch(model, engine)
    names = {tensor.name for tensor in model.config.inputs}
    for name in sorted(engine.shapes.keys() ^ names):
        found = f"input {name}" + ("" if name in names else " of the recipe's engine.shapes, which is no input here")
        allowed = f"the inputs of engine.shapes: {', '.join(sorted(engine.shapes))}"
        yield at_field(model, "input", "engine-tensor", found, allowed)
    for tensor in model.config.inputs:
        if tensor.name in engine.shapes:
            yield from _shape(model, tensor, engine.shapes[tensor.name])


def _batch(model: ModelView, engine: Engine) -> Iterator[Finding]:
    """``max_batch_size`` within every input's profile, and single requests too."""
    limit = model.config.max_batch_size
    if not model.is_batched:
        return
    largest = min(shapes.max[0] for shapes in engine.shapes.values())
    smallest = max(shapes.min[0] for shapes in engine.shapes.values())
    if limit > largest:
        found = f"max_batch_size: {limit}, and the engine is built for up to {largest}"
        yield at_field(model, "max_batch_size", "engine-batch", found, f"up to {largest}")
    elif limit < largest:
        found = f"max_batch_size: {limit}, and the engine is built for up to {largest}"
        allowed = f"{largest}, or engine.shapes with max {limit}: what is not used costs memory"
        yield at_field(model, "max_batch_size", "engine-batch-unused", found, allowed)
    if smallest > 1:
        found = f"an engine for batches from {smallest} on"
        yield at_field(
            model, "max_batch_size", "engine-batch", found, "engine.shapes with min 1: requests may be single"
        )


def _shape(model: ModelView, tensor: Tensor, shapes: EngineShapes) -> Iterator[Finding]:
    dims = tensor.dims if tensor.reshape is None else tensor.reshape
    low, high = (shapes.min[1:], shapes.max[1:]) if model.is_batched else (shapes.min, shapes.max)
    fits = len(dims) == len(low) and all(
        length == -1 or a <= length <= b for a, length, b in zip(low, dims, high, strict=True)
    )
    if not fits:
        found = f"input {tensor.name} with dims {list(dims)}"
        allowed = f"from {list(low)} to {list(high)}, as in the recipe's engine.shapes"
        yield at_line(model, tensor.line, "engine-shape", found, allowed)


def _integers(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """INT32 and INT64 against what the release's TensorRT makes of the graph's INT64."""
    release, graph = view.target.release, promised_graph(view, model)
    if release is None or release.tensorrt is None or graph is None:
        return
    version = release.tensorrt
    keeps = int(version.split(".")[0]) >= KEEPS_INT64_SINCE
    wide = {tensor.name for tensor in (*graph.inputs, *graph.outputs) if tensor.datatype == "INT64"}
    wanted = "INT64" if keeps else "INT32"
    for tensor in (*model.config.inputs, *model.config.outputs):
        if tensor.name in wide and tensor.data_type in ("INT32", "INT64") and tensor.data_type != wanted:
            found = f"{tensor.name} as {tensor.data_type} in release {release.version}, with TensorRT {version}"
            allowed = f"{wanted}: " + ("TensorRT keeps the graph's INT64" if keeps else "TensorRT makes INT32 of INT64")
            yield at_line(model, tensor.line, "engine-integers", found, allowed)
