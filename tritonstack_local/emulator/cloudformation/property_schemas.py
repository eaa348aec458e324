"""JSON Schema, as far as documents here need it; the properties of a template against CloudFormation's schemas.

CloudFormation's have names, required ones and enumerations (``ref`` for ``$ref``, ``closed`` for no other properties).
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tritonstack.cloudformation.resource_schemas import schema_data
from tritonstack_local.emulator.request_validation import enumeration

Schema = Mapping[str, Any]
_TYPES = {"array": list, "boolean": bool, "integer": int, "object": dict, "string": str, "text": str | int | float}
"""``text``: what YAML reads where a text is meant."""


def schema_problems(node: Schema, value: Any, path: str, definitions: Schema) -> Iterator[str]:
    """Problems of a value, each after the path of its place; none for None."""
    while "ref" in node:
        node = definitions.get(node["ref"].partition("/")[0], {})
    kind, low, high = node.get("type"), node.get("minimum", 0), node.get("maximum")
    if value is None:
        return
    if kind is not None and (not isinstance(value, _TYPES[kind]) or (kind == "integer" and value is True)):
        yield f"{path}: must be of type {kind}"
    elif kind == "integer" and (value < low or (high is not None and value > high)):
        yield f"{path}: must be from {low}" + (f" to {high}" if high is not None else "")
    elif isinstance(value, dict) and "properties" in node:
        yield from _object_problems(node, value, path, definitions)
    elif isinstance(value, list) and len(value) > node.get("maxItems", len(value)):
        yield f"{path}: must have at most {node['maxItems']} items"
    elif isinstance(value, list) and "items" in node:
        for index, item in enumerate(value):
            yield from schema_problems(node["items"], item, f"{path}/{index}", definitions)
    elif "enum" in node and not isinstance(value, dict | list) and _text(value) not in map(_text, node["enum"]):
        allowed = enumeration(str(value), list(map(_text, node["enum"])))
        yield f"{path}: {value} is not a valid enum value, allowed: {allowed}"


def _object_problems(node: Schema, value: dict[str, Any], path: str, definitions: Schema) -> Iterator[str]:
    members = node["properties"]
    for name in node.get("required", []):
        if name not in value:
            yield f"{path}: required key [{name}] not found"
    for name, item in value.items():
        if name in members:
            yield from schema_problems(members[name], item, f"{path}/{name}", definitions)
        elif node.get("closed"):
            near = difflib.get_close_matches(name, list(members), 1)
            yield f"{path}: extraneous key [{name}] is not permitted" + (f" (near: {near[0]})" if near else "")


def _text(value: Any) -> str:
    """A template may spell ``true`` and ``"true"`` alike."""
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, kw_only=True)
class ResourceSchema:
    """The schema of one resource type."""

    type_name: str  # ``AWS::S3::Bucket``
    source: str  # where the schema comes from
    create_only: tuple[str, ...]  # properties whose change replaces the resource, whatever of them changes
    conditionally_create_only: tuple[str, ...]  # properties whose change may
    read_only: tuple[str, ...]  # attributes, never properties of a template
    system_tags: bool  # whether CloudFormation tags its resources with ``aws:cloudformation:stack-id`` and the like
    root: dict[str, Any]
    definitions: dict[str, Any]

    def problems(self, properties: dict[str, Any]) -> list[str]:
        """Problems of resolved properties: unknown names, missing ones, values outside an enumeration."""
        known = {k: v for k, v in self.root["properties"].items() if k not in self.read_only}
        return list(schema_problems({**self.root, "properties": known}, properties, "#", self.definitions))


@functools.cache
def resource_schemas() -> dict[str, ResourceSchema]:
    """The schema of every type that the local AWS has, by type."""
    data = schema_data()
    return {
        name: ResourceSchema(
            type_name=name,
            source=data["source"],
            create_only=_whole(kept["create_only"]),
            conditionally_create_only=_whole(kept["conditionally_create_only"]),
            read_only=tuple(kept["read_only"]),
            system_tags=kept["system_tags"],
            root=kept["root"],
            definitions=kept["definitions"],
        )
        for name, kept in data["types"].items()
    }


def _whole(names: list[str]) -> tuple[str, ...]:
    return tuple(name for name in names if "/" not in name)
