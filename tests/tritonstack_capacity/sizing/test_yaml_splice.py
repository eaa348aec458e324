"""Values set in YAML texts, character by character."""

from __future__ import annotations

import pytest

from tritonstack_capacity.sizing.environment_edit import UneditableError, YamlText, spliced


def with_values(text: str, **values: str) -> str:
    known = YamlText(text)
    return spliced(text, tuple(known.set(known.root, values, after=("a", "b"))))


@pytest.mark.parametrize(
    ("text", "edited"),
    [
        ("a: 1  # one\nb: 2\n", "a: 1  # one\nc: 9\nb: 2\n"),
        ("b: 2 # two", "b: 2 # two\nc: 9"),
        ("a: 1\r\nb: 2\r\n", "a: 1\r\nc: 9\r\nb: 2\r\n"),
        ("# first\nx: 1\n", "# first\nc: 9\nx: 1\n"),
        ("a: >-\n  1\nx: {y:\n  2}\nb: 2\n", "a: >-\n  1\nx: {y:\n  2}\nb: 2\nc: 9\n"),
        ("{a: 1, x: 2}", "{a: 1, c: 9, x: 2}"),
        ("{a: 1,  # one\n x: 2,\n}", "{a: 1, c: 9,  # one\n x: 2,\n}"),
        ('{"x": 1}', '{"c": 9, "x": 1}'),
        ("{'a': 1}", "{'a': 1, 'c': 9}"),
        ("a: 'it''s'  # é\n", "a: 'it''s'  # é\nc: 9\n"),
        ("\ufeffa: 1\n", "\ufeffa: 1\nc: 9\n"),
    ],
)
def test_a_new_key_follows_in_the_mappings_own_style(text: str, edited: str) -> None:
    assert with_values(text, c="9") == edited


@pytest.mark.parametrize(
    ("text", "edited"),
    [
        ("a: 1  # one\nc:   '7'  # c\n", "a: 1  # one\nc:   9  # c\n"),
        ("c:\na: 1\n", "c: 9\na: 1\n"),
        ("c:   # nothing yet\n", "c: 9   # nothing yet\n"),
        ("{c: null}", "{c: 9}"),
        ("c: {x: [1,\n 2]} # gone\n", "c: 9 # gone\n"),
    ],
)
def test_a_value_that_is_there_is_replaced_and_nothing_around_it(text: str, edited: str) -> None:
    assert with_values(text, c="9") == edited


def test_several_new_keys_stand_in_the_order_that_they_are_given_in() -> None:
    assert with_values("a: 1\n", d="8", c="9") == "a: 1\nd: 8\nc: 9\n"


@pytest.mark.parametrize("text", ["x: &n 1\nc: *n\n", "c: &n 1\nx: *n\n", "c: !!int 1\n", "c: &n 1\n"])
def test_shared_and_marked_values_are_left_alone(text: str) -> None:
    with pytest.raises(UneditableError) as refused:
        with_values(text, c="9")
    assert refused.value.line == 1
