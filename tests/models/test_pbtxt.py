"""The text format: what is written comes back, and what is no text format is refused with its line."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tritonstack.models.pbtxt import Message, PbtxtError, parse


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
