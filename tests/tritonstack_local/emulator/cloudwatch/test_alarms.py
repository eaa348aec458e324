"""Alarms in the running local AWS: which data count, what they mean, and what state follows."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.tritonstack_local.emulator.cloudwatch.watching import PERIOD, Watching
from tests.tritonstack_local.emulator.running import wait_until

FLEET = {"EndpointName": "e", "VariantName": "v"}
NEW = {**FLEET, "EndpointConfigName": "new"}
OLD = {**FLEET, "EndpointConfigName": "old"}


def as_members(dimensions: dict[str, str]) -> list[dict[str, str]]:
    """Dimensions as a request has them."""
    return [{"Name": name, "Value": value} for name, value in dimensions.items()]


def test_an_alarm_watches_exactly_its_dimensions(watching: Watching) -> None:
    names = {"new": NEW, "old": OLD, "both": FLEET}
    for name, dimensions in names.items():
        watching.put(f"{watching.name}-{name}", Dimensions=as_members(dimensions))
    watching.write(9, of=NEW)
    watching.write(1, of=OLD)
    watching.write(0, of={**FLEET, "VariantName": "other"})
    states = {name: watching.state(f"{watching.name}-{name}") for name in names}
    assert states == {"new": "ALARM", "old": "OK", "both": "INSUFFICIENT_DATA"}


def test_dimensions_are_a_set_without_order(watching: Watching) -> None:
    watching.write(9, of=NEW)
    watching.put(Dimensions=as_members(dict(reversed(NEW.items()))))
    assert watching.state() == "ALARM"


@pytest.mark.parametrize(
    ("statistic", "threshold", "state"),
    [("Sum", 15.9, "ALARM"), ("Sum", 16, "OK"), ("SampleCount", 4, "OK")],
)
def test_the_alarms_statistic_is_compared(watching: Watching, statistic: str, threshold: float, state: str) -> None:
    watching.write(1, 2, 4, 9)
    watching.put(Statistic=statistic, Threshold=threshold)
    assert watching.state() == state


@pytest.mark.parametrize(("name", "threshold", "state"), [("p50", 50.4, "ALARM"), ("p50", 50.6, "OK")])
def test_percentiles(watching: Watching, name: str, threshold: float, state: str) -> None:
    watching.write(*range(1, 101))
    watching.put(Statistic=None, ExtendedStatistic=name, Threshold=threshold)
    assert watching.state() == state


@pytest.mark.parametrize(
    ("operator", "state"),
    [("GreaterThanThreshold", "OK"), ("GreaterThanOrEqualToThreshold", "ALARM"), ("LessThanThreshold", "OK"),
     ("LessThanOrEqualToThreshold", "ALARM")],
)  # fmt: skip
def test_comparisons_at_the_threshold(watching: Watching, operator: str, state: str) -> None:
    watching.write(5)
    watching.put(ComparisonOperator=operator)
    assert watching.state() == state


@pytest.mark.parametrize(
    ("treatment", "state"),
    [(None, "INSUFFICIENT_DATA"), ("missing", "INSUFFICIENT_DATA"), ("breaching", "ALARM"), ("notBreaching", "OK")],
)
def test_missing_data_are_treated_by_the_alarms_setting(watching: Watching, treatment: str | None, state: str) -> None:
    watching.put(TreatMissingData=treatment)
    assert watching.state() == state


def test_missing_data_that_are_ignored_keep_the_state(watching: Watching) -> None:
    watching.put(TreatMissingData="ignore")
    watching.write(9)
    assert watching.state() == "ALARM"
    watching.pass_minutes(10)
    assert watching.state() == "ALARM"
    watching.write(0)
    assert watching.state() == "OK"


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


def test_data_that_come_late_count(watching: Watching) -> None:
    watching.put(TreatMissingData="notBreaching")
    assert watching.state() == "OK"
    watching.write(9, minutes_ago=2)
    assert watching.state() == "ALARM"


def test_a_caller_whose_time_is_the_systems_is_understood_when_the_clock_was_moved(watching: Watching) -> None:
    watching.put()
    watching.pass_minutes(60)
    minute_ago = datetime.now(UTC) - timedelta(minutes=1)
    datum = {"MetricName": "Errors", "Timestamp": minute_ago, "Value": 9.0}
    watching.cloudwatch.put_metric_data(Namespace=watching.name, MetricData=[datum])
    watching.pass_minutes()
    assert watching.alarm()["StateValue"] == "ALARM"


def test_alarms_are_evaluated_without_anybody_asking(watching: Watching) -> None:
    watching.write(9)
    watching.put()
    wait_until(watching.alarm, lambda alarm: alarm["StateValue"] == "ALARM")


@pytest.mark.parametrize("period", [10, 30])
def test_high_resolution_alarms_look_at_whole_periods_below_a_minute(watching: Watching, period: int) -> None:
    watching.put(Period=period)
    datum = {"MetricName": "Errors", "Timestamp": watching.told_start + 1, "Value": 9.0, "StorageResolution": 1}
    watching.cloudwatch.put_metric_data(Namespace=watching.name, MetricData=[datum])
    watching.emulator.advance(period)
    assert watching.alarm()["StateValue"] == "ALARM"


def test_another_unit_is_missing_data(watching: Watching) -> None:
    watching.write(9)
    watching.put(Unit="Seconds")
    assert watching.state() == "INSUFFICIENT_DATA"


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
    assert "statistic" not in json.loads(alarm["StateReasonData"])


def test_an_expression_without_points_is_missing_data(watching: Watching) -> None:
    watching.put_math("m1 / m2", metrics={"m1": "Errors", "m2": "Calls"}, TreatMissingData="breaching")
    assert watching.state() == "ALARM"


# A state that is set by hand ----------------------------------------------------------------------------------------


def set_state(watching: Watching, state: str, name: str = "") -> None:
    """SetAlarmState."""
    watching.cloudwatch.set_alarm_state(AlarmName=name or watching.name, StateValue=state, StateReason="by hand")


@pytest.mark.parametrize("treatment", ["missing", "breaching", "notBreaching", "ignore"])
def test_a_state_set_by_hand_stays_while_there_are_no_data(watching: Watching, treatment: str) -> None:
    watching.put(TreatMissingData=treatment)
    for state in ("OK", "ALARM"):
        set_state(watching, state)
        watching.pass_minutes(3)
        assert (watching.state(), watching.alarm()["StateReason"]) == (state, "by hand")


def test_a_state_set_by_hand_ends_with_the_next_periods_data(watching: Watching) -> None:
    watching.put()
    watching.write(0)
    assert watching.state() == "OK"
    set_state(watching, "ALARM")
    assert watching.state() == "ALARM", "the same data as before"
    watching.write(0, minutes_ago=0)
    watching.pass_minutes()
    assert watching.alarm()["StateValue"] == "OK"


def test_an_alarm_that_is_put_again_keeps_its_state_until_it_is_evaluated(watching: Watching) -> None:
    watching.put()
    set_state(watching, "ALARM")
    watching.put(Threshold=100)
    assert watching.alarm()["StateValue"] == "ALARM"
    watching.write(50)
    watching.pass_minutes()
    assert watching.alarm()["StateValue"] == "OK"


# Why ----------------------------------------------------------------------------------------------------------------


def test_reason_data_and_history_tell_why(watching: Watching) -> None:
    watching.write(1, minutes_ago=2)
    watching.write(9.5, minutes_ago=1)
    watching.put(EvaluationPeriods=2, DatapointsToAlarm=1)
    watching.evaluated()
    alarm = watching.alarm()
    assert alarm["StateReason"].startswith("Threshold Crossed: 1 out of the last 2 datapoints [9.5 (")
    assert alarm["StateReason"].endswith(
        "was greater than the threshold (5.0) (minimum 1 datapoint for OK -> ALARM transition)."
    )
    data = json.loads(alarm["StateReasonData"])
    assert {key: data[key] for key in ("version", "statistic", "period", "recentDatapoints", "threshold")} == {
        "version": "1.0",
        "statistic": "Sum",
        "period": PERIOD,
        "recentDatapoints": [1.0, 9.5],
        "threshold": 5.0,
    }
    [update] = watching.history("StateUpdate")
    assert update["summary"] == "Alarm updated from INSUFFICIENT_DATA to ALARM"
    assert update["oldState"] == {
        "stateValue": "INSUFFICIENT_DATA",
        "stateReason": "Unchecked: Initial alarm creation",
    }
    assert update["newState"]["stateReasonData"] == alarm["StateReasonData"]
    assert alarm["StateTransitionedTimestamp"] == alarm["StateUpdatedTimestamp"]


@pytest.mark.parametrize(
    ("settings", "values", "words"),
    [
        ({}, [1], "[1.0 ("),
        ({}, [1], ")] was not greater than the threshold (5.0) (minimum 1 datapoint for ALARM -> OK transition)."),
        ({"TreatMissingData": "breaching"}, [], "no datapoints were received for 1 period and 1 missing datapoint was"),
        ({"TreatMissingData": "breaching"}, [], "treated as [Breaching]."),
        ({"TreatMissingData": "notBreaching"}, [], "treated as [NonBreaching]."),
    ],
)
def test_sentences_of_reasons(watching: Watching, settings: dict[str, Any], values: list[float], words: str) -> None:
    if values:
        watching.write(*values)
    watching.put(**settings)
    watching.evaluated()
    assert words in watching.alarm()["StateReason"]


def test_a_lack_of_data_is_reported(watching: Watching) -> None:
    watching.put()
    watching.write(9)
    watching.evaluated()
    watching.pass_minutes(10)
    alarm = watching.alarm()
    assert (alarm["StateValue"], alarm["StateReason"]) == (
        "INSUFFICIENT_DATA",
        "Insufficient Data: 1 datapoint was unknown.",
    )


def test_history_is_scanned_both_ways_in_pages_and_by_time(watching: Watching) -> None:
    watching.put()
    times = []
    for state in ("OK", "ALARM", "OK"):
        set_state(watching, state)
        times.append(watching.now())
        watching.pass_minutes()
    oldest_first = watching.history("StateUpdate", ScanBy="TimestampAscending")
    assert [item["newState"]["stateValue"] for item in oldest_first] == ["OK", "ALARM", "OK"]
    assert watching.history("StateUpdate") == oldest_first[::-1]
    assert len(watching.history("StateUpdate", StartDate=times[0] + 1, EndDate=times[1] + 1)) == 1
    ask = {"AlarmName": watching.name, "HistoryItemType": "StateUpdate", "MaxRecords": 2}
    first = watching.cloudwatch.describe_alarm_history(**ask)
    second = watching.cloudwatch.describe_alarm_history(**ask, NextToken=first["NextToken"])
    assert [len(page["AlarmHistoryItems"]) for page in (first, second)] == [2, 1]
    assert "NextToken" not in second
