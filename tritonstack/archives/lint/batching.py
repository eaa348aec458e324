"""Rules about batches: the largest one, the dynamic batcher, its queues, and sequences.

Source: core src/model_config_utils.cc (ValidateModelConfig, GetBooleanSequenceControlProperties,
GetTypedSequenceControlProperties).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tritonstack.archives.lint.finding import Finding
from tritonstack.archives.lint.place import at_field, at_line
from tritonstack.archives.lint.view import ModelView, RepositoryView
from tritonstack.archives.model_config import Node

_BOOLEAN_KINDS = ("CONTROL_SEQUENCE_START", "CONTROL_SEQUENCE_END", "CONTROL_SEQUENCE_READY")
_VALUES = ("int32_false_true", "fp32_false_true", "bool_false_true")
_ID_TYPES = ("TYPE_UINT64", "TYPE_INT64", "TYPE_UINT32", "TYPE_INT32", "TYPE_STRING")


def check(_view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """What is wrong with batching."""
    limit = model.config.max_batch_size
    if limit < 0:
        yield at_field(model, "max_batch_size", "max-batch-size", f"max_batch_size: {limit}", "0 or more")
    dynamic = model.config.node.node("dynamic_batching")
    if dynamic is not None:
        yield from _dynamic(model, dynamic)
    sequence = model.config.node.node("sequence_batching")
    if sequence is not None:
        yield from _sequence(model, sequence)


def _dynamic(model: ModelView, dynamic: Node) -> Iterator[Finding]:
    if model.config.max_batch_size == 0:
        found, allowed = "dynamic_batching with max_batch_size 0", "max_batch_size: 1 or more"
        yield at_line(model, dynamic.line, "dynamic-batching", found, allowed)
    yield from _preferred(model, dynamic)
    levels, default = dynamic.integer("priority_levels"), dynamic.integer("default_priority_level")
    if levels and not 1 <= default <= levels:
        found = f"default_priority_level {default}"
        yield at_line(model, dynamic.line, "priority-level", found, f"1 to priority_levels, {levels}")
    policies = dynamic.nodes("priority_queue_policy")
    for policy in policies:
        if levels and not 1 <= policy.integer("key") <= levels:
            found = f"priority_queue_policy of level {policy.integer('key')}"
            yield at_line(model, policy.line, "priority-level", found, f"1 to priority_levels, {levels}")
    if dynamic.flag("preserve_ordering"):
        yield from _ordering(model, dynamic, levels)


def _ordering(model: ModelView, dynamic: Node, levels: int) -> Iterator[Finding]:
    """``preserve_ordering`` against what would let one request overtake another."""
    line = dynamic.line_of("preserve_ordering")
    if levels > 1:
        found = f"preserve_ordering with {levels} priority levels"
        yield at_line(model, line, "preserve-ordering", found, "one level, or no preserve_ordering")
    policies = [dynamic.node("default_queue_policy")]
    policies += [entry.node("value") for entry in dynamic.nodes("priority_queue_policy")]
    for policy in policies:
        if policy and policy.integer("default_timeout_microseconds") and policy.text("timeout_action") == "DELAY":
            found = "preserve_ordering with a queue policy that delays what timed out"
            yield at_line(model, policy.line, "preserve-ordering", found, "timeout_action: REJECT")


def _preferred(model: ModelView, batcher: Node) -> Iterator[Finding]:
    limit = max(model.config.max_batch_size, 0)
    for size in batcher.integers("preferred_batch_size"):
        if not 0 < size <= limit:
            line = batcher.line_of("preferred_batch_size")
            allowed = f"1 to max_batch_size, {limit}" if limit else "none: max_batch_size is 0"
            yield at_line(model, line, "preferred-batch-size", f"preferred_batch_size {size}", allowed)


def _sequence(model: ModelView, sequence: Node) -> Iterator[Finding]:
    yield from _controls(model, sequence)
    oldest, direct = sequence.node("oldest"), sequence.node("direct")
    if oldest is not None:
        yield from _preferred(model, oldest)
    if direct is not None and direct.scalars.get("minimum_slot_utilization"):
        share = float(direct.scalars["minimum_slot_utilization"][-1].value)
        if not 0 <= share <= 1:
            line = direct.line_of("minimum_slot_utilization")
            yield at_line(model, line, "sequence-slots", f"minimum_slot_utilization {share}", "0 to 1")


def _controls(model: ModelView, sequence: Node) -> Iterator[Finding]:
    tensors = sequence.nodes("control_input")
    names = Counter(tensor.text("name") for tensor in tensors)
    controls = [control for tensor in tensors for control in tensor.nodes("control")]
    kinds = Counter(_kind(control) for control in controls)
    for tensor in tensors:
        name = tensor.text("name")
        if not name or names[name] > 1:
            found = f"control_input {name} twice" if name else "control_input without a name"
            yield at_line(model, tensor.line, "sequence-control", found, "a name of its own for each")
    for control in controls:
        kind = _kind(control)
        if kinds[kind] > 1:
            yield at_line(model, control.line, "sequence-control", f"{kind} twice", "each kind once")
        yield from _values(model, control, kind)


def _values(model: ModelView, control: Node, kind: str) -> Iterator[Finding]:
    given = {field: len(control.scalars.get(field, ())) for field in _VALUES if control.scalars.get(field)}
    if kind in _BOOLEAN_KINDS:
        if list(given.values()) != [2]:
            found = f"{kind} with {', '.join(f'{count} values of {field}' for field, count in given.items()) or 'none'}"
            allowed = f"two values of exactly one of {', '.join(_VALUES)}"
            yield at_line(model, control.line, "sequence-control", found, allowed)
    elif given:
        yield at_line(model, control.line, "sequence-control", f"{kind} with {next(iter(given))}", "a data_type alone")
    elif control.text("data_type") not in _ID_TYPES:
        found = f"{kind} with data_type {control.text('data_type') or 'left out'}"
        yield at_line(model, control.line, "sequence-control", found, ", ".join(_ID_TYPES))


def _kind(control: Node) -> str:
    return control.text("kind") or "CONTROL_SEQUENCE_START"
