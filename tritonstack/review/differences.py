"""Differences of two values of a template, member by member; items of lists are matched by their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tritonstack.review.change import ABSENT, PropertyChange
from tritonstack.review.intrinsics import is_function
from tritonstack.review.snapshot import Json

Path = tuple[str | int, ...]
_NAMES = ("Sid", "VariantName", "Name", "Id", "Key", "AlarmName", "ContainerHostname")
"""Members that name an item of a list, in the order in which they are tried."""


def differences(before: Json, after: Json, path: Path = (), *, names: tuple[str, ...] = ()) -> Iterator[PropertyChange]:
    """Differences of two values, as deep in as possible; none where they are equal.

    Items of lists are matched by the member that names them, where all have one and no two the same; else by index.
    ``path``: where the values are. ``names``: members that name items, in place of CloudFormation's; a list without
    them is then one value.
    """
    if _equal(before, after):
        return
    if isinstance(before, dict) and isinstance(after, dict) and not is_function(before) and not is_function(after):
        for name in sorted(before.keys() | after.keys()):
            yield from _member(before, after, name, (*path, name), names)
    elif isinstance(before, list) and isinstance(after, list) and (places := _matched_places(before, after, names)):
        old, new = places
        by_old, by_new = dict(zip(old, before, strict=True)), dict(zip(new, after, strict=True))
        found = [
            each for place in {**by_old, **by_new} for each in _member(by_old, by_new, place, (*path, place), names)
        ]
        # None: the same items in another order.
        yield from found or [PropertyChange(path=path, before=before, after=after)]
    else:
        yield PropertyChange(path=path, before=before, after=after)


def _member(
    before: Mapping[str | int, Json],
    after: Mapping[str | int, Json],
    name: str | int,
    path: Path,
    names: tuple[str, ...],
) -> Iterator[PropertyChange]:
    if name in before and name in after:
        yield from differences(before[name], after[name], path, names=names)
    else:
        yield PropertyChange(path=path, before=before.get(name, ABSENT), after=after.get(name, ABSENT))


def leaves(value: Json, path: Path = ()) -> Iterator[tuple[Path, Json]]:
    """Every scalar, intrinsic function and empty container inside a value, with its path as ``differences`` has it."""
    if isinstance(value, dict) and value and not is_function(value):
        for name, each in value.items():
            yield from leaves(each, (*path, name))
    elif isinstance(value, list) and value:
        names = _item_names(value, _NAMES) if len(value) > 1 else None
        for place, each in enumerate(value):
            yield from leaves(each, (*path, f"[{names[place]}]" if names else place))
    else:
        yield path, value


def _matched_places(
    before: list[Json], after: list[Json], names: tuple[str, ...]
) -> tuple[list[str | int], list[str | int]] | None:
    """The items' names, where both sides have them and at least one in common; else, or of single items, indexes."""
    if names or len(before) > 1 or len(after) > 1:
        old, new = _item_names(before, names or _NAMES), _item_names(after, names or _NAMES)
        if old is not None and new is not None and (names or set(old) & set(new)):
            return [f"[{name}]" for name in old], [f"[{name}]" for name in new]
    return None if names else (list(range(len(before))), list(range(len(after))))


def _item_names(items: Sequence[Json], members: tuple[str, ...]) -> list[str] | None:
    """The items' own names; None where not all have one, or two the same."""
    for member in members:
        names = [each[member] for each in items if isinstance(each, dict) and isinstance(each.get(member), str)]
        if items and len(names) == len(items) == len(set(names)):
            return names
    return None


def _equal(before: Json, after: Json) -> bool:
    """Equality in JSON: ``1`` is not ``true``."""
    if isinstance(before, bool) != isinstance(after, bool):
        return False
    if isinstance(before, dict) and isinstance(after, dict):
        return before.keys() == after.keys() and all(_equal(before[name], after[name]) for name in before)
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(map(_equal, before, after))
    return bool(before == after)
