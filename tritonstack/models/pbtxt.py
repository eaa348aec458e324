"""A strict reader of protobuf's text format, as far as Triton's ``config.pbtxt`` uses it.

Every value keeps its line, so that a finding can point at it. What the format allows and this reader does not:
extension names and ``Any`` (``[a.b] : …``), which no Triton configuration has.
Why not protobuf's own reader: docs/decisions/0021-reading-config-pbtxt.md.

Source of the grammar: https://protobuf.dev/reference/protobuf/textformat-spec/.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

ValueKind = Literal["string", "integer", "float", "word"]

DEPTH_LIMIT = 100
"""How deep messages may be nested; protobuf's own reader stops at 100 as well."""

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r\f\v]+) | (?P<newline>\n) | (?P<comment>\#[^\n]*)
    | (?P<float>(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fF]?|[0-9]+[eE][+-]?[0-9]+[fF]?|[1-9][0-9]*[fF]|0[fF])
    | (?P<integer>0[xX][0-9a-fA-F]+|0[0-7]+|[1-9][0-9]*|0)
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<string>"(?:[^"\\\n]|\\[^\n])*"|'(?:[^'\\\n]|\\[^\n])*')
    | (?P<mark>[{}<>\[\]:,;-])
    """,
    re.VERBOSE,
)
_ESCAPE = re.compile(
    rb"\\(?:(?P<octal>[0-7]{1,3})|[xX](?P<hex>[0-9a-fA-F]{1,2})|u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})|u(?P<short>[0-9a-fA-F]{4})"
    rb"|U(?P<long>[0-9a-fA-F]{8})|(?P<simple>[abfnrtv?\\'\"])|(?P<bad>.))",
    re.DOTALL,
)
_SIMPLE = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "?": 63, "\\": 92, "'": 39, '"': 34}
_CLOSING = {"{": "}", "<": ">"}


LARGEST_TEXT = 1_000_000
"""Characters: one takes up to 300 times as many bytes as fields in memory. The largest published one has 5,000."""

LONGEST_INTEGER = 400
"""Digits: a number of more than 309 is infinite for every field, and beyond every field of whole numbers."""


class PbtxtError(ValueError):
    """The text is no message in text format. ``line`` counts from 1."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line
        self.message = message


@dataclass(frozen=True)
class Scalar:
    """One value: ``kind`` is how it was written; ``word`` covers enumeration values and ``true``/``false``.

    ``base``: the base that an integer was written in, which a fraction's field takes in decimal only.
    """

    kind: ValueKind
    value: str | int | float
    line: int
    base: int = 10


@dataclass(frozen=True)
class Field:
    """One occurrence of a field, each element of a list an occurrence of its own; ``listed`` if it was in ``[…]``.

    ``line`` and ``column``, from 1, are those of the name, or of the element.
    """

    name: str
    value: Scalar | Message
    line: int
    listed: bool = False
    column: int = field(default=0, compare=False)


@dataclass(frozen=True)
class EmptyList:
    """A list without elements. ``has_colon``: a colon is before it, which lists of scalars need."""

    name: str
    line: int
    column: int
    has_colon: bool


@dataclass(frozen=True)
class Message:
    """A message: its fields in the order of the text. An empty list (``dims: []``) leaves no field, as in protobuf.

    ``empty_lists``: positions of such lists; protobuf refuses them for fields that are no lists.
    """

    fields: tuple[Field, ...]
    line: int
    empty_lists: tuple[EmptyList, ...] = field(default=(), compare=False)

    def all(self, name: str) -> tuple[Field, ...]:
        return tuple(field for field in self.fields if field.name == name)

    def last(self, name: str) -> Scalar | Message | None:
        """The value of a field that is not repeated; None where it is not set."""
        found = self.all(name)
        return found[-1].value if found else None


@dataclass(frozen=True)
class Token:
    kind: str
    text: str
    line: int
    column: int


