"""Missing data: the tables of CloudWatch's user guide, and its rule against premature alarms."""

from __future__ import annotations

import pytest

from tritonstack_local.emulator.cloudwatch.alarm_evaluation import Criteria, evaluate

TREATMENTS = ("missing", "ignore", "breaching", "notBreaching")
OK, ALARM, INSUFFICIENT, KEPT = "OK", "ALARM", "INSUFFICIENT_DATA", None


def verdicts(row: str, *, to_alarm: int, periods: int = 3) -> list[str | None]:
    """The states of a row (0 within, X beyond, - missing; the newest last), by TREATMENTS."""
    points = [{"0": 0.0, "X": 1.0, "-": None}[sign] for sign in row.split()]
    return [
        evaluate(
            points,
            Criteria(breaches=lambda value: value > 0, periods=periods, to_alarm=to_alarm, missing=treatment),
        ).state
        for treatment in TREATMENTS
    ]


@pytest.mark.parametrize(
    ("row", "states"),
    [
        ("0 - X - X", [OK, OK, OK, OK]),
        ("0 - - - -", [OK, OK, OK, OK]),
        ("- - - - -", [INSUFFICIENT, KEPT, ALARM, OK]),
        ("0 X X - X", [ALARM, ALARM, ALARM, ALARM]),
        ("- - X - -", [ALARM, KEPT, ALARM, OK]),
    ],
)
def test_three_of_three_as_in_the_guides_first_table(row: str, states: list[str | None]) -> None:
    assert verdicts(row, to_alarm=3) == states


@pytest.mark.parametrize(
    ("row", "states"),
    [
        ("0 - X - X", [ALARM, ALARM, ALARM, ALARM]),
        ("0 0 X 0 X", [ALARM, ALARM, ALARM, ALARM]),
        ("0 - X - -", [OK, OK, ALARM, OK]),
        ("- - - - 0", [OK, OK, ALARM, OK]),
        ("- - - X -", [ALARM, KEPT, ALARM, OK]),
    ],
)
def test_two_of_three_as_in_the_guides_second_table(row: str, states: list[str | None]) -> None:
    assert verdicts(row, to_alarm=2) == states


@pytest.mark.parametrize("row", ["- - - - X", "- - - X -"])
def test_a_breaching_point_that_is_too_young_is_no_alarm_yet(row: str) -> None:
    assert verdicts(row, to_alarm=3)[0] == INSUFFICIENT


@pytest.mark.parametrize(
    ("row", "state"), [("- - X", ALARM), ("- X 0", OK), ("X - -", ALARM), ("0 - -", OK), ("X 0 -", OK)]
)
def test_one_of_one_takes_the_newest_point_that_there_is(row: str, state: str) -> None:
    assert verdicts(row, to_alarm=1, periods=1) == [state] * 4


def test_the_points_that_decided_are_reported() -> None:
    criteria = Criteria(breaches=lambda value: value > 0, periods=3, to_alarm=2, missing="breaching")
    assert criteria.range_points == 5
    verdict = evaluate([None, 0.0, None, 1.0, None], criteria)
    assert (verdict.used, verdict.filled, verdict.state) == ((1, 3), 1, ALARM)
