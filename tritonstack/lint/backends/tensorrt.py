"""Rules about a TensorRT model: its configuration against its engine, and fields that Triton takes of TensorRT alone.

Source: tensorrt_backend src/instance_state.cc (ModelInstanceState::InitializeConfigExecuteInputBindings,
InitializeConfigExecuteOutputBindings, ValidateDimension, and after them "every index which corresponds to an execution
binding is initialized"), src/tensorrt_utils.cc (CompareDimsSupported).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tritonstack.lint.completion import complete, promised_graph
from tritonstack.lint.registry import Finding
from tritonstack.lint.tensors import fed_by_triton
from tritonstack.lint.view import RepositoryView, at_field, at_line
from tritonstack.models.manifest import EngineEntry, EngineTensor, engine_manifest_name
from tritonstack.models.model_config import Tensor
from tritonstack.models.model_view import ModelView
from tritonstack.models.runtime_options import INT64_TENSORS_SINCE, EngineShapes, read_profiles


def check_engine(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """Differences between a configuration and its engine, as the recipe declares it or its build described it."""
    if model.backend != "tensorrt":
        return
    yield from _integers(view, model)
    engine = view.recipe.engine if view.recipe and model.name == view.addressed else None
    if engine is not None:
        yield from _profiles_of_engine(model, engine.profiles)
        used = _used(model, engine.profiles)
        promised = [
            EngineTensor(name=name, datatype="", min=_ends(min, used, name), max=_ends(max, used, name))
            for name in used[0]
        ]
        yield from _compare(model, "input", model.config.inputs, promised)
    for version in model.served_versions:
        path = model.on_disk(engine_manifest_name(f"{version}/{model.model_file}"))
        if path is not None:
            try:
                built = EngineEntry.model_validate_json(path.read_bytes())
            except ValueError:
                continue  # a file of that name from elsewhere
            if engine is None:
                yield from _profiles_of_engine(model, read_profiles(built.options))
            yield from _compare(model, "input", model.config.inputs, built.inputs)
            yield from _compare(model, "output", model.config.outputs, built.outputs)


Profiles = Sequence[Mapping[str, EngineShapes]]
"""An engine's optimisation profiles by their numbers: input → its shapes."""


def _groups(model: ModelView) -> list[tuple[int, tuple[int, ...]]]:
    """Line and optimisation profiles of each instance group: profile 0 where it names none, as Triton takes it."""
    found = []
    for group in model.config.node.nodes("instance_group"):
        numbers = [int(match[1]) for text in group.texts("profile") if (match := _INTEGER.match(text))]
        found.append((group.line_of("profile") or group.line, tuple(dict.fromkeys(numbers)) or (0,)))
    return found or [(model.config.node.line, (0,))]


def _used(model: ModelView, profiles: Profiles) -> Profiles:
    """The profiles that an instance group uses, of those that the engine has; the first where there is none."""
    numbers = sorted({number for _, group in _groups(model) for number in group if 0 <= number < len(profiles)})
    return [profiles[number] for number in numbers or (0,)]


def _ends(choose: Callable[[Iterable[int]], int], profiles: Profiles, name: str) -> tuple[int, ...]:
    """The smallest (``min``) or largest (``max``) lengths of an input in some profiles."""
    shapes = [(each[name].min if choose is min else each[name].max) for each in profiles]
    return tuple(choose(lengths) for lengths in zip(*shapes, strict=True))


def _profiles_of_engine(model: ModelView, profiles: Profiles) -> Iterator[Finding]:
    """Instance groups, max_batch_size and preferred_batch_size against the engine's profiles.

    Source: tensorrt_backend src/model_state.cc (GetProfileIndices, GetMaxSupportedBatchSize), src/instance_state.cc
    (GetMostOptimizedProfile).
    """
    if not profiles:
        return
    yield from _numbers_of_groups(model, profiles)
    if model.is_batched:
        yield from _batches_of_groups(model, profiles)
        yield from _preferred(model, profiles)


