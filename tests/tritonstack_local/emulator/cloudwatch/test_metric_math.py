"""Metric math: the tables of CloudWatch's user guide, and numbers worked out by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import cases
from tritonstack_local.emulator.cloudwatch.metric_math import (
    ExpressionError,
    Series,
    Span,
    Value,
    check_statistic,
    evaluate,
    names,
    parse,
)

START, PERIOD = 1_700_000_040, 60
NO: None = None
Points = Sequence[float | None]
GUIDE: dict[str, Points] = {"metric1": [1, 1, 0, 0, NO], "metric2": [30, NO, 0, 0, 30], "metric3": [0, 0, 20, NO, 20]}
COMPARED: dict[str, Points] = {"metric1": [30, 20, 0, 0], "metric2": [20, NO, 20, NO]}
SNAPSHOTS = Path(__file__).parents[4] / "snapshots"


def computed(expression: str, **given: Points) -> Value:
    """The value of an expression over series, the oldest point first, None where one is missing."""
    span = Span(start=START, end=START + max(map(len, given.values())) * PERIOD, period=PERIOD)
    series = {
        name: Series(
            label=name,
            span=span,
            points={START + at * PERIOD: float(one) for at, one in enumerate(points) if one is not None},
            is_metric=True,
        )
        for name, points in given.items()
    }
    return evaluate(parse(expression), series.__getitem__, span)


def line(expression: str, **given: Points) -> list[float | None]:
    """The points of an expression that is a series."""
    value = computed(expression, **given)
    assert isinstance(value, Series)
    return [value.points.get(time) for time in value.span.times()]


@cases("expression, expected")
def test_if_as_in_the_guides_tables(expression: str, expected: list[float | None]) -> None:
    assert line(expression, **GUIDE) == expected


@cases("expression, expected")
def test_comparisons_as_in_the_guides_table(expression: str, expected: list[float | None]) -> None:
    assert line(expression, **COMPARED) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("m1 + m2", [11, 2, 30, NO]),
        ("m1 - m2", [-9, 2, -30, NO]),
        ("m1 * m2", [10, 0, 0, NO]),
        ("m1 / m2", [0.1, NO, 0, NO]),  # 2 / missing would be 2 / 0
        ("100 * m1 / (m1 + m2)", [100 / 11, 100, 0, NO]),
        ("1 / (m1 - 1)", [NO, 1, NO, NO]),
        ("--m1", [1, 2, NO, NO]),
        ("-m1 * m1", [-1, -4, NO, NO]),
        ("10 - 4 - 3 + m1", [4, 5, NO, NO]),
        ("m1 / PERIOD(m1)", [1 / 60, 2 / 60, NO, NO]),
        (".5 * m1 + 1e1", [10.5, 11, NO, NO]),
        ("0 * m1 + (m2 >= 10 AND 1)", [1, 0, 1, NO]),
    ],
)
def test_operators_give_what_is_worked_out_by_hand(expression: str, expected: list[float | None]) -> None:
    assert line(expression, m1=[1, 2, NO, NO], m2=[10, NO, 30, NO]) == expected


@pytest.mark.parametrize("keyword", ["in", "is", "not", "lambda", "None", "id_"])
def test_an_id_may_be_a_word_of_python(keyword: str) -> None:
    assert names(parse(f"IF({keyword} > 2, {keyword}, e1)")) == {keyword, "e1"}
    assert line(f"{keyword} * 2", **{keyword: [1, NO]}) == [2, NO]


@cases("expression, words")
def test_other_expressions_are_refused_by_name(expression: str, words: str) -> None:
    with pytest.raises(ExpressionError, match=words):
        computed(expression, m1=[1, 2], m2=[1, 2])


def test_expressions_that_nest_deep_are_refused() -> None:
    with pytest.raises(ExpressionError, match="nests deeper"):
        computed("-" * 101 + "m1", m1=[1, 2])
    with pytest.raises(ExpressionError, match="is not metric math"):
        computed("(" * 500 + "m1" + ")" * 500, m1=[1, 2])


@given(st.text(alphabet="m12+-*/^()[],<>=!&|.' PERIODFA\n\u00e9", max_size=30))
def test_any_text_is_read_or_refused_with_a_message(text: str) -> None:
    try:
        names(parse(text))
    except ExpressionError as error:
        assert str(error)


def test_every_expression_of_the_published_alarms_and_dashboards_is_read() -> None:
    templates = [path.read_text() for path in SNAPSHOTS.rglob("*.json")]
    pattern = re.compile(r'\\*"(?:expression|Expression)\\*": ?\\*"(.*?)\\*"')
    found = {json.loads(f'"{text}"') for template in templates for text in pattern.findall(template)}
    assert len(found) > 10
    for expression in found:
        if not expression.startswith(("SEARCH(", "SELECT ")):  # which ``metric_search`` reads, not metric math
            assert names(parse(expression))


# --- Statistics ---


@pytest.mark.parametrize("name", ["Median", "p101", "P99", "TM(10%:90%)", "tm99"])
def test_other_statistics_are_refused_by_name(name: str) -> None:
    with pytest.raises(ExpressionError, match="not in the local AWS"):
        check_statistic(name)
