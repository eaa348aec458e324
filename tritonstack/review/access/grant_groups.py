"""Grants put together to statements: what differs in one element only becomes one group."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tritonstack.review.access.policies import (
    Element,
    Grant,
)


@dataclass(frozen=True, kw_only=True)
class Group:
    """Grants that make one statement: each of its principals, actions and resources with each other. All sorted."""

    grants: tuple[Grant, ...]
    principals: tuple[str, ...]
    actions: tuple[str, ...]
    resources: tuple[str, ...]

    @property
    def words(self) -> str:
        """``s3:GetObject, s3:PutObject on arn:…``."""
        actions = ", ".join(self.actions)
        return actions if self.resources == ("*",) and self.principals else f"{actions} on {', '.join(self.resources)}"


def grouped(grants: Iterable[Grant], *, by_conditions: bool = True) -> tuple[Group, ...]:
    """Statements merged by action, then by resource, then by principal; sorted.

    ``by_conditions``: whether grants with other conditions stay apart.
    """
    cells = [
        (
            (each.allows, each.conditions if by_conditions else None),
            [frozenset({each.action}), frozenset({each.resource}), frozenset({each.principal})],
            [each],
        )
        for each in sorted(grants, key=lambda each: each.order)
    ]
    for part in range(3):
        merged: dict[object, Any] = {}
        for base, parts, mine in cells:
            same = (base, *(each for number, each in enumerate(parts) if number != part))
            if same in merged:
                merged[same][1][part] |= parts[part]
                merged[same][2].extend(mine)
            else:
                merged[same] = (base, parts, mine)
        cells = list(merged.values())

    def words(elements: Iterable[Element | None]) -> tuple[str, ...]:
        return tuple(sorted(each.words for each in elements if each is not None))

    return tuple(
        Group(
            grants=tuple(sorted(mine, key=lambda each: each.order)),
            actions=words(parts[0]),
            resources=words(parts[1]),
            principals=words(parts[2]),
        )
        for _, parts, mine in cells
    )
