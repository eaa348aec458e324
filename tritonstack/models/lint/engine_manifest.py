"""A rule about a TensorRT model's configuration against its plan, where a manifest beside the plan tells its tensors.

Source: tensorrt_backend src/instance_state.cc (InitializeConfigExecuteInputBindings,
InitializeConfigExecuteOutputBindings, and after them "every index which corresponds to an execution binding is
initialized"), src/tensorrt_utils.cc (CompareDimsSupported).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tritonstack.models.lint.finding import Finding
from tritonstack.models.lint.place import at_field, at_line
from tritonstack.models.lint.view import ModelView, RepositoryView
from tritonstack.models.manifest import EngineEntry, EngineTensor, engine_manifest_name
from tritonstack.models.model_config import Tensor

RULE = "engine-manifest"


def check(_view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """What differs between a configuration and the plans that lie beside their manifests."""
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
        given = {tensor.name for tensor in tensors} | _of_scheduler(model)
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
        yield at_line(model, tensor.line, RULE, found, f"rank {len(low)} in all, as in the engine: {_shown(bound)}")
        return
    if model.is_batched:
        yield from _batch(model, what, tensor, bound)
        low, high = low[1:], high[1:]
    fits = _is_taken if kind == "input" else _is_given
    if not all(fits(length, least, most) for length, least, most in zip(dims, low, high, strict=True)):
        yield at_line(model, tensor.line, RULE, f"{what} with dims {list(dims)}", f"{_shown(bound)}, as in the engine")


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


def _shown(bound: EngineTensor) -> str:
    return str(list(bound.min)) if bound.min == bound.max else f"from {list(bound.min)} to {list(bound.max)}"


def _of_scheduler(model: ModelView) -> set[str]:
    """Tensors that Triton itself feeds or takes: of batches, of sequences' controls and states."""
    node = model.config.node
    names = {str(typed.value) for each in node.nodes("batch_input") for typed in each.scalars.get("target_name", ())}
    names |= {str(typed.value) for each in node.nodes("batch_output") for typed in each.scalars.get("target_name", ())}
    sequence = node.node("sequence_batching")
    if sequence is not None:
        names |= {control.text("name") for control in sequence.nodes("control_input")}
        for state in sequence.nodes("state"):
            names |= {state.text("input_name"), state.text("output_name")}
    return names
