"""Grants put together again to statements that people can read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tritonstack.review.grants import Element, Grant


@dataclass(frozen=True, kw_only=True)
class Group:
    """Grants that make one statement: every one of its principals, actions and resources with each other.

    Attributes:
        grants: in order.
        principals: sorted; empty in a policy of an identity.
        actions: sorted.
        resources: sorted.
    """

    grants: tuple[Grant, ...]
    principals: tuple[str, ...]
    actions: tuple[str, ...]
    resources: tuple[str, ...]


def grouped(grants: Iterable[Grant], *, by_conditions: bool = True) -> tuple[Group, ...]:
    """As few statements as merging by action, then by resource, then by principal gives; sorted.

    Args:
        grants: in any order.
        by_conditions: whether grants with other conditions stay apart.
    """
    cells = [_Cell.of(each, by_conditions=by_conditions) for each in sorted(grants, key=lambda each: each.order)]
    for merge in (_actions, _resources, _principals):
        cells = _merged(cells, merge)
    return tuple(each.group() for each in cells)


@dataclass(frozen=True, kw_only=True)
class _Cell:
    base: tuple[object, ...]
    principals: frozenset[Element | None]
    actions: frozenset[Element]
    resources: frozenset[Element]
    grants: tuple[Grant, ...]

    @classmethod
    def of(cls, grant: Grant, *, by_conditions: bool) -> _Cell:
        return cls(
            base=(grant.allows, grant.conditions if by_conditions else None),
            principals=frozenset({grant.principal}),
            actions=frozenset({grant.action}),
            resources=frozenset({grant.resource}),
            grants=(grant,),
        )

    def group(self) -> Group:
        return Group(
            grants=tuple(sorted(self.grants, key=lambda each: each.order)),
            principals=tuple(sorted(each.words for each in self.principals if each is not None)),
            actions=tuple(sorted(each.words for each in self.actions)),
            resources=tuple(sorted(each.words for each in self.resources)),
        )


def _actions(cell: _Cell) -> tuple[object, ...]:
    return (cell.base, cell.principals, cell.resources)


def _resources(cell: _Cell) -> tuple[object, ...]:
    return (cell.base, cell.principals, cell.actions)


def _principals(cell: _Cell) -> tuple[object, ...]:
    return (cell.base, cell.actions, cell.resources)


def _merged(cells: Iterable[_Cell], same: Callable[[_Cell], tuple[object, ...]]) -> list[_Cell]:
    """Cells that are the same but in one part, as one."""
    found: dict[tuple[object, ...], _Cell] = {}
    for cell in cells:
        other = found.setdefault(same(cell), cell)
        if other is not cell:
            found[same(cell)] = _Cell(
                base=cell.base,
                principals=other.principals | cell.principals,
                actions=other.actions | cell.actions,
                resources=other.resources | cell.resources,
                grants=other.grants + cell.grants,
            )
    return list(found.values())
