"""Metric math: the examples of CloudWatch's user guide, and numbers worked out by hand."""

from __future__ import annotations

import pytest

from tests.tritonstack_local.emulator.cloudwatch.scope import Points, computed, line, lines
from tritonstack_local.emulator.cloudwatch.expression_evaluation import check_functions
from tritonstack_local.emulator.cloudwatch.expression_syntax import ExpressionError, names, parse

NO: None = None
GUIDE: dict[str, Points] = {"metric1": [1, 1, 0, 0, NO], "metric2": [30, NO, 0, 0, 30], "metric3": [0, 0, 20, NO, 20]}
COMPARED: dict[str, Points] = {"metric1": [30, 20, 0, 0], "metric2": [20, NO, 20, NO]}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("IF(metric1, metric2, metric3)", [30, 0, 20, NO, NO]),
        ("IF(metric1, 5, metric3)", [5, 5, 20, NO, NO]),
        ("IF(metric1, metric2, 5)", [30, 0, 5, 5, NO]),
        ("IF(metric1, metric2)", [30, 0, NO, NO, NO]),
        ("IF(1, metric2, metric3)", GUIDE["metric2"]),
        ("IF(0, metric2, metric3)", GUIDE["metric3"]),
        ("IF(0, metric2)", [NO, NO, NO, NO, NO]),
        ("IF(metric3 < 20, metric3)", [0, 0, NO, NO, NO]),
        ("IF(metric2 > 20, 1, 0)", [1, NO, 0, 0, 1]),
    ],
)
def test_if_as_in_the_guides_tables(expression: str, expected: list[float | None]) -> None:
    assert line(expression, **GUIDE) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("(metric1 < metric2)", [0, 0, 1, 0]),
        ("(metric1 >= 30)", [1, 0, 0, 0]),
        ("(metric1 > 15 AND metric2 > 15)", [1, 0, 0, 0]),
        ("metric1 > 15 && metric2 > 15", [1, 0, 0, 0]),
        ("metric1 == 0 OR metric2 == 20", [1, 0, 1, 1]),
        ("metric1 == 0 || metric1 != 30", [0, 1, 1, 1]),
        ("metric1 > 15 OR metric1 > 15 AND metric2 > 100", [1, 1, 0, 0]),
    ],
)
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
        ("5 * m1", [5, 10, NO, NO]),
        ("1 / (m1 - 1)", [NO, 1, NO, NO]),
        ("-m1 ^ 2", [-1, -4, NO, NO]),
        ("2 ^ 3 ^ 2 + 0 * m1", [512, 512, NO, NO]),
        ("(0 - m1) ^ 0.5", [NO, NO, NO, NO]),
        ("--m1", [1, 2, NO, NO]),
        ("10 - 4 - 3 + m1", [4, 5, NO, NO]),
        ("m1 / PERIOD(m1)", [1 / 60, 2 / 60, NO, NO]),
        ("FILL(m1, 0)", [1, 2, 0, 0]),
        ("FILL(m1, m2)", [1, 2, 30, NO]),
        ("FILL(m1, MAX(m2))", [1, 2, 30, 30]),
        ("FILL(m2, REPEAT)", [10, 10, 30, 30]),
        ("FILL(m2, LINEAR)", [10, 20, 30, NO]),
        ("FILL(m2, 0) / FILL(m1, 1)", [10, 0, 30, 0]),
        ("SUM([m1, m2])", [11, 2, 30, NO]),
        ("AVG([m1, m2])", [5.5, 1, 15, NO]),
        ("MIN([m1, m2])", [1, 2, 30, NO]),
        ("MAX([m1, m2])", [10, 2, 30, NO]),
        ("STDDEV([m1, m2])", [4.5, 0, 0, NO]),
        ("SUM(METRICS())", [11, 2, 30, NO]),
        ('SUM(METRICS("m2")) + 0', [10, NO, 30, NO]),
        ("DATAPOINT_COUNT(METRICS())", [2, 1, 1, NO]),
        ("m1 / METRIC_COUNT(METRICS())", [0.5, 1, NO, NO]),
        ("m1 - MIN(m1)", [0, 1, NO, NO]),
        ("m1 + SUM(m2)", [41, 42, NO, NO]),
        ("m2 - AVG(m2)", [0, NO, 20, NO]),  # (10 + 0 + 30 + 0) / 4
        ("m2 - SUM(m2) / DATAPOINT_COUNT(m2)", [-10, NO, 10, NO]),
        ("ABS(m1 - m2)", [9, 2, 30, NO]),
        ("CEIL(m1 / 3)", [1, 1, NO, NO]),
        ("FLOOR(m1 / 3)", [0, 0, NO, NO]),
        ("LOG10(m2 - 10)", [NO, NO, pytest.approx(1.30103), NO]),
        ("DIFF(m2)", [NO, NO, 20, NO]),
        ("DIFF_TIME(m2)", [NO, NO, 120, NO]),
        ("RATE(m2)", [NO, NO, 20 / 120, NO]),
        ("RUNNING_SUM(m2)", [10, NO, 40, NO]),
        ("TIME_SERIES(7)", [7, 7, 7, 7]),
        ("FIRST(SORT(METRICS(), SUM, DESC))", [10, NO, 30, NO]),
        ("LAST(SLICE(METRICS(), 0, 1))", [1, 2, NO, NO]),
        ("EPOCH(m1) - MIN(EPOCH(m1))", [0, 60, 120, 180]),
        ("SUM(SEARCH('{N} m1', 'Sum', 60))", [1, 2, NO, NO]),
        (".5 * m1 + 1e1", [10.5, 11, NO, NO]),
    ],
)
def test_functions_give_what_is_worked_out_by_hand(expression: str, expected: list[float | None]) -> None:
    assert line(expression, m1=[1, 2, NO, NO], m2=[10, NO, 30, NO]) == expected


