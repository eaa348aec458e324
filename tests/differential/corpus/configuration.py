"""A configuration as data, its text in the ways that people write protobuf's text format, and single mistakes in it."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Message = dict[str, Any]
"""Field → text, number, truth value, :class:`Word`, message, or a list of one of these for a field that repeats."""


class Word(str):
    """A value written without quotes: of an enumeration, or a number in another spelling."""

    __slots__ = ()


@dataclass(frozen=True)
class Twice:
    """A field that is repeated with the same value."""

    value: object


def text(config: Message, draw: random.Random | None = None) -> str:
    """``config.pbtxt`` in the usual spelling, or with ``draw`` in any that protobuf's reader takes."""
    return _Writer(draw).fields(config, "\n")


@dataclass(frozen=True)
class _Writer:
    draw: random.Random | None

    def fields(self, message: Message, end: str) -> str:
        return "".join(self._field(name, value, end) for name, value in message.items())

    def _spelt(self, usual: str, *others: str) -> str:
        return self.draw.choice(others) if self.draw and self.draw.random() < 1 / 3 else usual

    def _field(self, name: str, value: object, end: str) -> str:
        match value:
            case Twice(value=one):
                return self._field(name, one, end) * 2
            case dict():
                return f"{name}{self._spelt(' ', ': ', ':', ' : ')}{self._value(value)}{self._end(end)}"
            case list() if value and self.draw and self.draw.random() < 1 / 3:
                return "".join(self._field(name, one, end) for one in value)
            case list():
                colon = self._spelt(" ", ": ") if value and isinstance(value[0], dict) else ": "
                listed = self._spelt(", ", " , ", ",\n  ").join(self._value(one) for one in value)
                return f"{name}{colon}[ {listed} ]{self._end(end)}"
        return f"{name}{self._spelt(': ', ':', ' : ', ':  ')}{self._value(value)}{self._end(end)}"

    def _end(self, usual: str) -> str:
        return self._spelt(usual, "\n", ", ", "; ", ",\n", ' # a comment: { [ "\n', "\n\n\t")

    def _value(self, value: object) -> str:
        match value:
            case dict():
                opening, closing = ("<", ">") if self._spelt("{", "<") == "<" else ("{", "}")
                return f"{opening} {self.fields(value, ' ')}{closing}"
            case bool():
                return self._spelt("true", "True", "t", "1") if value else self._spelt("false", "False", "f", "0")
            case Word():
                return str(value)
            case str():
                return self._spelt(f'"{value}"', f"'{value}'", f"\"{value[:2]}\" '{value[2:]}'", _escaped(value))
            case list():
                return f"[ {', '.join(self._value(one) for one in value)} ]"
        return str(value)


def _escaped(value: str) -> str:
    return '"' + "".join(f"\\{ord(each):03o}" if each.isascii() and each.isalpha() else each for each in value) + '"'


def mutated(config: Message, draw: random.Random) -> Message:
    """The configuration with one field, anywhere in it, misspelt, doubled, left out, or with another value."""
    changed = copy.deepcopy(config)
    message, name = draw.choice(list(_places(changed)))
    how = draw.choice(["misspelt", "twice", "left out", "value", "value", "value"])
    fields = dict(message)
    message.clear()
    for each, value in fields.items():
        if each != name:
            message[each] = value
        elif how == "misspelt":
            message[_misspelt(name, draw)] = value
        elif how != "left out":
            message[name] = Twice(value) if how == "twice" else _other(value, draw)
    return changed


def _places(message: Message) -> Iterator[tuple[Message, str]]:
    """Every field of a message and of those inside of it: the message that holds it, and its name."""
    for name, value in message.items():
        yield message, name
        for inside in value if isinstance(value, list) else [value]:
            if isinstance(inside, dict):
                yield from _places(inside)


def _misspelt(name: str, draw: random.Random) -> str:
    head, *rest = name.split("_")
    ways = [
        f"{name}s",
        name[:-1],
        name.replace("_", ""),
        name.title(),
        f"{name}_",
        head + "".join(map(str.title, rest)),
    ]
    return draw.choice([way for way in ways if way != name])


def _other(value: object, draw: random.Random) -> object:
    """Another value than a field's, of its type or not. No number is so large that Triton would allocate by it."""
    others: list[object] = [[], {}, True, "word", Word("word"), 2**64]
    match value:
        case bool():
            others = [Word("True"), Word("TRUE"), Word("yes"), 2, "true", not value, not value]
        case int() | float():
            others = [-1, 0, 1, 2, 3, 2**64, Word("1.5"), Word("0x2"), Word("08"), f"{value}", [value], True]
        case Word():
            shorter = Word(value.partition("_")[2] or "WORD")
            others = [str(value), Word(value.lower()), shorter, Word(f"{value}S"), 1, 2, 99]
        case str():
            others = [Word("word"), 1, "", value.upper(), f"{value}x", [value], "other"]
        case [int(), *_]:
            others = [[], [*value, 0], [*value, -1], [*value, 5], value[:-1], [-2], [f"{value[0]}"], Word("[ 4, ]")]
        case [dict(), *_]:
            others = [[], value[:-1], [*value, value[-1]], value[0], {}, Word("[ { }, ]")]
        case dict():
            others = [[], {}, [value], True, "text"]
    return draw.choice(others)


_MARKS = '{}[]<>":,'


def damaged(written: str, draw: random.Random) -> str:
    """The text with one of its brackets, quotes, colons and commas left out, doubled or another."""
    place = draw.choice([index for index, each in enumerate(written) if each in _MARKS])
    instead = draw.choice(["", "", written[place] * 2, "=" if written[place] == ":" else draw.choice(_MARKS), "”"])
    return written[:place] + instead + written[place + 1 :]
