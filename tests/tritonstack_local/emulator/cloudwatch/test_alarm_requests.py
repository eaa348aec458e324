"""Alarms that CloudWatch would not take."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.tritonstack_local.emulator.cloudwatch.watching import Watching

DIMENSION = {"Name": "A", "Value": "b"}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"Statistic": None}, "Exactly one of Statistic and ExtendedStatistic"),
        ({"ExtendedStatistic": "p99"}, "Exactly one of Statistic and ExtendedStatistic"),
        ({"Statistic": None, "ExtendedStatistic": "p200"}, "p200 is no statistic"),
        ({"Statistic": "Median"}, "enum value set"),
        ({"Period": 45}, "Period 45 is not valid"),
        ({"Period": None}, "Period is required"),
        ({"MetricName": None}, "MetricName is required"),
        ({"EvaluationPeriods": None}, "EvaluationPeriods is required"),
        ({"EvaluationPeriods": 1441}, "more than 86400 seconds"),
        ({"EvaluationPeriods": 169, "Period": 3600}, "more than 604800 seconds"),
        ({"DatapointsToAlarm": 2}, "DatapointsToAlarm must not be greater"),
        ({"TreatMissingData": "fine"}, "TreatMissingData fine"),
        ({"Threshold": None}, "Threshold is required"),
        ({"ComparisonOperator": None}, "ComparisonOperator is required"),
        ({"ComparisonOperator": "GreaterThanUpperThreshold"}, "anomaly detection"),
        ({"EvaluateLowSampleCountPercentile": "ignore"}, "EvaluateLowSampleCountPercentile is not in the local AWS"),
        ({"AlarmActions": ["nobody"]}, "Invalid arn syntax in AlarmActions: nobody"),
        ({"Dimensions": [DIMENSION, DIMENSION]}, "Dimension A is given more than once"),
        ({"AlarmName": "L\u00e4rm"}, "only ASCII"),
        ({"Tags": [{"Key": "aws:mine", "Value": "x"}]}, "must not start with"),
        ({"ThresholdMetricId": "e1"}, "ThresholdMetricId is not in the local AWS"),
    ],
)
def test_alarms_on_a_metric_that_cannot_be_are_refused(watching: Watching, changed: dict[str, Any], words: str) -> None:
    with pytest.raises(ClientError, match=words) as refusal:
        watching.put(**changed)
    assert refusal.value.response["Error"]["Code"] == "ValidationError"
    assert watching.cloudwatch.describe_alarms(AlarmNamePrefix=watching.name)["MetricAlarms"] == []


def test_every_problem_is_reported_at_once(watching: Watching) -> None:
    with pytest.raises(ClientError) as refusal:
        watching.put(Period=45, TreatMissingData="fine", Threshold=None)
    for words in ("Period 45", "TreatMissingData fine", "Threshold is required"):
        assert words in str(refusal.value)


@pytest.mark.parametrize(
    ("expression", "changed", "words"),
    [
        ("m1 +", {}, "Error in expression 'e1': 'm1 .' is not metric math"),
        ("m9", {}, "Undefined variable m9"),
        ("MEDIAN(m1)", {}, "Function MEDIAN is not in the local AWS"),
        ("m1", {"Period": 60}, "Period cannot be given with Metrics"),
        ("m1", {"Statistic": "Sum"}, "Statistic cannot be given with Metrics"),
        ("e1", {}, "in a circle"),
    ],
)
def test_alarms_on_expressions_that_cannot_be_are_refused(
    watching: Watching, expression: str, changed: dict[str, Any], words: str
) -> None:
    with pytest.raises(ClientError, match=words):
        watching.put_math(expression, metrics={"m1": "Errors"}, **changed)


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
    ):
        with pytest.raises(ClientError, match=words):
            watching.put(**{**of_one, "Metrics": queries})


def test_a_state_of_no_alarm_cannot_be_set(watching: Watching) -> None:
    with pytest.raises(watching.cloudwatch.exceptions.ResourceNotFound):
        watching.cloudwatch.set_alarm_state(AlarmName=watching.name, StateValue="OK", StateReason="-")


def test_tags_are_kept_at_creation_and_listed(watching: Watching) -> None:
    watching.put(Tags=[{"Key": "team", "Value": "platform"}])
    watching.put(Tags=[{"Key": "team", "Value": "other"}])
    tags = watching.cloudwatch.list_tags_for_resource(ResourceARN=watching.alarm()["AlarmArn"])["Tags"]
    assert tags == [{"Key": "team", "Value": "platform"}]


def test_a_configuration_has_a_history(watching: Watching) -> None:
    watching.put()
    watching.put(Threshold=7)
    watching.cloudwatch.delete_alarms(AlarmNames=[watching.name])
    summaries = [item["summary"] for item in watching.history("ConfigurationUpdate")]
    assert summaries == [f'Alarm "{watching.name}" {verb}' for verb in ("deleted", "updated", "created")]
