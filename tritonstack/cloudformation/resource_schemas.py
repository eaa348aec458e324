"""CloudFormation's resource schemas (``data/resource_schemas.json``): which changes replace a resource."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal


@functools.cache
def schema_data() -> dict[str, Any]:
    """The stored parts of the schemas: ``source``, ``types`` (whole, of the local AWS) and ``others``.

    The local AWS and reviews read the same file: what one of them replaces, the other expects to be replaced.
    """
    file = Path(__file__).resolve().parent / "data/resource_schemas.json"
    data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return data


CUSTOM = "AWS::CloudFormation::CustomResource"
Replaces = Literal["no", "maybe", "yes"]
_ABSENT = object()


@dataclass(frozen=True, kw_only=True)
class ReplacementRules:
    """Which changes of a type's properties replace the resource."""

    # paths whose change replaces it, as names from its properties; ``*`` is any item
    create_only: tuple[tuple[str, ...], ...]
    conditional: tuple[tuple[str, ...], ...]  # paths whose change may replace it
    name: str | None  # the property with the physical name, where a change of it replaces the resource; else None

    def of(self, path: Sequence[str | int], before: Any = None, after: Any = None) -> Replaces:
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
    data, name = schema_data(), CUSTOM if type_name.startswith("Custom::") else type_name
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
