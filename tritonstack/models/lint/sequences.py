"""Rules about sequence batching: control tensors, slots and states.

Source: core src/model_config_utils.cc (GetBooleanSequenceControlProperties, GetTypedSequenceControlProperties,
ValidateModelConfig), src/sequence_batch_scheduler/sequence_batch_scheduler.cc (GenerateInitialStateData).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tritonstack.models.lint.finding import Finding
from tritonstack.models.lint.place import at_line
from tritonstack.models.lint.view import ModelView, RepositoryView
from tritonstack.models.model_config import Node

_RULE = "sequence-batching"
_BOOLEAN_KINDS = ("CONTROL_SEQUENCE_START", "CONTROL_SEQUENCE_END", "CONTROL_SEQUENCE_READY")
_VALUES = ("int32_false_true", "fp32_false_true", "bool_false_true")
_ID_TYPES = ("TYPE_UINT64", "TYPE_INT64", "TYPE_UINT32", "TYPE_INT32", "TYPE_STRING")


def check(_view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """What is wrong with sequence batching."""
    sequence = model.config.node.node("sequence_batching")
    if sequence is None:
        return
    yield from _controls(model, sequence)
    oldest, direct = sequence.node("oldest"), sequence.node("direct")
    limit = max(model.config.max_batch_size, 0)
    for size in oldest.integers("preferred_batch_size") if oldest else ():
        if oldest and not 0 < size <= limit:
            line = oldest.line_of("preferred_batch_size")
            yield at_line(model, line, _RULE, f"preferred_batch_size {size}", f"1 to max_batch_size, {limit}")
    if direct is not None and direct.scalars.get("minimum_slot_utilization"):
        share = float(direct.scalars["minimum_slot_utilization"][-1].value)
        if share < 0 or share > 1:
            line = direct.line_of("minimum_slot_utilization")
            yield at_line(model, line, _RULE, f"minimum_slot_utilization {share}", "0 to 1")
    for state in sequence.nodes("state"):
        for start in state.nodes("initial_state"):
            yield from _initial_state(model, state, start)


def _controls(model: ModelView, sequence: Node) -> Iterator[Finding]:
    tensors = sequence.nodes("control_input")
    names = Counter(tensor.text("name") for tensor in tensors)
    controls = [control for tensor in tensors for control in tensor.nodes("control")]
    kinds = Counter(_kind(control) for control in controls)
    for tensor in tensors:
        name = tensor.text("name")
        if not name or names[name] > 1:
            found = f"control_input {name} twice" if name else "control_input without a name"
            yield at_line(model, tensor.line, _RULE, found, "a name of its own for each")
    for control in controls:
        kind = _kind(control)
        if kinds[kind] > 1:
            yield at_line(model, control.line, _RULE, f"{kind} twice", "each kind once")
        yield from _values(model, control, kind)


def _values(model: ModelView, control: Node, kind: str) -> Iterator[Finding]:
    given = {field: len(control.scalars.get(field, ())) for field in _VALUES if control.scalars.get(field)}
    if kind in _BOOLEAN_KINDS:
        if list(given.values()) != [2]:
            found = f"{kind} with {', '.join(f'{count} values of {field}' for field, count in given.items()) or 'none'}"
            allowed = f"two values of exactly one of {', '.join(_VALUES)}"
            yield at_line(model, control.line, _RULE, found, allowed)
    elif given:
        yield at_line(model, control.line, _RULE, f"{kind} with {next(iter(given))}", "a data_type alone")
    elif control.text("data_type") not in _ID_TYPES:
        found = f"{kind} with data_type {control.text('data_type') or 'left out'}"
        yield at_line(model, control.line, _RULE, found, ", ".join(_ID_TYPES))


def _initial_state(model: ModelView, state: Node, start: Node) -> Iterator[Finding]:
    """The values that a state starts with, against the state."""
    what = f"initial_state of {state.text('input_name') or '?'}"
    file = start.text("data_file")
    wrong = {
        "without a name": not start.text("name"),
        f"of {start.text('data_type') or 'no type'}": start.text("data_type") != state.text("data_type"),
        f"with dims {list(start.integers('dims'))}": not _starts(start.integers("dims"), state.integers("dims")),
        "without values": not (start.has("zero_data") or file),
        f"in the file initial_state/{file}": bool(file) and f"initial_state/{file}" not in model.files,
    }
    allowed = "a name, the state's type, a length for each of its dims, zero_data or a file that is there"
    for said, is_so in wrong.items():
        if is_so:
            yield at_line(model, start.line, _RULE, f"{what} {said}", allowed)


def _starts(start: tuple[int, ...], state: tuple[int, ...]) -> bool:
    """Whether a state of these dims can start with values of those."""
    fits = len(start) == len(state) and all(b in (-1, a) for a, b in zip(start, state, strict=True))
    return fits and -1 not in start


def _kind(control: Node) -> str:
    return control.text("kind") or "CONTROL_SEQUENCE_START"
