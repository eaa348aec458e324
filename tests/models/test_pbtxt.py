"""The text format: what is written comes back, and what is no text format is refused with its line."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tritonstack.models.pbtxt import Message, PbtxtError, Scalar, parse

Value = Any
_names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
_scalars = st.one_of(
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8"), max_size=12),
)
_fields = st.recursive(
    st.lists(st.tuples(_names, _scalars), max_size=4),
    lambda inner: st.lists(st.tuples(_names, st.one_of(_scalars, inner)), max_size=4),
    max_leaves=20,
)


class _Writer:
    """Writes fields in every spelling that the format has, as ``draw`` decides."""

    def __init__(self, draw: st.DataObject) -> None:
        self.draw = draw

    def choice(self, *texts: str) -> str:
        return self.draw.draw(st.sampled_from(texts))

    def gap(self) -> str:
        return self.choice(" ", "\n", "\t", '  # a comment: { [ " \n', " ")

    def fields(self, fields: list[tuple[str, Value]]) -> str:
        return self.gap().join(self.field(name, value) + self.choice("", ",", ";") for name, value in fields)

    def field(self, name: str, value: Value) -> str:
        if isinstance(value, list):
            opening, closing = self.draw.draw(st.sampled_from([("{", "}"), ("<", ">")]))
            return f"{name}{self.choice(':', '', ' : ')}{opening}{self.gap()}{self.fields(value)}{self.gap()}{closing}"
        text = self.scalar(value)
        return f"{name}: [{self.gap()}{text}]" if self.draw.draw(st.booleans()) else f"{name}:{self.gap()}{text}"

    def scalar(self, value: Value) -> str:
        if isinstance(value, str):
            half = len(value) // 2
            return self.choice(
                self.quoted(value), f"{self.quoted(value[:half])}{self.gap()}{self.quoted(value[half:])}"
            )
        if isinstance(value, float):
            return repr(value)
        sign = "-" if value < 0 else ""
        return self.choice(str(value), f"{sign}{hex(abs(value))}", f"{sign}0{abs(value):o}")

    def quoted(self, text: str) -> str:
        quote = self.choice('"', "'")
        plain = "".join(self.escaped(letter, quote) for letter in text)
        return f"{quote}{plain}{quote}"

    def escaped(self, letter: str, quote: str) -> str:
        if letter in "\\\n" or letter == quote or self.draw.draw(st.integers(0, 5)) == 0:
            octal = "".join(f"\\{byte:03o}" for byte in letter.encode())
            return self.choice(octal, "".join(f"\\x{byte:02x}" for byte in letter.encode()), f"\\U{ord(letter):08x}")
        return letter


def _plain(message: Message) -> list[tuple[str, Value]]:
    return [
        (field.name, field.value.value if isinstance(field.value, Scalar) else _plain(field.value))
        for field in message.fields
    ]


@settings(max_examples=150)
@given(fields=_fields, data=st.data())
def test_what_is_written_in_any_spelling_is_read_back(fields: list[tuple[str, Value]], data: st.DataObject) -> None:
    assert _plain(parse(_Writer(data).fields(fields))) == fields


@settings(max_examples=300)
@given(text=st.text(st.sampled_from("ab1.-{}[]<>:,;\"'\\ \n#x0e"), max_size=30))
def test_any_text_is_read_or_refused_with_a_line_of_the_text(text: str) -> None:
    try:
        parse(text)
    except PbtxtError as error:
        assert 1 <= error.line <= text.count("\n") + 1


def test_lines_are_those_of_the_text() -> None:
    message = parse('# first\nname: "a"\ninput [\n  { dims: [ 1,\n 2 ] }\n]')
    assert [(field.name, field.line) for field in message.fields] == [("name", 2), ("input", 4)]
    inner = message.fields[1].value
    assert isinstance(inner, Message)
    assert [field.line for field in inner.fields] == [4, 5]


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("name", 1, "':' or '{'"),
        ("name:", 1, "a value was expected"),
        ("a: 1x", 1, "a space is missing"),
        ("a: 09", 1, "a space is missing"),
        ('\na: "x', 2, "does not end on its line"),
        ('a: "x\ny"', 1, "does not end on its line"),
        ("a {\n\n", 3, "opened on line 1 is not closed"),
        ("a { >", 1, "a field's name was expected"),
        ("a: [1,]", 1, "a value was expected"),
        ("a: [1 2]", 1, "',' or ']'"),
        ("a [1]", 1, "':' or '{'"),
        ("a: -b", 1, "a number was expected"),
        ("}", 1, "a field's name was expected"),
        ('a: "\\q"', 1, "unknown escape"),
        ('a: "\\777"', 1, "above"),
        ('a: "\\xff"', 1, "UTF-8"),
        ("a: $", 1, "unexpected '$'"),
        ("[a.b]: 1", 1, "a field's name was expected"),
        ("a {" * 101, 1, "nested more than"),
    ],
)
def test_what_is_no_text_format_is_refused_with_its_line(text: str, line: int, part: str) -> None:
    with pytest.raises(PbtxtError) as caught:
        parse(text)
    assert caught.value.line == line
    assert part in caught.value.message
