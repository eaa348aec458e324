"""Properties of a template against CloudFormation's resource schemas: names, required ones, enumerations."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tritonstack.cloudformation.resource_schemas import schema_data
from tritonstack_local.emulator.request_validation import enumeration


@dataclass(frozen=True, kw_only=True)
class ResourceSchema:
    """What is known of one resource type."""

    type_name: str  # ``AWS::S3::Bucket``
    source: str  # where the schema comes from
    create_only: tuple[str, ...]  # properties whose change replaces the resource, whatever of them changes
    conditionally_create_only: tuple[str, ...]  # properties whose change may
    read_only: tuple[str, ...]  # attributes, never properties of a template
    root: dict[str, Any]
    definitions: dict[str, Any]

    def problems(self, properties: dict[str, Any]) -> list[str]:
        """What is wrong with resolved properties: unknown names, missing ones, values outside an enumeration."""
        known = {k: v for k, v in self.root["properties"].items() if k not in self.read_only}
        return list(self._problems({**self.root, "properties": known}, properties, "#"))

    def _problems(self, node: dict[str, Any], value: Any, path: str) -> Iterator[str]:
        while "ref" in node:
            node = self.definitions.get(node["ref"].partition("/")[0], {})
        if isinstance(value, dict) and "properties" in node:
            yield from self._object_problems(node, value, path)
        elif isinstance(value, list) and "items" in node:
            for index, item in enumerate(value):
                yield from self._problems(node["items"], item, f"{path}/{index}")
        elif "enum" in node and not isinstance(value, dict | list) and _text(value) not in map(_text, node["enum"]):
            allowed = enumeration(str(value), list(map(_text, node["enum"])))
            yield f"{path}: {value} is not a valid enum value, allowed: {allowed}"

    def _object_problems(self, node: dict[str, Any], value: dict[str, Any], path: str) -> Iterator[str]:
        members = node["properties"]
        for name in node.get("required", []):
            if name not in value:
                yield f"{path}: required key [{name}] not found"
        for name, item in value.items():
            if name in members:
                yield from self._problems(members[name], item, f"{path}/{name}")
            elif node.get("closed"):
                near = difflib.get_close_matches(name, list(members), 1)
                yield f"{path}: extraneous key [{name}] is not permitted" + (f" (near: {near[0]})" if near else "")


def _text(value: Any) -> str:
    """A template may spell ``true`` and ``"true"`` alike."""
    return str(value).lower() if isinstance(value, bool) else str(value)


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
            root=kept["root"],
            definitions=kept["definitions"],
        )
        for name, kept in data["types"].items()
    }


def _whole(names: list[str]) -> tuple[str, ...]:
    return tuple(name for name in names if "/" not in name)
