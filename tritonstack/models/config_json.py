"""A configuration as Triton's HTTP front end answers it: JSON with the fields' own names and their defaults.

As protobuf's JSON writes the message with ``preserve_proto_field_names`` and ``always_print_primitive_fields``, 64-bit
numbers as numbers (triton-inference-server/core, ``src/model_config_utils.cc``, ModelConfigToJson): scalar fields that
belong to no oneof always stand there, lists and maps too, messages only where they are set.
"""

from __future__ import annotations

import math
from typing import Any

from tritonstack.models.model_config import FieldSpec, Node, Typed, enum_members, is_message, message_fields

_NUMBERS = frozenset({"int32", "int64", "uint32", "uint64"})
_MAP_FIELDS = {"key", "value"}


def config_json(node: Node) -> dict[str, Any]:
    """The JSON of a whole configuration (``ModelConfig.node``)."""
    return _message(node, "ModelConfig")


def _message(node: Node, kind: str) -> dict[str, Any]:
    found = {}
    for name, spec in message_fields(kind).items():
        value = _messages(node, name, spec) if is_message(spec.type) else _scalars(node.scalars.get(name, []), spec)
        if value is not None:
            found[name] = value
    return found


def _messages(node: Node, name: str, spec: FieldSpec) -> Any:
    """A field of messages; None where there is nothing to write."""
    children = node.nodes(name)
    if set(message_fields(spec.type)) == _MAP_FIELDS:
        entry = message_fields(spec.type)
        return {_key(child, entry["key"]): _map_value(child, entry["value"]) for child in children}
    if spec.repeated:
        return [_message(child, spec.type) for child in children]
    return _message(children[-1], spec.type) if children else None


def _key(entry: Node, spec: FieldSpec) -> str:
    key = _scalars(entry.scalars.get("key", []), spec)
    return str(key).lower() if isinstance(key, bool) else str(key)


def _map_value(entry: Node, spec: FieldSpec) -> Any:
    if is_message(spec.type):
        return _message(entry.node("value") or Node(entry.line), spec.type)
    return _scalars(entry.scalars.get("value", []), spec)


def _scalars(values: list[Typed], spec: FieldSpec) -> Any:
    """A field of scalars; None where it is not set and belongs to a oneof."""
    if spec.repeated:
        return [_scalar(one, spec) for one in values]
    if values:
        return _scalar(values[-1], spec)
    return None if spec.group else _default(spec)


def _scalar(typed: Typed, spec: FieldSpec) -> Any:
    value = typed.value
    if enum_members(spec.type) and value not in enum_members(spec.type):
        return int(value)  # a number that no member has
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _default(spec: FieldSpec) -> Any:
    if members := enum_members(spec.type):
        return members[0]
    if spec.type == "bool":
        return False
    if spec.type in _NUMBERS:
        return 0
    return 0.0 if spec.type in ("float", "double") else ""
