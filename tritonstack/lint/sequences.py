"""Rules about sequence batching: its control tensors, its strategies, and its states."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePosixPath

from tritonstack.lint.registry import Finding
from tritonstack.lint.tensors import BYTES_OF, lengths_fit
from tritonstack.lint.view import RepositoryView, at_line
from tritonstack.models.model_config import Node
from tritonstack.models.model_view import ModelView

# Source: core src/model_config_utils.cc (GetBooleanSequenceControlProperties, GetTypedSequenceControlProperties,
# ValidateModelConfig), src/sequence_batch_scheduler/sequence_batch_scheduler.cc (Create, GenerateInitialStateData).


_BOOLEAN_KINDS = ("CONTROL_SEQUENCE_START", "CONTROL_SEQUENCE_END", "CONTROL_SEQUENCE_READY")
_CORRELATION = "CONTROL_SEQUENCE_CORRID"
_VALUES = ("int32_false_true", "fp32_false_true", "bool_false_true")
_CORRELATION_TYPES = ("TYPE_UINT64", "TYPE_INT64", "TYPE_UINT32", "TYPE_INT32", "TYPE_STRING")


def check_sequences(_view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """Check sequence batching."""
    sequence = model.config.node.node("sequence_batching")
    if sequence is None:
        return
    yield from _controls(model, sequence)
    yield from _strategies(model, sequence)
    yield from _states(model, sequence)


def _controls(model: ModelView, sequence: Node) -> Iterator[Finding]:
    """Control tensors: a name of its own for each, each kind once, values or a type by the kind."""
    tensors = sequence.nodes("control_input")
    names = Counter(tensor.text("name") for tensor in tensors)
    for tensor in tensors:
        name = tensor.text("name")
        if not name or names[name] > 1:
            found = f"control_input {name} twice" if name else "control_input without a name"
            yield at_line(model, tensor.line, "sequence-control", found, "a name of its own for each")
    controls = [control for tensor in tensors for control in tensor.nodes("control")]
    # Protobuf takes the first kind where none is given.
    kinds = [control.text("kind") or _BOOLEAN_KINDS[0] for control in controls]
    for control, kind in zip(controls, kinds, strict=True):
        if kind not in (*_BOOLEAN_KINDS, _CORRELATION):
            continue  # Triton looks for these kinds alone: another number is nothing to it
        if kinds.count(kind) > 1:
            yield at_line(model, control.line, "sequence-control", f"{kind} twice", "each kind once")
        yield from _control(model, control, kind)


def _control(model: ModelView, control: Node, kind: str) -> Iterator[Finding]:
    """The values of one control, or the type of the correlation id."""
    given = {field: len(control.scalars[field]) for field in _VALUES if control.scalars.get(field)}
    if kind in _BOOLEAN_KINDS:
        if list(given.values()) != [2]:
            found = f"{kind} with {', '.join(f'{count} values of {field}' for field, count in given.items()) or 'none'}"
            allowed = f"two values of exactly one of {', '.join(_VALUES)}, as fp32_false_true: [ 0, 1 ]"
            yield at_line(model, control.line, "sequence-control", found, allowed)
    elif given:
        yield at_line(model, control.line, "sequence-control", f"{kind} with {next(iter(given))}", "a data_type alone")
    elif control.text("data_type") not in _CORRELATION_TYPES:
        found = f"{kind} with data_type {control.text('data_type') or 'left out'}"
        yield at_line(model, control.line, "sequence-control", found, ", ".join(_CORRELATION_TYPES))


def _strategies(model: ModelView, sequence: Node) -> Iterator[Finding]:
    """The preferred sizes of ``oldest``, the share of slots of ``direct``."""
    oldest, direct = sequence.node("oldest"), sequence.node("direct")
    limit = max(model.config.max_batch_size, 0)
    for size in oldest.integers("preferred_batch_size") if oldest else ():
        if oldest and not 0 < size <= limit:
            line = oldest.line_of("preferred_batch_size")
            allowed = f"1 to max_batch_size, {limit}" if limit else "none: max_batch_size is 0"
            yield at_line(model, line, "sequence-strategy", f"preferred_batch_size {size}", allowed)
    for share in direct.scalars.get("minimum_slot_utilization", ()) if direct else ():
        if float(share.value) < 0 or float(share.value) > 1:  # of a value that is no number neither holds, as in Triton
            found = f"minimum_slot_utilization {share.value}"
            yield at_line(model, share.line, "sequence-strategy", found, "0 to 1")


def _states(model: ModelView, sequence: Node) -> Iterator[Finding]:
    """The values that states start with."""
    started = Counter(state.text("input_name") for state in sequence.nodes("state") if state.nodes("initial_state"))
    for state in sequence.nodes("state"):
        starts, name = state.nodes("initial_state"), state.text("input_name")
        if len(starts) > 1:
            found = f"{len(starts)} times initial_state of {name or '?'}"
            yield at_line(model, state.line, "sequence-state", found, "one initial_state, or none")
        elif starts and started[name] > 1:
            found = f"initial_state of {name or '?'} in {started[name]} states"
            yield at_line(model, state.line, "sequence-state", found, "each input_name once")
        for start in starts:
            yield from _initial_state(model, state, start)


def _initial_state(model: ModelView, state: Node, start: Node) -> Iterator[Finding]:
    """The values that a state starts with, against the state."""
    dims = start.integers("dims")
    wrong = {
        "without a name": not start.text("name"),
        f"of {start.text('data_type') or 'no type'}": _data_type(start) != _data_type(state),
        f"with dims {list(dims)}": -1 in dims or not lengths_fit(dims, state.integers("dims")),
        "without values": not (start.has("zero_data") or start.has("data_file")),
    }
    allowed = "a name, the state's type, a length for each of its dims, zero_data or data_file"
    for said, is_so in wrong.items():
        if is_so:
            found = f"initial_state of {state.text('input_name') or '?'} {said}"
            yield at_line(model, start.line, "sequence-state", found, allowed)
    yield from _state_file(model, start)


def _state_file(model: ModelView, start: Node) -> Iterator[Finding]:
    """The file that a state starts with: it is there, and long enough unless it holds text."""
    file = start.text("data_file")
    if not start.has("data_file") or ".." in PurePosixPath(file).parts:
        return
    line, place = start.line_of("data_file"), str(PurePosixPath("initial_state", file.lstrip("/")))
    if place not in model.files:
        yield at_line(model, line, "sequence-state", f"no file {place}", "a file that exists")
        return
    path, dims = model.on_disk(place), start.integers("dims")
    width = BYTES_OF.get(_data_type(start).removeprefix("TYPE_"), 0)
    needed = width * math.prod(dims) if dims and -1 not in dims else 0
    if path is not None and path.stat().st_size < needed:
        found = f"{place} with {path.stat().st_size} bytes"
        yield at_line(model, line, "sequence-state", found, f"{needed} bytes or more, for {list(dims)}")


def _data_type(node: Node) -> str:
    return node.text("data_type") or "TYPE_INVALID"
