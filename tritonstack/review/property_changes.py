"""Two values, property by property."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tritonstack.review.change import ABSENT, PropertyChange
from tritonstack.review.intrinsics import is_function
from tritonstack.review.snapshot import Json

Path = tuple[str | int, ...]
_NAMES = ("Sid", "VariantName", "Name", "Id", "Key", "AlarmName", "ContainerHostname")
"""Members that name an item of a list, in the order in which they are tried."""


def differences(before: Json, after: Json, path: Path = ()) -> Iterator[PropertyChange]:
    """Where two values differ, as deep in as they can be told apart; nothing where they are equal.

    Items of lists are matched by the member that names them, where all have one and no two the same; else by place.
    """
    if _equal(before, after):
        return
    if isinstance(before, dict) and isinstance(after, dict) and not is_function(before) and not is_function(after):
        yield from _of_maps(before, after, path)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _of_lists(before, after, path)
    else:
        yield PropertyChange(path=path, before=before, after=after)


def leaves(value: Json, path: Path = ()) -> Iterator[tuple[Path, Json]]:
    """Every scalar, intrinsic function and empty container inside a value, with its path as ``differences`` has it."""
    if isinstance(value, dict) and value and not is_function(value):
        for name, each in value.items():
            yield from leaves(each, (*path, name))
    elif isinstance(value, list) and value:
        for place, each in zip(places(value), value, strict=True):
            yield from leaves(each, (*path, place))
    else:
        yield path, value


def places(items: Sequence[Json]) -> list[str | int]:
    """What a path calls each item of a list: its own name in brackets, or its number; a single one has its number."""
    names = _names(items) if len(items) > 1 else None
    return list(range(len(items))) if names is None else [f"[{name}]" for name in names]


def _of_maps(before: Mapping[str, Json], after: Mapping[str, Json], path: Path) -> Iterator[PropertyChange]:
    for name in sorted(before.keys() | after.keys()):
        inner = (*path, name)
        if name not in before:
            yield PropertyChange(path=inner, before=ABSENT, after=after[name])
        elif name not in after:
            yield PropertyChange(path=inner, before=before[name], after=ABSENT)
        else:
            yield from differences(before[name], after[name], inner)


def _of_lists(before: list[Json], after: list[Json], path: Path) -> Iterator[PropertyChange]:
    old, new = _matched_places(before, after)
    by_old, by_new = dict(zip(old, before, strict=True)), dict(zip(new, after, strict=True))
    found = False
    for place in [*old, *(each for each in new if each not in by_old)]:
        inner = (*path, place)
        if place not in by_new:
            changes: Iterator[PropertyChange] = iter([PropertyChange(path=inner, before=by_old[place], after=ABSENT)])
        elif place not in by_old:
            changes = iter([PropertyChange(path=inner, before=ABSENT, after=by_new[place])])
        else:
            changes = differences(by_old[place], by_new[place], inner)
        for change in changes:
            found = True
            yield change
    if not found:  # the same items in another order
        yield PropertyChange(path=path, before=before, after=after)


def _matched_places(before: list[Json], after: list[Json]) -> tuple[list[str | int], list[str | int]]:
    """The items' names, where both sides have them and at least one in common; else their numbers."""
    if len(before) > 1 or len(after) > 1:
        old, new = _names(before), _names(after)
        if old is not None and new is not None and set(old) & set(new):
            return [f"[{name}]" for name in old], [f"[{name}]" for name in new]
    return list(range(len(before))), list(range(len(after)))


def _names(items: Sequence[Json]) -> list[str] | None:
    """The items' own names; None where not all have one, or two the same."""
    for member in _NAMES:
        names = [each.get(member) if isinstance(each, dict) else None for each in items]
        texts = [name for name in names if isinstance(name, str)]
        if items and len(texts) == len(items) == len(set(texts)):
            return texts
    return None


def _equal(before: Json, after: Json) -> bool:
    """Equality as JSON has it: ``1`` is not ``true``."""
    if isinstance(before, bool) != isinstance(after, bool):
        return False
    if isinstance(before, dict) and isinstance(after, dict):
        return before.keys() == after.keys() and all(_equal(before[name], after[name]) for name in before)
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(map(_equal, before, after))
    return bool(before == after)