def _numbers_of_groups(model: ModelView, profiles: Profiles) -> Iterator[Finding]:
    """Profiles that instance groups name and the engine lacks, and those of the engine that no group uses."""
    groups, last = _groups(model), len(profiles) - 1
    for line, numbers in groups:
        for number in numbers:
            if number > last:
                found = f'profile: "{number}" of an engine with {len(profiles)}'
                yield at_line(model, line, "engine-profile", found, f'"0" to "{last}"' if last else '"0", or none')
    idle = sorted(set(range(len(profiles))) - {number for _, numbers in groups for number in numbers})
    if idle:
        found = f"no instance group with profile {', '.join(map(str, idle))} of the engine's {len(profiles)}"
        listed = ", ".join(f'"{number}"' for number in range(len(profiles)))
        allowed = f"instance_group [ {{ profile: [ {listed} ] }} ]"
        yield at_line(model, groups[0][0], "engine-profile-unused", found, allowed)


def _batches_of_groups(model: ModelView, profiles: Profiles) -> Iterator[Finding]:
    """Batches up to max_batch_size that no profile of an instance group takes, where an engine has several."""
    if len(profiles) == 1:
        return
    batches = [
        range(max(each.min[0] for each in profile.values()), min(each.max[0] for each in profile.values()) + 1)
        for profile in profiles
    ]
    limit = model.config.max_batch_size
    for line, numbers in _groups(model):
        taken = [batches[number] for number in numbers if number < len(profiles)]
        gap = [size for size in range(1, limit + 1) if taken and not any(size in each for each in taken)]
        if gap:
            those = f"{gap[0]} to {gap[-1]}" if len(gap) > 1 else str(gap[0])
            found = f"max_batch_size {limit}, and profile {', '.join(map(str, numbers))} takes no batch of {those}"
            yield at_line(model, line, "engine-batch", found, "profiles of a group that take every batch from 1 on")


def _preferred(model: ModelView, profiles: Profiles) -> Iterator[Finding]:
    """Batch sizes that the dynamic batcher waits for and that the engine was not built to be fastest for."""
    batching = model.config.node.node("dynamic_batching")
    if batching is None:
        return
    best = sorted({min(each.opt[0] for each in profile.values()) for profile in _used(model, profiles)})
    for size in batching.integers("preferred_batch_size"):
        if size not in best:
            found = f"preferred_batch_size {size}, which is the optimal batch of no profile that is used"
            line = batching.line_of("preferred_batch_size")
            yield at_line(model, line, "engine-preferred-batch", found, ", ".join(map(str, best)))


def _compare(
    model: ModelView, kind: str, tensors: Sequence[Tensor], bound: Sequence[EngineTensor]
) -> Iterator[Finding]:
    table = {each.name: each for each in bound}
    for tensor in tensors:
        if tensor.name in table:
            yield from _tensor(model, kind, tensor, table[tensor.name])
        else:
            found = f"{kind} {tensor.name}, which the engine lacks"
            yield at_line(model, tensor.line, "engine-tensor", found, ", ".join(sorted(table)) or f"no {kind}")
    missing = sorted(table.keys() - {tensor.name for tensor in tensors} - fed_by_triton(model))
    if missing and tensors:  # without any, Triton completes the configuration from the plan
        found = f"no {kind} {missing[0]}, which the engine has"
        yield at_field(model, kind, "engine-tensor", found, f"every {kind} of the engine")


def _tensor(model: ModelView, kind: str, tensor: Tensor, bound: EngineTensor) -> Iterator[Finding]:
    what = f"{kind} {tensor.name}"
    if bound.datatype and tensor.data_type != bound.datatype:
        allowed = f"{bound.datatype}, as in the engine"
        yield at_line(model, tensor.line, "engine-tensor", f"{what} as {tensor.data_type}", allowed)
    dims = tensor.dims if tensor.reshape is None else tensor.reshape
    low, high = bound.min, bound.max
    bounds = f"{list(low)}" if low == high else f"from {list(low)} to {list(high)}"
    if model.is_batched and low:
        yield from _batch(model, what, tensor, bound)
    if len(dims) + model.is_batched != len(low):
        found = f"{what} with dims {list(dims)}" + (" behind the batch dimension" if model.is_batched else "")
        allowed = f"rank {len(low)} in all, as in the engine: {bounds}"
        yield at_line(model, tensor.line, "engine-shape", found, allowed)
        return
    behind = slice(1 if model.is_batched else 0, None)
    if not all(_fits(kind, *each) for each in zip(dims, low[behind], high[behind], strict=True)):
        found = f"{what} with dims {list(dims)}"
        yield at_line(model, tensor.line, "engine-shape", found, f"{bounds}, as in the engine")