def test_arrays_stay_arrays_under_operators_and_functions() -> None:
    given: dict[str, Points] = {"m1": [1, 2], "m2": [NO, 4]}
    assert lines("METRICS() * 100", **given) == [[100, 200], [NO, 400]]
    assert lines("100 / [m1, m2]", **given) == [[100, 50], [NO, 25]]
    assert lines("[m1, m2] / m1", **given) == [[1, 1], [0, 2]]
    assert lines("-[m1, m2]", **given) == [[-1, -2], [NO, -4]]
    assert lines("FILL(METRICS(), 0)", **given) == [[1, 2], [0, 4]]
    assert lines("SORT([m1, m2], MAX, DESC, 1)", **given) == [[NO, 4]]
    assert lines("REMOVE_EMPTY([m1, IF(0, m1)])", **given) == [[1, 2]]
    assert lines("[METRICS('1'), METRICS(\u201c2\u201d)]", **given) == [[1, 2], [NO, 4]]


def test_clock_functions_read_utc() -> None:
    # 1,700,000,040 s is Tuesday 14 November 2023, 22:14 UTC.
    given: dict[str, Points] = {"m1": [1]}
    parts = {"MINUTE": 14, "HOUR": 22, "DAY": 2, "DATE": 14, "MONTH": 11, "YEAR": 2023}
    assert {name: line(f"{name}(m1)", **given) for name in parts} == {name: [value] for name, value in parts.items()}


def test_a_series_reduces_to_a_number() -> None:
    given: dict[str, Points] = {"m1": [1, 2, NO, 3]}
    reduced = {name: computed(f"{name}(m1)", **given) for name in ("SUM", "AVG", "MIN", "MAX", "DATAPOINT_COUNT")}
    assert reduced == {"SUM": 6, "AVG": 1.5, "MIN": 1, "MAX": 3, "DATAPOINT_COUNT": 3}


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("m1 +", "Unexpected end"),
        ("m1 m2", "Unexpected 'm2' at character 4"),
        ("(m1", "Unexpected end"),
        ("[m1,]", r"Unexpected '\]'"),
        ("m1 $ 2", r"Unexpected '\$' at character 4"),
        ("", "Unexpected end"),
        ("AND", "Unexpected 'AND'"),
        ("m9 + 1", "Undefined variable m9"),
        ("PERIOD(m1 + 1)", "PERIOD takes a metric"),
        ("SUM(1)", "SUM takes a time series"),
        ("ABS(1)", "ABS takes a time series"),
        ("METRICS(1)", "METRICS takes nothing or one text"),
        ("[m1] + [m1]", "does not take two arrays"),
        ("IF([m1], 1, 0)", "IF does not take an array"),
        ("FILL(m1)", "FILL takes two arguments"),
        ("SORT([m1], SUM)", "SORT takes"),
        ("1 / 0 + m1", "has no value"),
        ("ABS(m1, m1)", "one argument, not 2"),
        ("'text'", "A text is not expected"),
        ("(" * 101 + "m1" + ")" * 101, "nests deeper"),
    ],
)
def test_what_is_no_metric_math_is_told(expression: str, words: str) -> None:
    with pytest.raises(ExpressionError, match=words):
        computed(expression, m1=[1, 2])


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("1 + MEDIAN(m1)", "Unknown function MEDIAN"),
        ("sum(m1)", "Unknown function sum; functions are written in uppercase: SUM"),
        ("ABS(ANOMALY_DETECTION_BAND(m1, 2))", "ANOMALY_DETECTION_BAND is not in the local AWS"),
    ],
)
def test_functions_that_are_not_to_be_had_are_named(expression: str, words: str) -> None:
    with pytest.raises(ExpressionError, match=words):
        check_functions(parse(expression))


def test_the_names_of_an_expression_are_its_ids() -> None:
    assert list(names(parse("IF(m1 > 2, [e1, m1], -m3 ^ e2)"))) == ["m1", "e1", "m1", "m3", "e2"]
