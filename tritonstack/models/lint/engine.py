"""Rules about a TensorRT model's configuration against its recipe's engine, and against its plan's manifest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tritonstack.models.lint.completion import promised_graph
from tritonstack.models.lint.registry import Finding
from tritonstack.models.lint.tensors import fed_by_triton
from tritonstack.models.lint.view import ModelView, RepositoryView, at_field, at_line
from tritonstack.models.manifest import EngineEntry, EngineTensor, engine_manifest_name
from tritonstack.models.model_config import Tensor
from tritonstack.models.runtime_options import Engine, EngineShapes

# Source: tensorrt_backend src/instance_state.cc (ModelInstanceState::InitializeConfigExecuteInputBindings,
# ValidateDimension), src/tensorrt_utils.cc (CompareDimsSupported).


KEEPS_INT64_SINCE = 10
"""The first TensorRT whose engines have INT64 inputs and outputs; before it the parser makes INT32 of them."""


def check_engine(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """What differs between a configuration and the engine's profile."""
    if model.backend != "tensorrt":
        return
    yield from _integers(view, model)
    engine = view.recipe.engine if view.recipe and model.name == view.addressed else None
    if engine is None:
        return
    yield from _profile_batch(model, engine)
    names = {tensor.name for tensor in model.config.inputs}
    for name in sorted(engine.shapes.keys() ^ names):
        found = f"input {name}" + ("" if name in names else " of the recipe's engine.shapes, which is no input here")
        allowed = f"the inputs of engine.shapes: {', '.join(sorted(engine.shapes))}"
        yield at_field(model, "input", "engine-tensor", found, allowed)
    for tensor in model.config.inputs:
        if tensor.name in engine.shapes:
            yield from _profile_shape(model, tensor, engine.shapes[tensor.name])


def _profile_batch(model: ModelView, engine: Engine) -> Iterator[Finding]:
    """``max_batch_size`` within every input's profile, and single requests too."""
    limit = model.config.max_batch_size
    if not model.is_batched:
        return
    largest = min(shapes.max[0] for shapes in engine.shapes.values())
    smallest = max(shapes.min[0] for shapes in engine.shapes.values())
    if limit != largest:
        found = f"max_batch_size: {limit}, and the engine is built for up to {largest}"
        unused = f"{largest}, or engine.shapes with max {limit}: what is not used costs memory"
        rule, allowed = ("engine-batch", f"up to {largest}") if limit > largest else ("engine-batch-unused", unused)
        yield at_field(model, "max_batch_size", rule, found, allowed)
    if smallest > 1:
        found = f"an engine for batches from {smallest} on"
        yield at_field(
            model, "max_batch_size", "engine-batch", found, "engine.shapes with min 1: requests may be single"
        )


def _profile_shape(model: ModelView, tensor: Tensor, shapes: EngineShapes) -> Iterator[Finding]:
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


# Source: tensorrt_backend src/instance_state.cc (InitializeConfigExecuteInputBindings,
# InitializeConfigExecuteOutputBindings, and after them "every index which corresponds to an execution binding is
# initialized"), src/tensorrt_utils.cc (CompareDimsSupported).


RULE = "engine-manifest"


def check_engine_manifest(_view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """What differs between a configuration and the plans that lie next to their manifests."""
    if model.backend != "tensorrt":
        return
    for version in model.served_versions:
        name = f"{version}/{model.model_file}"
        path = model.on_disk(engine_manifest_name(name))
        if path is None:
            continue
        try:
            entry = EngineEntry.model_validate_json(path.read_bytes())
        except ValueError:
            found, allowed = "no manifest of an engine", "what the build of an engine wrote beside the plan"
            yield Finding(file=path, rule=RULE, found=found, allowed=allowed)
            continue
        plan = model.on_disk(name)
        if plan is not None and plan.stat().st_size != entry.bytes:
            found = f"{plan.stat().st_size:,} bytes"
            allowed = f"the plan of {entry.bytes:,} bytes that {path.name} describes"
            yield Finding(file=plan, rule=RULE, found=found, allowed=allowed)
        yield from _compare(model, entry)


def _compare(model: ModelView, entry: EngineEntry) -> Iterator[Finding]:
    kinds: tuple[tuple[str, Sequence[Tensor], Sequence[EngineTensor]], ...] = (
        ("input", model.config.inputs, entry.inputs),
        ("output", model.config.outputs, entry.outputs),
    )
    for kind, tensors, bound in kinds:
        table = {each.name: each for each in bound}
        for tensor in tensors:
            if tensor.name in table:
                yield from _tensor(model, kind, tensor, table[tensor.name])
            else:
                found = f"{kind} {tensor.name}, which the engine lacks"
                yield at_line(model, tensor.line, RULE, found, ", ".join(sorted(table)) or f"no {kind}")
        given = {tensor.name for tensor in tensors} | fed_by_triton(model)
        missing = sorted(table.keys() - given)
        if missing and tensors:  # without any, Triton completes the configuration from the plan
            found = f"no {kind} {missing[0]}, which the engine has"
            yield at_field(model, kind, RULE, found, f"every {kind} of the engine")


def _tensor(model: ModelView, kind: str, tensor: Tensor, bound: EngineTensor) -> Iterator[Finding]:
    what = f"{kind} {tensor.name}"
    if tensor.data_type != bound.datatype:
        yield at_line(model, tensor.line, RULE, f"{what} as {tensor.data_type}", f"{bound.datatype}, as in the engine")
    dims = tensor.dims if tensor.reshape is None else tensor.reshape
    low, high = bound.min, bound.max
    if len(dims) + model.is_batched != len(low):
        found = f"{what} with dims {list(dims)}" + (" behind the batch dimension" if model.is_batched else "")
        yield at_line(model, tensor.line, RULE, found, f"rank {len(low)} in all, as in the engine: {_bounds(bound)}")
        return
    if model.is_batched:
        yield from _batch(model, what, tensor, bound)
        low, high = low[1:], high[1:]
    fits = _is_taken if kind == "input" else _is_given
    if not all(fits(length, least, most) for length, least, most in zip(dims, low, high, strict=True)):
        yield at_line(model, tensor.line, RULE, f"{what} with dims {list(dims)}", f"{_bounds(bound)}, as in the engine")


def _batch(model: ModelView, what: str, tensor: Tensor, bound: EngineTensor) -> Iterator[Finding]:
    """Batches from 1 to max_batch_size; an output's free first axis is -1."""
    limit, least, most = model.config.max_batch_size, bound.min[0], bound.max[0]
    if most != -1 and not least <= 1 <= limit <= most:
        found = f"{what} with max_batch_size {limit}"
        allowed = f"batches from {least} to {most}, which the engine takes" if least <= 1 else "an engine with min 1"
        yield at_line(model, tensor.line, RULE, found, allowed)


def _is_taken(length: int, least: int, most: int) -> bool:
    return length == -1 or least <= length <= most


def _is_given(length: int, least: int, most: int) -> bool:
    """A length that the configuration leaves free and the engine does not is refused, too."""
    return least == -1 or least == most == length


def _bounds(bound: EngineTensor) -> str:
    return str(list(bound.min)) if bound.min == bound.max else f"from {list(bound.min)} to {list(bound.max)}"
