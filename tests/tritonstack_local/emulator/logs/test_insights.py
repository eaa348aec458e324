"""Queries of Logs Insights, over a few lines, and against plain Python."""

from __future__ import annotations

import json
import operator
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import cases, table
from tritonstack.monitoring.log_lines import QUERY
from tritonstack_local.emulator.logs.insights import Line, parse
from tritonstack_local.emulator.logs.reader import SyntaxProblemError

BEGAN = datetime(2026, 11, 28, tzinfo=UTC)
MESSAGES = (
    "successfully loaded '/opt/ml/model/::double'",
    "unrelated",
    "I1 successfully unloaded 'bert' version 1",
    '{"level": "ERROR", "took": 12.5, "a": {"b": [1, "x"]}}',
    '{"level": "INFO", "took": 3}',
    "successfully loaded 'bert'",
)


def line(number: int, message: str) -> Line:
    """Three minutes after the one before; the third half a second later."""
    time = int(BEGAN.timestamp() * 1000) + number * 180_000 + 500 * (number == 2)
    return Line(str(number), time, time, message, "one" if number % 2 else "two", "123456789012:/group")


LINES = [line(number, message) for number, message in enumerate(MESSAGES)]


def rows(query: str, lines: list[Line] = LINES) -> list[dict[str, str]]:
    """The result without the lines' pointers."""
    found, _ = parse(query).run(lines)
    return [{name: value for name, value in row.items() if name != "@ptr"} for row in found]


@cases("query, expected")
def test_a_query_gives_these_rows(query: str, expected: list[dict[str, str]]) -> None:
    assert rows(query) == expected


def test_the_query_of_the_dashboards_stack_is_the_committed_one_of_the_table() -> None:
    every = table(__file__, "test_a_query_gives_these_rows", dict[str, tuple[str, list[dict[str, str]]]])
    assert every["the committed query"][0] == QUERY


@cases("query, part")
def test_a_query_that_is_not_evaluated_is_refused_by_name(query: str, part: str) -> None:
    with pytest.raises(SyntaxProblemError) as error:
        parse(query)
    assert str(error.value).startswith("query ")
    assert part in str(error.value)


def test_nested_parentheses_and_nots_are_refused_not_a_crash() -> None:
    assert len(rows(f"filter {'(' * 50}ispresent(level){')' * 50}")) == 2
    for deep in ("(" * 2000, "not " * 2000):
        with pytest.raises(SyntaxProblemError, match="more than 50"):
            parse(f"filter {deep}a = 1")


def test_rows_of_lines_have_pointers_and_the_least_limit_counts() -> None:
    found, matched = parse('filter @message like "loaded" | limit 2').run(LINES, limit=1)
    assert ([row["@ptr"] for row in found], matched) == (["5"], 3)


def test_texts_are_sorted_as_the_guides_example_and_numbers_behind_them() -> None:
    values = [
        "!:",
        "#",
        "*%04",
        "0#",
        "5A",
        "111A",
        "2345_",
        "@",
        "@_",
        "A",
        "A9876fghj",
        "a12345hfh",
        "0",
        "1",
        "2",
        "3",
    ]
    mixed = values[::2] + values[1::2]
    lines = [line(number, json.dumps({"v": value})) for number, value in enumerate(mixed)]
    assert [row["v"] for row in rows("fields v | sort v", lines)] == values
    assert [row["v"] for row in rows("fields v | sort v desc", lines)] == values[::-1]


# --- Against plain Python ---

DOCUMENTS = st.lists(
    st.fixed_dictionaries({"n": st.integers(-3, 3)}, optional={"k": st.sampled_from("abc")}), max_size=8
)
SIGNS = {"=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def lines_of(documents: list[dict[str, Any]]) -> list[Line]:
    return [line(number, json.dumps(each)) for number, each in enumerate(documents)]


@given(
    documents=DOCUMENTS,
    parts=st.lists(st.tuples(st.sampled_from(list(SIGNS)), st.integers(-3, 3)), min_size=1, max_size=4),
)
def test_and_binds_more_tightly_than_or(documents: list[dict[str, Any]], parts: list[tuple[str, int]]) -> None:
    joints = ["and" if number % 2 else "or" for _, number in parts[1:]] + [""]
    text = " ".join(f"n {sign} {number} {joint}" for (sign, number), joint in zip(parts, joints, strict=True))
    groups: list[list[tuple[str, int]]] = [[]]
    for part, joint in zip(parts, joints, strict=True):
        groups[-1].append(part)
        if joint == "or":
            groups.append([])
    expected = [
        each["n"]
        for each in documents
        if any(all(SIGNS[sign](each["n"], number) for sign, number in group) for group in groups)
    ]
    found = rows(f"filter {text} | fields n | sort @timestamp", lines_of(documents))
    assert [int(row["n"]) for row in found] == expected


@given(documents=DOCUMENTS)
def test_counts_and_sums_by_a_field_are_pythons(documents: list[dict[str, Any]]) -> None:
    found = rows("stats count(*) as c, sum(n) as s by k", lines_of(documents))
    counts = Counter(each.get("k") for each in documents)
    sums = {key: sum(each["n"] for each in documents if each.get("k") == key) for key in counts}
    assert {row.get("k"): (int(row["c"]), int(row["s"])) for row in found} == {k: (counts[k], sums[k]) for k in counts}


@given(documents=DOCUMENTS, limit=st.integers(1, 5))
def test_the_greatest_come_first_and_no_more_than_the_limit(documents: list[dict[str, Any]], limit: int) -> None:
    found = rows(f"fields n | sort n desc | limit {limit}", lines_of(documents))
    assert [int(row["n"]) for row in found] == sorted((each["n"] for each in documents), reverse=True)[:limit]


PARTS = [
    "fields",
    "display",
    "filter",
    "parse",
    "stats",
    "sort",
    "limit",
    "@message",
    "a.b",
    "|",
    ",",
    "(",
    ")",
    "[",
    "]",
]
PARTS += [
    '"x*"',
    "'y'",
    "/x(?<g>.)/",
    "=",
    "!=",
    "like",
    "not",
    "and",
    "or",
    "in",
    "as",
    "by",
    "count(*)",
    "bin(5m)",
    "1",
]
PARTS += ["sum(a)", "desc", "ispresent(a)", "#", "\n", "`b`", "é", '"']


@given(query=st.lists(st.sampled_from(PARTS), max_size=14).map(" ".join))
def test_any_text_is_a_query_or_is_refused(query: str) -> None:
    try:
        read = parse(query)
    except SyntaxProblemError as error:
        assert str(error).startswith("query ")
    else:
        found, matched = read.run(LINES)
        assert matched <= len(LINES)
        assert all(isinstance(value, str) for row in found for value in row.values())
