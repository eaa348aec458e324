"""The YAML reader: what it takes, what it refuses, and where it says things stand."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tritonstack.config.yaml_loader import LARGEST_FILE, YamlError, parse_yaml

SIGNS = ["a: ", "- ", "&x ", "*x ", "<<: ", "{", "}", "[", "]", ", ", "!!int ", "1", "\n", "  "]
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-(10**9), 10**9), st.text(max_size=12))
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)


@given(VALUES)
def test_what_pyyaml_writes_is_read_back(value: Any) -> None:
    assert parse_yaml(yaml.safe_dump(value)).value == value


@given(st.dictionaries(st.text("abcdef", min_size=1, max_size=5), st.integers(), min_size=1, max_size=9))
def test_every_key_knows_its_line(value: dict[str, int]) -> None:
    text = yaml.safe_dump(value, sort_keys=False)
    document = parse_yaml(text)
    for number, key in enumerate(value, start=1):
        assert document.line((key,)) == number
        assert document.line((key, "nothing inside")) == number


@given(st.text(max_size=200))
@settings(max_examples=300)
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    try:
        parse_yaml(text)
    except YamlError as error:
        assert error.found
        assert error.allowed


@given(st.lists(st.sampled_from(SIGNS)))
@settings(max_examples=300)
def test_any_mixture_of_yamls_signs_is_read_or_refused_in_words(parts: list[str]) -> None:
    try:
        parse_yaml("".join(parts))
    except YamlError as error:
        assert error.found


def test_a_key_that_stands_twice_is_noted_with_both_lines_and_the_first_value_is_kept() -> None:
    document = parse_yaml("a: 1\nb:\n  c: 2\n  c: 3\na: 4\n")
    assert document.value == {"a": 1, "b": {"c": 2}}
    assert sorted(document.repeated) == [(("a",), 1, 5), (("b", "c"), 3, 4)]


def test_dates_and_sexagesimal_looking_texts_keep_their_characters() -> None:
    document = parse_yaml("day: 2024-01-01\nrelease: 24.10\naccount: 0012\n")
    assert document.value["day"] == "2024-01-01"
    assert document.texts[("release",)] == "24.10"
    assert document.texts[("account",)] == "0012"


def test_anchors_and_merges_are_taken_and_own_keys_win() -> None:
    document = parse_yaml("base: &b {x: 1, y: 2}\nmine:\n  y: 3\n  <<: *b\nsame: *b\n")
    assert document.value == {"base": {"x": 1, "y": 2}, "mine": {"x": 1, "y": 3}, "same": {"x": 1, "y": 2}}
    assert document.line(("mine", "y")) == 3
    assert document.line(("mine", "x")) == 1


def test_the_first_of_several_merged_mappings_wins() -> None:
    document = parse_yaml("a: &a {x: 1}\nb: &b {x: 2, y: 2}\nc: {<<: [*a, *b]}\n")
    assert document.value["c"] == {"x": 1, "y": 2}


def test_a_bomb_of_aliases_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    with pytest.raises(YamlError, match="more values"):
        parse_yaml("\n".join(lines))


def test_a_huge_file_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(YamlError, match="characters"):
        parse_yaml("a" * (LARGEST_FILE + 1))


def test_an_error_names_its_line() -> None:
    with pytest.raises(YamlError) as caught:
        parse_yaml("a: 1\nb: [1, 2\nc: 3\n")
    assert caught.value.line == 3
