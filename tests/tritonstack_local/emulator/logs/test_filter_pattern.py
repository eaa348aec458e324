"""Filter patterns of CloudWatch Logs, by the examples of the user guide, and against plain Python."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import cases
from tritonstack_local.emulator.logs.filter_pattern import parse
from tritonstack_local.emulator.logs.reader import SyntaxProblemError


@cases("pattern, lines, matching")
def test_terms_match_the_lines_that_the_guide_lists(pattern: str, lines: list[str], matching: list[int]) -> None:
    match = parse(pattern).match
    assert [number for number, line in enumerate(lines) if match(line) is not None] == matching


@cases("pattern, line, matches")
def test_json_patterns_match_the_event_or_not(pattern: str, line: str, matches: bool) -> None:
    assert (parse(pattern).match(line) is not None) == matches


@cases("pattern, line, values")
def test_values_are_taken_from_the_fields_that_a_pattern_names(pattern: str, line: str, values: dict[str, str]) -> None:
    read = parse(pattern)
    assert read.match(line) == values
    assert all(map(read.takes, values))
    assert not read.takes("$other")


@cases("pattern, part")
def test_a_pattern_that_is_none_or_is_not_evaluated_is_refused_with_the_place(pattern: str, part: str) -> None:
    with pytest.raises(SyntaxProblemError) as error:
        parse(pattern)
    assert str(error.value).startswith(f"filter pattern {pattern}: ")
    assert part in str(error.value)


def test_parentheses_deeper_than_a_person_writes_are_refused_not_a_crash() -> None:
    assert parse(f"{{{'(' * 50}$.a = 1{')' * 50}}}").match('{"a": 1}') is not None
    with pytest.raises(SyntaxProblemError, match="more than 50 parentheses"):
        parse(f"{{{'(' * 51}$.a = 1{')' * 51}}}")


# --- Against plain Python ---

WORD = st.text("abAB_1", min_size=1, max_size=3)
LINE = st.text("abAB_1 ", max_size=12)


@given(needed=st.lists(WORD, max_size=3), excluded=st.lists(WORD, max_size=2), line=LINE)
def test_terms_are_all_in_a_line_and_none_that_is_excluded(needed: list[str], excluded: list[str], line: str) -> None:
    pattern = " ".join([*needed, *(f'-"{word}"' for word in excluded)])
    expected = all(word in line for word in needed) and not any(word in line for word in excluded)
    assert (parse(pattern).match(line) is not None) == expected


@given(optional=st.lists(WORD, min_size=1, max_size=4), line=LINE)
def test_one_optional_term_in_a_line_is_enough(optional: list[str], line: str) -> None:
    pattern = " ".join(f"?{word}" for word in optional)
    assert (parse(pattern).match(line) is not None) == any(word in line for word in optional)


Tree = tuple[str, Callable[[dict[str, Any]], bool]]
"""A condition as it is written, and what it is of a document."""
SIGNS = {"=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@st.composite
def leaves(draw: st.DrawFn) -> Tree:
    name, sign, number = draw(st.sampled_from("abc")), draw(st.sampled_from(list(SIGNS))), draw(st.integers(-2, 2))
    blanks = draw(st.sampled_from(["", " ", "  "]))
    written = f"{blanks}$.{name}{blanks}{sign}{blanks}{number}{blanks}"
    return written, lambda document: name in document and SIGNS[sign](document[name], number)


def joined(children: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    """Conditions in parentheses, and between ``&&`` or ``||`` without any: there && binds more tightly."""

    def of(parts: list[tuple[Tree, bool]]) -> Tree:
        text = parts[0][0][0]
        groups = [[parts[0][0][1]]]
        for (written, holds), is_and in parts[1:]:
            text += f"{'&&' if is_and else '||'}{written}"
            if is_and:
                groups[-1].append(holds)
            else:
                groups.append([holds])
        return f"({text})", lambda document: any(all(holds(document) for holds in group) for group in groups)

    return st.lists(st.tuples(children, st.booleans()), min_size=1, max_size=4).map(of)


@given(
    tree=st.recursive(leaves(), joined, max_leaves=8),
    document=st.dictionaries(st.sampled_from("abc"), st.integers(-2, 2)),
)
def test_json_conditions_mean_what_they_mean_in_python(tree: Tree, document: dict[str, int]) -> None:
    written, holds = tree
    assert (parse(f"{{{written}}}").match(json.dumps(document)) is not None) == holds(document)


FIELD = st.text("ab1.-/", min_size=1, max_size=4) | st.text("ab1 ", min_size=1, max_size=4).map(
    lambda text: f'"{text}"'
)


@given(fields=st.lists(FIELD, min_size=1, max_size=6), data=st.data())
def test_each_field_of_a_line_is_the_value_of_its_name(fields: list[str], data: st.DataObject) -> None:
    names: list[str] = [f"f{number}" for number in range(len(fields))]
    first = data.draw(st.integers(0, len(fields)))
    last = data.draw(st.integers(first, len(fields)))
    ellipsis = data.draw(st.booleans())
    shown = [*names[:first], "...", *names[last:]] if ellipsis else names
    found = parse(f"[{', '.join(shown)}]").match(" ".join(fields))
    expected = {
        f"$f{number}" if f"f{number}" in shown else f"${number + 1}": text.strip('"')
        for number, text in enumerate(fields)
    }
    assert found == expected


PARTS = ['"', "%", "*", "{", "}", "[", "]", "(", ")", "$.a", "$.a[0]", "=", "!=", ">", "&&", "||", "1", "b", "IS NULL"]
PARTS += ["NOT EXISTS", "...", ",", "-", "?", " ", "\\", "é", "\n", '"b"', "%b+%"]


@given(pattern=st.lists(st.sampled_from(PARTS), max_size=12).map("".join), line=st.text(max_size=20))
def test_any_text_is_a_pattern_or_is_refused(pattern: str, line: str) -> None:
    try:
        read = parse(pattern)
    except SyntaxProblemError as error:
        assert str(error).startswith("filter pattern ")
    else:
        for each in (line, '{"a": [1, {}]}', "a b [c d] 1"):
            found = read.match(each)
            assert found is None or all(isinstance(value, str) for value in found.values())