def parse(text: str) -> Message:
    """The message that ``text`` spells. Raises :class:`PbtxtError` with the line of the first thing that is wrong."""
    if len(text) > LARGEST_TEXT:
        raise PbtxtError(1, f"a configuration of {len(text):,} characters, at most {LARGEST_TEXT:,} are read")
    return _Reader(text).message(closing=None, opening=Token("", "", 1, 1), depth=0)


def tokens(text: str) -> Iterator[Token]:
    """The text's tokens without blanks and comments, the last of kind ``end``. Raises :class:`PbtxtError`."""
    line, line_start, position, previous_end, previous_kind = 1, 0, 0, -1, ""
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            found = text[position]
            what = "a string that does not end on its line" if found in "\"'" else f"unexpected {found!r}"
            raise PbtxtError(line, what)
        kind, part = match.lastgroup, match.group()
        touching = position == previous_end and previous_kind in ("integer", "float")
        if touching and kind in ("integer", "float", "word"):
            raise PbtxtError(line, f"a space is missing between a number and {part!r}")
        if kind == "newline":
            line, line_start = line + 1, match.end()
        elif kind not in ("space", "comment"):
            yield Token(kind, part, line, position - line_start + 1)
        position = match.end()
        previous_end, previous_kind = position, kind
    yield Token("end", "the end of the file", line, position - line_start + 1)


class _Reader:
    """A recursive descent over the tokens; one method a rule of the grammar."""

    def __init__(self, text: str) -> None:
        self.tokens = tokens(text)
        self.here = next(self.tokens)

    def advance(self) -> Token:
        """The current token; then moves on."""
        token, self.here = self.here, next(self.tokens)
        return token

    def take(self, *marks: str) -> Token | None:
        """The current token if it is one of these marks, then moves on."""
        return self.advance() if self.here.kind == "mark" and self.here.text in marks else None

    def message(self, *, closing: str | None, opening: Token, depth: int) -> Message:
        line = opening.line
        if depth > DEPTH_LIMIT:
            raise PbtxtError(line, f"messages nested more than {DEPTH_LIMIT} deep")
        fields: list[Field] = []
        empty_lists: list[EmptyList] = []
        while not (closing and self.take(closing)):
            if self.here.kind == "end":
                if closing is None:
                    break
                raise PbtxtError(self.here.line, f"the message opened on line {line} is not closed with {closing!r}")
            found = self.field(depth)
            if isinstance(found, EmptyList):
                empty_lists.append(found)
            else:
                fields += found
            self.take(",", ";")
        return Message(tuple(fields), line, tuple(empty_lists))

    def field(self, depth: int) -> list[Field] | EmptyList:
        if self.here.kind != "word":
            raise PbtxtError(self.here.line, f"a field's name was expected, found {self.here.text!r}")
        name = self.advance()
        colon = self.take(":") is not None
        listed = self.take("[") is not None
        values: list[tuple[Scalar | Message, Token]] = []
        if not listed:
            values.append((self.value(name, colon=colon, depth=depth), name))
        elif self.take("]"):
            return EmptyList(name.text, name.line, name.column, has_colon=colon)
        else:
            while True:
                first = self.here
                values.append((self.value(name, colon=colon, depth=depth), first))
                if self.take("]"):
                    break
                if not self.take(","):
                    found = f"found {self.here.text!r}"
                    raise PbtxtError(self.here.line, f"in the list of {name.text}: ',' or ']' was expected, {found}")
        return [Field(name.text, value, at.line, listed, at.column) for value, at in values]

    def value(self, name: Token, *, colon: bool, depth: int) -> Scalar | Message:
        opening = self.take("{", "<")
        if opening is not None:
            return self.message(closing=_CLOSING[opening.text], opening=opening, depth=depth + 1)
        if not colon:
            raise PbtxtError(self.here.line, f"':' or '{{' was expected after {name.text}, found {self.here.text!r}")
        first = self.here
        if first.kind == "string":
            return self.string()
        negative = self.take("-") is not None
        number = self.here
        if number.kind in ("integer", "float") or (negative and number.kind == "word"):
            self.advance()
            return _number(number, negative=negative)
        if number.kind == "word":
            self.advance()
            return Scalar("word", number.text, number.line)
        raise PbtxtError(first.line, f"a value was expected for {name.text}, found {first.text!r}")

    def string(self) -> Scalar:
        """One or more string literals side by side are one string."""
        first, parts = self.here, []
        while self.here.kind == "string":
            parts.append(_unescape(self.advance()))
        try:
            return Scalar("string", b"".join(parts).decode(), first.line)
        except UnicodeDecodeError:
            raise PbtxtError(first.line, "a string that is not valid UTF-8") from None


