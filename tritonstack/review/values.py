"""Values as a report shows them, and the lines of a difference between two."""

from __future__ import annotations

import json
import string
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from tritonstack.review.change import ABSENT, Absent
from tritonstack.review.intrinsics import is_function, readable
from tritonstack.review.snapshot import Json

ONE_LINE = 100
"""Characters: a list or map that is longer is shown a member a line."""
AROUND = 2
"""Lines of the same that are shown around a difference."""

_WORD = string.ascii_letters + string.digits

Sign = Literal["+", "-", " ", "…"]


@dataclass(frozen=True)
class DiffLine:
    """A line of a difference.

    Attributes:
        sign: ``+`` comes, ``-`` goes, `` `` stays, ``…`` lines that stay are left out here.
        head: what the line shares with the one that it takes the place of.
        changed: what differs; the whole line where it takes the place of none.
        tail: what it shares again.
    """

    sign: Sign
    head: str = ""
    changed: str = ""
    tail: str = ""

    @property
    def text(self) -> str:
        """The whole line."""
        return self.head + self.changed + self.tail


def texts_of(before: Json | Absent, after: Json | Absent) -> tuple[str | None, str | None]:
    """Both values as text; None for one that is absent. Values of two types never read the same."""
    old, new = _text(before), _text(after)
    if old == new and before != after:
        return json.dumps(before, sort_keys=True), json.dumps(after, sort_keys=True)
    return old, new


def diff_lines(before: str | None, after: str | None) -> tuple[DiffLine, ...]:
    """The lines of a difference; None is no text at all."""
    old = [] if before is None else before.split("\n")
    new = [] if after is None else after.split("\n")
    if len(old) == len(new) == 1:
        return tuple(_pair(old[0], new[0]))
    return tuple(_lines(old, new))


def _text(value: Json | Absent) -> str | None:
    if value is ABSENT:
        return None
    if value == "":
        return '""'
    text = readable(value)
    if isinstance(value, dict | list) and not is_function(value) and len(text) > ONE_LINE:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    return text


def _pair(before: str, after: str) -> Iterator[DiffLine]:
    """One line in the place of another: what they share at both ends is told apart."""
    head = _shared(before, after)
    rest = min(len(before), len(after)) - len(head)
    tail = _shared(before[::-1], after[::-1])[:rest][::-1]
    head, tail = head.rstrip(_WORD), tail.lstrip(_WORD)
    if len(head) + len(tail) < max(len(before), len(after)) // 3:
        head = tail = ""
    yield DiffLine("-", head, before[len(head) : len(before) - len(tail)], tail)
    yield DiffLine("+", head, after[len(head) : len(after) - len(tail)], tail)


def _shared(one: str, other: str) -> str:
    """What both begin with."""
    same = next((number for number, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    return one[: min(len(one), len(other)) if same is None else same]


def _lines(old: list[str], new: list[str]) -> Iterator[DiffLine]:
    for kind, first, last, start, end in SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from _same(old[first:last], at_start=first == 0, at_end=last == len(old))
            continue
        yield from (DiffLine("-", changed=line) for line in old[first:last])
        yield from (DiffLine("+", changed=line) for line in new[start:end])


def _same(lines: list[str], *, at_start: bool, at_end: bool) -> Iterator[DiffLine]:
    head, tail = (0 if at_start else AROUND), (0 if at_end else AROUND)
    if len(lines) <= head + tail + 1:
        yield from (DiffLine(" ", line) for line in lines)
        return
    yield from (DiffLine(" ", line) for line in lines[:head])
    yield DiffLine("…", f"{len(lines) - head - tail} lines stay")
    yield from (DiffLine(" ", line) for line in lines[len(lines) - tail :])
