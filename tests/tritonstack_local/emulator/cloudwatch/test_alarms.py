"""Alarms in the running local AWS: which data count, what they mean, and what state follows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.cases import cases
from tests.tritonstack_local.emulator.cloudwatch.watching import Watching
from tritonstack_local.emulator.cloudwatch.alarm_evaluation import Criteria, evaluate

FLEET = {"EndpointName": "e", "VariantName": "v"}
NEW = {**FLEET, "EndpointConfigName": "new"}
OLD = {**FLEET, "EndpointConfigName": "old"}


def as_members(dimensions: dict[str, str]) -> list[dict[str, str]]:
    """Dimensions as a request has them."""
    return [{"Name": name, "Value": value} for name, value in dimensions.items()]


def test_an_alarm_watches_exactly_its_dimensions_in_any_order(watching: Watching) -> None:
    names = {"new": NEW, "old": OLD, "both": FLEET, "reversed": dict(reversed(NEW.items()))}
    for name, dimensions in names.items():
        watching.put(f"{watching.name}-{name}", Dimensions=as_members(dimensions))
    watching.write(9, of=NEW)
    watching.write(1, of=OLD)
    watching.write(0, of={**FLEET, "VariantName": "other"})
    states = {name: watching.state(f"{watching.name}-{name}") for name in names}
    assert states == {"new": "ALARM", "old": "OK", "both": "INSUFFICIENT_DATA", "reversed": "ALARM"}


@pytest.mark.parametrize(
    ("values", "changed", "state"),
    [
        ([1, 2, 4, 9], {"Threshold": 15.9}, "ALARM"),
        ([1, 2, 4, 9], {"Threshold": 16}, "OK"),
        ([1, 2, 4, 9], {"Threshold": 4, "Statistic": "SampleCount"}, "OK"),
        (range(1, 101), {"Threshold": 50.4, "Statistic": None, "ExtendedStatistic": "p50"}, "ALARM"),
        (range(1, 101), {"Threshold": 50.6, "Statistic": None, "ExtendedStatistic": "p50"}, "OK"),
        ([5], {}, "OK"),
        ([5], {"ComparisonOperator": "GreaterThanOrEqualToThreshold"}, "ALARM"),
        ([5], {"ComparisonOperator": "LessThanThreshold"}, "OK"),
        ([5], {"ComparisonOperator": "LessThanOrEqualToThreshold"}, "ALARM"),
        ([9], {"Unit": "Seconds"}, "INSUFFICIENT_DATA"),
        ([], {}, "INSUFFICIENT_DATA"),
        ([], {"TreatMissingData": "missing"}, "INSUFFICIENT_DATA"),
        ([], {"TreatMissingData": "breaching"}, "ALARM"),
        ([], {"TreatMissingData": "notBreaching"}, "OK"),
    ],
)
def test_the_alarms_statistic_is_compared_and_missing_data_are_treated_by_its_setting(
    watching: Watching, values: Sequence[float], changed: dict[str, Any], state: str
) -> None:
    if values:
        watching.write(*values)
    watching.put(**changed)
    assert watching.state() == state


def test_two_breaching_minutes_of_three_are_an_alarm_and_one_is_none(watching: Watching) -> None:
    watching.put(EvaluationPeriods=3, DatapointsToAlarm=2)
    watching.write(9, minutes_ago=3)
    watching.write(0, minutes_ago=2)
    watching.write(0, minutes_ago=1)
    assert watching.state() == "OK"
    watching.pass_minutes()
    watching.write(9)
    assert watching.state() == "OK", "9 0 0 9: one of the last three"
    watching.pass_minutes()
    watching.write(9)
    assert watching.state() == "ALARM", "0 9 9"


def test_the_minute_under_way_does_not_count_yet(watching: Watching) -> None:
    watching.put()
    watching.write(9, minutes_ago=0)
    assert watching.state() == "INSUFFICIENT_DATA"
    watching.pass_minutes()
    assert watching.alarm()["StateValue"] == "ALARM", "moving the clock evaluates"


def test_a_caller_whose_time_is_the_systems_is_understood_when_the_clock_was_moved(watching: Watching) -> None:
    watching.put()
    watching.pass_minutes(60)
    minute_ago = datetime.now(UTC) - timedelta(minutes=1)
    datum = {"MetricName": "Errors", "Timestamp": minute_ago, "Value": 9.0}
    watching.cloudwatch.put_metric_data(Namespace=watching.name, MetricData=[datum])
    watching.pass_minutes()
    assert watching.alarm()["StateValue"] == "ALARM"


# Metric math --------------------------------------------------------------------------------------------------------


def test_an_alarm_on_a_ratio(watching: Watching) -> None:
    expression = "IF(calls >= 10, 100 * errors / calls, 0)"
    watching.put_math(expression, metrics={"errors": "Errors", "calls": "Calls"}, Threshold=5)
    watching.write(*[1.0] * 9, metric="Calls")
    watching.write(9)
    assert watching.state() == "OK", "too few calls to judge"
    watching.pass_minutes()
    watching.write(*[1.0] * 100, metric="Calls")
    watching.write(5)
    assert watching.state() == "OK"
    watching.pass_minutes()
    watching.write(*[1.0] * 100, metric="Calls")
    watching.write(6)
    assert watching.state() == "ALARM"
    alarm = watching.alarm()
    assert "[6.0 (" in alarm["StateReason"]
    assert [query["Id"] for query in alarm["Metrics"]] == ["e1", "errors", "calls"]


# A state that is set by hand ----------------------------------------------------------------------------------------


def set_state(watching: Watching, state: str, name: str = "") -> None:
    """SetAlarmState."""
    watching.cloudwatch.set_alarm_state(AlarmName=name or watching.name, StateValue=state, StateReason="by hand")


@pytest.mark.parametrize("treatment", ["missing", "breaching"])
def test_a_state_set_by_hand_stays_while_there_are_no_data(watching: Watching, treatment: str) -> None:
    watching.put(TreatMissingData=treatment)
    for state in ("OK", "ALARM"):
        set_state(watching, state)
        watching.pass_minutes(3)
        assert (watching.state(), watching.alarm()["StateReason"]) == (state, "by hand")


# Why ----------------------------------------------------------------------------------------------------------------


def test_the_reason_names_the_points_that_decided(watching: Watching) -> None:
    watching.write(1, minutes_ago=2)
    watching.write(9.5, minutes_ago=1)
    watching.put(EvaluationPeriods=2, DatapointsToAlarm=1)
    watching.evaluated()
    alarm = watching.alarm()
    assert alarm["StateReason"].startswith("Threshold Crossed: of the last 2 datapoints [9.5 (")
    assert "1 must be greater than the threshold (5.0) for ALARM; now ALARM." in alarm["StateReason"]
    assert alarm["StateTransitionedTimestamp"] == alarm["StateUpdatedTimestamp"]


@cases("changed, words")
def test_alarms_on_a_metric_that_cannot_be_are_refused(watching: Watching, changed: dict[str, Any], words: str) -> None:
    with pytest.raises(ClientError, match=words) as refusal:
        watching.put(**changed)
    assert refusal.value.response["Error"]["Code"] == "ValidationError"
    assert watching.cloudwatch.describe_alarms(AlarmNamePrefix=watching.name)["MetricAlarms"] == []


def test_the_queries_of_an_alarm_are_bounded(watching: Watching) -> None:
    shown = {"Id": "e1", "Expression": "m1", "ReturnData": True}
    metrics = [{**watching.query(f"m{i}", "Errors"), "ReturnData": False} for i in range(11)]
    of_one: dict[str, Any] = dict.fromkeys(("Namespace", "MetricName", "Statistic", "Period"))
    for queries, words in (
        ([shown, *metrics], "at most 10 metrics"),
        ([{**shown, "ReturnData": False}, *metrics[:2]], "Exactly one of Metrics must have ReturnData true, 0 have"),
        ([shown, watching.query("m1", "Errors")], "2 have"),
        ([shown, metrics[1], watching.query("m2", "Errors", period=300) | {"ReturnData": False}], "the same period"),
        ([shown, metrics[1], metrics[1]], "used more than once"),
        ([{"Id": "e1", "Expression": "1"}], "at least one metric"),
        ([{"Id": "e1", "Expression": "MEDIAN(m1)"}], "Function MEDIAN is not in the local AWS"),
    ):
        with pytest.raises(ClientError, match=words):
            watching.put(**{**of_one, "Metrics": queries})
    with pytest.raises(ClientError, match="Statistic, Period cannot be given with Metrics"):
        watching.put_math("m1", metrics={"m1": "Errors"}, Period=60, Statistic="Sum")


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


def test_an_alarm_on_a_query_fires_for_the_greatest_metric_and_one_on_a_search_is_refused(watching: Watching) -> None:
    of_gpus = {**FLEET, "InstanceId": "i-1"}
    schema = f'"{watching.name}", EndpointName, VariantName, InstanceId, AcceleratorId'
    query = f"SELECT MAX(Used) FROM SCHEMA({schema}) WHERE EndpointName = 'e' AND VariantName = 'v'"  # noqa: S608
    of_one: dict[str, Any] = dict.fromkeys(("Namespace", "MetricName", "Statistic", "Period"))
    watching.put(Metrics=[{"Id": "q", "Expression": query, "Period": 60, "ReturnData": True}], **of_one)
    assert watching.state() == "INSUFFICIENT_DATA"
    for gpu, value in (("0", 1.0), ("1", 9.0)):
        watching.write(value, metric="Used", of={**of_gpus, "AcceleratorId": gpu})
    assert watching.state() == "ALARM"
    search = f"SEARCH('{{\"{watching.name}\",EndpointName}} MetricName=\"Used\"', 'Maximum', 60)"
    with pytest.raises(ClientError, match="SEARCH is not supported on Metric Alarms"):
        watching.put(Metrics=[{"Id": "s", "Expression": search, "ReturnData": True}], **of_one)
