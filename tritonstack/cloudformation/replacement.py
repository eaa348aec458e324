"""What a change of a property does to its resource, as CloudFormation's resource schemas say."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tritonstack.cloudformation.resource_schemas import replacement_lists

CUSTOM = "AWS::CloudFormation::CustomResource"
Answer = Literal["no", "maybe", "yes"]
_ABSENT = object()


@dataclass(frozen=True, kw_only=True)
class ReplacementRules:
    """One type's.

    Attributes:
        create_only: parts whose change replaces the resource, as names from its properties; ``*`` is any item.
        conditional: parts whose change may.
        name: the property that gives a resource a name of the template's choice; None where the type has none whose
            change replaces it.
    """

    create_only: tuple[tuple[str, ...], ...]
    conditional: tuple[tuple[str, ...], ...]
    name: str | None

    def of(self, path: Sequence[str | int], before: Any = None, after: Any = None) -> Answer:
        """What a change at ``path`` does.

        Args:
            path: names and list places from the properties; places of lists may be anything.
            before: the value there, looked into where the rule names a part of it; None where there was none.
            after: likewise.
        """
        if any(_touches(rule, path, before, after) for rule in self.create_only):
            return "yes"
        return "maybe" if any(_touches(rule, path, before, after) for rule in self.conditional) else "no"


@functools.cache
def replacement_rules(type_name: str) -> ReplacementRules | None:
    """The rules of a type; None where CloudFormation's schemas have no such type.

    Custom resources share one: a function's answer may replace them, which no schema knows.
    """
    lists = replacement_lists(CUSTOM if type_name.startswith("Custom::") else type_name)
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