def _number(token: Token, *, negative: bool) -> Scalar:
    sign, text = (-1 if negative else 1), token.text
    if token.kind == "word":
        if text.lower() not in ("inf", "infinity", "nan"):
            raise PbtxtError(token.line, f"a number was expected after '-', found {text!r}")
        return Scalar("float", sign * float(text), token.line)
    if token.kind == "float":
        return Scalar("float", sign * float(text.rstrip("fF")), token.line)
    if len(text) > LONGEST_INTEGER:
        raise PbtxtError(token.line, f"an integer of {len(text):,} digits, at most {LONGEST_INTEGER} are read")
    base = 16 if text[:2].lower() == "0x" else 8 if text.startswith("0") and text != "0" else 10
    return Scalar("integer", sign * int(text, base), token.line, base)


def _unescape(token: Token) -> bytes:
    def replace(match: re.Match[bytes]) -> bytes:
        if match["bad"] is not None:
            raise PbtxtError(token.line, f"an unknown escape \\{match['bad'].decode(errors='replace')} in a string")
        if match["simple"] is not None:
            return bytes([_SIMPLE[match["simple"].decode()]])
        if match["octal"] is not None:
            return bytes([_byte(int(match["octal"], 8), token)])
        if match["hex"] is not None:
            return bytes([int(match["hex"], 16)])
        if match["high"] is not None:
            pair = (int(match["high"], 16) & 0x3FF) << 10 | int(match["low"], 16) & 0x3FF
            return chr(0x10000 + pair).encode()
        return _character(int(match["short"] or match["long"], 16), token).encode()

    return _ESCAPE.sub(replace, token.text[1:-1].encode(errors="surrogatepass"))


def _byte(value: int, token: Token) -> int:
    if value > 255:
        raise PbtxtError(token.line, f"an octal escape above \\377: \\{value:o}")
    return value


def _character(code: int, token: Token) -> str:
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise PbtxtError(token.line, f"an escape that is no character: U+{code:X}")
    return chr(code)


_WRITTEN_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def to_text(message: Message) -> str:
    """The message in protobuf's text format, a field a line; :func:`parse` reads it."""
    return "".join(f"{line}\n" for line in _lines(message.fields, ""))


def _lines(fields: Sequence[Field], indent: str) -> Iterator[str]:
    for name, group in groupby(fields, key=lambda field: field.name):
        values = [field.value for field in group]
        scalars = [value for value in values if isinstance(value, Scalar)]
        if len(scalars) == len(values) and len(scalars) > 1:
            yield f"{indent}{name}: [ {', '.join(map(_scalar, scalars))} ]"
            continue
        for value in values:
            if isinstance(value, Scalar):
                yield f"{indent}{name}: {_scalar(value)}"
            else:
                yield f"{indent}{name} {{"
                yield from _lines(value.fields, f"{indent}  ")
                yield f"{indent}}}"


def _scalar(scalar: Scalar) -> str:
    if scalar.kind == "string":
        return quoted(str(scalar.value))
    if isinstance(scalar.value, float) and not math.isfinite(scalar.value):
        return str(scalar.value)  # inf, -inf, nan: as the format spells them
    return repr(scalar.value) if isinstance(scalar.value, float) else str(scalar.value)


def quoted(text: str) -> str:
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(character: str) -> str:
    if character in _WRITTEN_ESCAPES:
        return _WRITTEN_ESCAPES[character]
    return f"\\{ord(character):03o}" if ord(character) < 0x20 or ord(character) == 0x7F else character
