"""Outer levels of a JSON or Universal Binary JSON file, which may be anybody's and large; the rest is passed over.

Nothing is built of what is below: time is that of the brackets and strings, memory that of the outline.
Source of the binary form: https://ubjson.org/type-reference/.
"""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

Outline = Mapping[tuple[str, ...], str]
"""Names of the objects around a value and its own → the value as text; of a short list of numbers ``[3,2,0]``."""

MOST_LEVELS = 100
"""Objects and lists inside each other; a forest has eight."""
MOST_TOKENS = 2_000_000
"""Brackets, names and strings of a document that is read, seconds' worth: those of 30,000 trees."""
_LEVELS = 5
_TEXT_BYTES = 1000
_MOST_VALUES = 10_000
_LIST_ITEMS = 16


class OutlineError(ValueError):
    """The file is no such document, or is damaged."""


@dataclass
class _Level:
    """An object or list that is open."""

    path: tuple[str, ...] | None  # None where nothing of it is kept
    is_list: bool
    name: str | None = None  # of the value that comes next, in an object
    items: int = -1  # how many are to come; -1 where an end is marked
    kind: bytes = b""  # of every item, where they have one


class _Kept:
    """The outline as far as it was read."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, ...], str] = {}
        self.tokens = 0

    def keep(self, path: tuple[str, ...] | None, value: str) -> None:
        if path and len(self.values) < _MOST_VALUES and len(value) <= _TEXT_BYTES:
            self.values[path] = value

    def has_room(self) -> bool:
        self.tokens += 1
        return self.tokens <= MOST_TOKENS


@contextmanager
def _mapped(path: Path) -> Iterator[mmap.mmap]:
    if not path.stat().st_size:
        raise OutlineError("an empty file")
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield data


_TOKEN = re.compile(rb'[\s,:]*+(?:"((?:[^"\\]++|\\.)*+)"|([\[{])|([\]}])|([^\s,:"\[\]{}]++))', re.DOTALL)
_WITHOUT_BRACKETS = re.compile(rb'[^"\[\]{}]*+')
_NUMBERS = re.compile(rb"\[[\s0-9,.eE+-]{0,200}+\]")


def json_outline(path: Path) -> Outline | None:
    """The outline of a JSON file; None for one with more tokens than are read.

    Numbers in lists are not looked at. Raises :class:`OutlineError` for what is no JSON, is cut off or nested too
    deeply.
    """
    with _mapped(path) as data:
        return _json(data)


def _json(data: mmap.mmap) -> Outline | None:
    kept, levels, position = _Kept(), [_Level(path=(), is_list=True)], 0
    while True:
        level = levels[-1]
        if level.is_list and len(levels) > 1 and (skipped := _WITHOUT_BRACKETS.match(data, position)):
            position = skipped.end()
        token = _TOKEN.match(data, position)
        if token is None:
            raise OutlineError(f"JSON that is cut off or damaged behind byte {position:,}")
        if not kept.has_room():
            return None
        start, position = token.start(token.lastindex or 0), token.end()
        if token[3]:
            _close(levels, token[3], position)
            if len(levels) == 1:
                return kept.values
            continue
        path = _inside(level)
        if token[2]:
            if path and token[2] == b"[" and (numbers := _NUMBERS.match(data, start)):
                kept.keep(path, "".join(numbers[0].decode().split()))
            _open(levels, _Level(path=path, is_list=token[2] == b"["), level)
        elif len(levels) == 1:
            raise OutlineError("no JSON object or list")
        elif level.is_list:
            continue
        else:
            at, end = token.span(token.lastindex or 0)
            text = data[at : min(end, at + _TEXT_BYTES + 1)].decode(errors="replace")
            if level.name is None and token[1] is None:
                raise OutlineError(f"JSON with a value without a name at byte {start:,}")
            _take(kept, level, path, text)


def _inside(level: _Level) -> tuple[str, ...] | None:
    """The path of the next value of an open object or list; None where it is not kept."""
    if level.path == () and level.is_list:
        return ()
    is_kept = level.path is not None and not level.is_list and level.name is not None and len(level.path) < _LEVELS
    return (*(level.path or ()), level.name or "") if is_kept else None


def _take(kept: _Kept, level: _Level, path: tuple[str, ...] | None, text: str) -> None:
    """Take a text for the name of what comes next, or for the value of the name that was."""
    if level.name is None:
        level.name = text
    else:
        kept.keep(path, text)
        level.name = None


def _open(levels: list[_Level], opened: _Level, around: _Level) -> None:
    if not around.is_list and around.name is None:
        raise OutlineError("an object with a value without a name")
    around.name = None
    if len(levels) > MOST_LEVELS:
        raise OutlineError(f"objects and lists nested more than {MOST_LEVELS} deep")
    levels.append(opened)


def _close(levels: list[_Level], mark: bytes, position: int) -> None:
    level = levels[-1]
    if len(levels) == 1 or (mark == b"]") != level.is_list or level.name is not None:
        raise OutlineError(f"JSON whose brackets do not match at byte {position:,}")
    levels.pop()


_INTEGERS = {b"i": (1, True), b"U": (1, False), b"I": (2, True), b"l": (4, True), b"L": (8, True)}
"""Mark → length in bytes, and whether there is a sign."""
_SIZES = {b"Z": 0, b"N": 0, b"T": 0, b"F": 0, b"C": 1, b"d": 4, b"D": 8} | {
    mark: size for mark, (size, _) in _INTEGERS.items()
}
_NOTHING = re.compile(rb"N*+")
_WORDS = {b"Z": "null", b"T": "true", b"F": "false"}


def ubjson_outline(path: Path) -> Outline | None:
    """The same of a file in Universal Binary JSON."""
    with _mapped(path) as data:
        return _Ubjson(data).outline()


class _Ubjson:
    """A reader of the binary form at a place of the file."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data, self.position = data, 0
        self.kept = _Kept()

    def outline(self) -> Outline | None:
        levels = [_Level(path=(), is_list=True, items=1)]
        while len(levels) > 1 or levels[0].items:
            level = levels[-1]
            if not self.kept.has_room():
                return None
            if len(levels) > 1 and self._ends(level):
                levels.pop()
                continue
            if not level.is_list:
                level.name = self._text()
            path, mark = _inside(level), level.kind or self._mark()
            level.items -= level.items > 0
            if mark in (b"[", b"{"):
                opened = _Level(path=path, is_list=mark == b"[")
                self._head(opened)
                _open(levels, opened, level)
            elif len(levels) == 1:
                raise OutlineError("no object or list of Universal Binary JSON")
            else:
                self._value(mark, path)
                level.name = None
        return self.kept.values

    def _take(self, length: int) -> bytes:
        """The next bytes, those that are kept of them at most."""
        if length < 0 or self.position + length > len(self.data):
            raise OutlineError(f"Universal Binary JSON that is cut off or damaged behind byte {self.position:,}")
        start, self.position = self.position, self.position + length
        return self.data[start : min(self.position, start + _TEXT_BYTES + 1)]

    def _mark(self) -> bytes:
        self._pass_over_nothing()
        return self._take(1)

    def _pass_over_nothing(self) -> None:
        """Pass over marks that mean nothing: ``N``, no operation."""
        if nothing := _NOTHING.match(self.data, self.position):
            self.position = nothing.end()

    def _integer(self, mark: bytes) -> int:
        if mark not in _INTEGERS:
            raise OutlineError(f"Universal Binary JSON with {mark!r} for a number at byte {self.position:,}")
        size, signed = _INTEGERS[mark]
        return int.from_bytes(self._take(size), "big", signed=signed)

    def _text(self) -> str:
        return self._take(self._integer(self._mark())).decode(errors="replace")

    def _peek(self) -> bytes:
        return self.data[self.position : self.position + 1]

    def _ends(self, level: _Level) -> bool:
        """Whether an object or list ends here; its mark is taken."""
        if level.items >= 0:
            return level.items == 0
        self._pass_over_nothing()
        ends = self._peek() == (b"]" if level.is_list else b"}")
        self.position += ends
        return ends

    def _head(self, level: _Level) -> None:
        """Kind and number of an object's or a list's items; those of a list of numbers are passed over."""
        if self._peek() == b"$":
            self._take(1)
            level.kind = self._take(1)
        if self._peek() == b"#":
            self._take(1)
            level.items = self._integer(self._mark())
        elif level.kind:
            raise OutlineError(f"Universal Binary JSON with a kind and no number at byte {self.position:,}")
        if level.items < -1 or (level.items == -1 and level.kind):
            raise OutlineError(f"Universal Binary JSON with {level.items} items at byte {self.position:,}")
        if level.is_list and level.kind in _SIZES:
            self._take(level.items * _SIZES[level.kind])
            level.items = 0
        elif level.is_list and level.path and 0 <= level.items <= _LIST_ITEMS:
            self._numbers(level)

    def _numbers(self, level: _Level) -> None:
        """Keep a short list of whole numbers, which is read again as any other."""
        start, found = self.position, []
        for _ in range(level.items):
            if self._peek() not in _INTEGERS:
                break
            found.append(str(self._integer(self._take(1))))
        if len(found) == level.items:
            self.kept.keep(level.path, f"[{','.join(found)}]")
        self.position = start

    def _value(self, mark: bytes, path: tuple[str, ...] | None) -> None:
        if mark in _INTEGERS:
            text = str(self._integer(mark))
        elif mark in (b"d", b"D"):
            text = repr(struct.unpack(">f" if mark == b"d" else ">d", self._take(_SIZES[mark]))[0])
        elif mark in (b"S", b"H"):
            text = self._text()
        elif mark in _SIZES:
            text = _WORDS.get(mark, "") or self._take(_SIZES[mark]).decode(errors="replace")
        else:
            raise OutlineError(f"Universal Binary JSON with an unknown mark {mark!r} at byte {self.position:,}")
        self.kept.keep(path, text)
