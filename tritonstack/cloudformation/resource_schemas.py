"""CloudFormation's resource schemas (``data/resource_schemas.json``): what a template may hold, and what replaces."""

from __future__ import annotations

import difflib
import functools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

# The local AWS and reviews read the same file: what one of them replaces, the other expects to be replaced.
_LONGEST_ENUM = 40
_FILE = Path(__file__).resolve().parent / "data/resource_schemas.json"


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
            yield f"{path}: {value} is not a valid enum value, allowed: {enumeration(str(value), node['enum'])}"

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


def enumeration(value: str, allowed: list[Any]) -> str:
    """The allowed values, or where they are many how many and which are near."""
    if len(allowed) <= _LONGEST_ENUM:
        return ", ".join(map(_text, allowed))
    near = difflib.get_close_matches(value, list(map(_text, allowed)), 5, 0.5)
    return f"{len(allowed)} values" + (f", near: {', '.join(near)}" if near else "")


def _text(value: Any) -> str:
    """A template may spell ``true`` and ``"true"`` alike."""
    return str(value).lower() if isinstance(value, bool) else str(value)


@functools.cache
def resource_schemas() -> dict[str, ResourceSchema]:
    """The schema of every type that the local AWS has, by type."""
    data = _data()
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


@functools.cache
def _data() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))
    return data


CUSTOM = "AWS::CloudFormation::CustomResource"
Answer = Literal["no", "maybe", "yes"]
_ABSENT = object()


@dataclass(frozen=True, kw_only=True)
class ReplacementRules:
    """Which changes of a type's properties replace the resource."""

    # paths whose change replaces it, as names from its properties; ``*`` is any item
    create_only: tuple[tuple[str, ...], ...]
    conditional: tuple[tuple[str, ...], ...]  # paths whose change may replace it
    name: str | None  # the property with the physical name, where a change of it replaces the resource; else None

    def of(self, path: Sequence[str | int], before: Any = None, after: Any = None) -> Answer:
        """Whether a change at ``path`` replaces the resource.

        Args:
            path: names and list indexes from the properties; an index may be anything.
            before: the value there, None for none; compared in part where a rule names a part of it.
            after: likewise.
        """
        if any(_touches(rule, path, before, after) for rule in self.create_only):
            return "yes"
        return "maybe" if any(_touches(rule, path, before, after) for rule in self.conditional) else "no"


@functools.cache
def replacement_rules(type_name: str) -> ReplacementRules | None:
    """The rules of a type; None where CloudFormation's schemas have no such type.

    Custom resources share one: whether a function's response replaces them is in no schema.
    """
    data, name = _data(), CUSTOM if type_name.startswith("Custom::") else type_name
    # Of types that the local AWS lacks, the lists are all that is kept; an empty one may be absent.
    lists = data["types"].get(name, data["others"].get(name))
    if lists is None:
        return None
    last = type_name.rpartition("::")[2]
    return ReplacementRules(
        create_only=tuple(tuple(name.split("/")) for name in lists.get("create_only", [])),
        conditional=tuple(tuple(name.split("/")) for name in lists.get("conditionally_create_only", [])),
        name=next((name for name in lists.get("create_only", []) if name in {"Name", f"{last}Name"}), None),
    )


def _touches(rule: tuple[str, ...], path: Sequence[str | int], before: Any, after: Any) -> bool:
    for part, place in zip(rule, path, strict=False):
        if part not in {"*", place}:
            return False
    rest = rule[len(path) :]
    return not rest or _part(before, rest) != _part(after, rest)


def _part(value: Any, rule: tuple[str, ...]) -> Any:
    """What ``rule`` names in a value, which may be several parts of it."""
    if not rule:
        return value
    if rule[0] == "*":
        return [_part(each, rule[1:]) for each in value] if isinstance(value, list) else _ABSENT
    return _part(value[rule[0]], rule[1:]) if isinstance(value, dict) and rule[0] in value else _ABSENT