def _batch(model: ModelView, what: str, tensor: Tensor, bound: EngineTensor) -> Iterator[Finding]:
    """Batches from 1 to max_batch_size; an output's free first axis is -1."""
    limit, least, most = model.config.max_batch_size, bound.min[0], bound.max[0]
    if most != -1 and not least <= 1 <= limit <= most:
        found = f"{what} with max_batch_size {limit}"
        allowed = (
            f"up to {most}, which the engine takes" if least <= 1 else "an engine with min 1: requests may be single"
        )
        yield at_line(model, tensor.line, "engine-batch", found, allowed)


def _fits(kind: str, length: int, least: int, most: int) -> bool:
    """Whether shapes fit. An output's length that is free in the configuration and fixed in the engine does not."""
    return length == -1 or least <= length <= most if kind == "input" else least == -1 or least == most == length


def _integers(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """Whether integer types match: the release's TensorRT may turn the graph's INT64 into INT32."""
    release, graph = view.target.release, promised_graph(view, model)
    if release is None or release.tensorrt is None or graph is None:
        return
    version = release.tensorrt
    keeps = int(version.split(".")[0]) >= INT64_TENSORS_SINCE
    wide = {tensor.name for tensor in (*graph.inputs, *graph.outputs) if tensor.datatype == "INT64"}
    wanted = "INT64" if keeps else "INT32"
    for tensor in (*model.config.inputs, *model.config.outputs):
        if tensor.name in wide and tensor.data_type in ("INT32", "INT64") and tensor.data_type != wanted:
            found = f"{tensor.name} as {tensor.data_type} in release {release.version}, with TensorRT {version}"
            allowed = f"{wanted}: " + ("TensorRT keeps the graph's INT64" if keeps else "TensorRT makes INT32 of INT64")
            yield at_line(model, tensor.line, "engine-integers", found, allowed)


# Source: core src/model_config_utils.cc (ValidateModelInput, ValidateModelOutput, ValidateNonLinearFormatIO,
# ValidateInstanceGroup, GetProfileIndex).


_PLATFORM = "tensorrt_plan"
_AXES = 3
_INTEGER = re.compile(r"\s*([+-]?[0-9]+)")
"""What C++'s ``stoi`` reads of a text: it stops at the first other character (GetProfileIndex)."""
_LARGEST = 2**31 - 1


def check_tensorrt_fields(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """Fields that only TensorRT models may have, where others have them, or with a value that TensorRT has not."""
    if not model.is_readable:
        return
    # Triton looks at the platform, which it completes from the backend.
    platform = model.config.node.text("platform") or (_PLATFORM if model.backend == "tensorrt" else "")
    is_plan = platform == _PLATFORM
    done = complete(view, model)
    for kind, completed in (("input", done.inputs), ("output", done.outputs)):
        for tensor in model.config.node.nodes(kind):
            what = f"{kind} {tensor.text('name') or '?'}"
            if tensor.flag("is_shape_tensor") and not is_plan:
                found, allowed = f"{what} with is_shape_tensor", "with backend tensorrt only"
                yield at_field(model, "is_shape_tensor", "shape-tensor", found, allowed, tensor)
            if not tensor.flag("is_non_linear_format_io"):
                continue
            dims = next((each.dims for each in completed if each.name == tensor.text("name")), ())
            if not is_plan or (dims and len(dims) != _AXES):
                found = f"{what} with is_non_linear_format_io" + (f" and {len(dims)} dims" if is_plan else "")
                allowed = "with backend tensorrt and three dims only"
                yield at_field(model, "is_non_linear_format_io", "non-linear-format", found, allowed, tensor)
    if not model.config.node.has("ensemble_scheduling"):
        yield from _profiles(model, is_plan=is_plan)


def _profiles(model: ModelView, *, is_plan: bool) -> Iterator[Finding]:
    """Optimisation profiles of instance groups."""
    for group in model.config.node.nodes("instance_group"):
        profiles, line = group.texts("profile"), group.line_of("profile")
        if profiles and not is_plan:
            yield at_line(model, line, "instance-profile", "profile", "with backend tensorrt only")
        for profile in profiles if is_plan else ():
            number = _INTEGER.match(profile)
            if number is None or not 0 <= int(number[1]) <= _LARGEST:
                allowed = 'the number of a profile of the engine, as "0"'
                yield at_line(model, line, "instance-profile", f'profile: "{profile}"', allowed)
