"""Dashboards: bodies that CloudWatch would refuse, or that this project's dashboards do not have."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.tritonstack_local.emulator.cloudwatch.watching import Watching
from tests.tritonstack_local.emulator.running import Emulator
from tritonstack_local.emulator.cloudwatch.dashboard import problems

METRIC = {"metrics": [["AWS/SageMaker", "Invocations", "EndpointName", "e"]], "region": "us-east-1"}
MATH = [{"expression": "m1 / 2", "id": "e1", "label": "half"}]


def widget(properties: Any, kind: str = "metric", **more: Any) -> dict[str, Any]:
    """A widget."""
    return {"type": kind, "x": 0, "y": 0, "width": 12, "height": 6, "properties": properties, **more}


def body(*widgets: Any, **more: Any) -> str:
    """A dashboard's body."""
    return json.dumps({"widgets": list(widgets), **more})


@pytest.mark.parametrize(
    ("text", "path", "words"),
    [
        ("no JSON", "/", "valid JSON"),
        ("{}", "", "required key [widgets]"),
        (body("x"), "/widgets/0", "of type object"),
        (body(widget(METRIC, "log")), "/widgets/0/type", "allowed: metric, text"),
        (body(widget(METRIC, x=-1)), "/widgets/0/x", "from 0 to 23"),
        (body(widget(METRIC, height=1001)), "/widgets/0/height", "from 1 to 1000"),
        (body(widget(METRIC, x=20)), "/widgets/0", "beyond the 24 columns"),
        (body({"type": "text", "x": 1, "properties": {"markdown": ""}}), "/widgets/0", "both or not at all"),
        (body(widget(METRIC, comment="c")), "/widgets/0", "extraneous key [comment]"),
        (body(widget({**METRIC, "titel": "t"})), "/widgets/0/properties", "key [titel] is not permitted (near: title"),
        (body(widget({"metrics": METRIC["metrics"]})), "/widgets/0/properties", "required key [region]"),
        (body(widget({**METRIC, "metrics": [["A", "B", "C"]]})), "/widgets/0/properties/metrics/0", "pairs"),
        (body(widget({**METRIC, "metrics": [["A", *MATH]]})), "/widgets/0/properties/metrics/0", "alone"),
        (
            body(widget({**METRIC, "metrics": [["A", "B", {"colour": 1}]]})),
            "/widgets/0/properties/metrics/0",
            "extraneous key [colour]",
        ),
        (body(widget({**METRIC, "period": 45})), "/widgets/0/properties/period", "multiple of 60"),
        (body(widget({"text": "a", "markdown": ""}, "text")), "/widgets/0/properties", "extraneous key [text]"),
        (body(note="n"), "", "extraneous key [note]"),
        (body(*[widget(METRIC)] * 501), "/widgets", "at most 500"),
    ],
)
def test_bodies_that_are_wrong_are_reported_where(text: str, path: str, words: str) -> None:
    [problem] = problems(text)
    assert problem.startswith(f"{path}: ")
    assert words in problem


@pytest.mark.parametrize(("suffix", "text"), [("", body(widget({}))), (" name", body())])
def test_a_wrong_dashboard_is_refused_and_not_kept(aws: Emulator, name: str, suffix: str, text: str) -> None:
    cloudwatch = aws.client("cloudwatch")
    with pytest.raises(ClientError) as refusal:
        cloudwatch.put_dashboard(DashboardName=name + suffix, DashboardBody=text)
    assert refusal.value.response["Error"]["Code"] == "InvalidParameterInput"
    assert cloudwatch.list_dashboards(DashboardNamePrefix=name)["DashboardEntries"] == []


def resources(watching: Watching, **changed: Any) -> dict[str, Any]:
    """An alarm on an expression, a composite alarm over it, and a dashboard of it."""
    queries = [
        {"Id": "e1", "Expression": "100 * m1 / m2", "ReturnData": "true"},
        *(
            {**watching.query(key, metric), "ReturnData": False}
            for key, metric in {"m1": "Errors", "m2": "Calls"}.items()
        ),
    ]
    metric = {"Metrics": queries, "EvaluationPeriods": "1", "Threshold": "5", "TreatMissingData": "notBreaching"}
    alarm = {**metric, "ComparisonOperator": "GreaterThanThreshold", "AlarmName": watching.name, **changed}
    text = {"type": "text", "properties": {"markdown": "# Alarms"}}
    return {
        "Alarm": {"Type": "AWS::CloudWatch::Alarm", "Properties": alarm},
        "Any": {
            "Type": "AWS::CloudWatch::CompositeAlarm",
            "Properties": {"AlarmName": f"{watching.name}-any", "AlarmRule": {"Fn::Sub": "ALARM(${Alarm})"}},
        },
        "Board": {
            "Type": "AWS::CloudWatch::Dashboard",
            "Properties": {"DashboardName": f"{watching.name}-board", "DashboardBody": json.dumps({"widgets": [text]})},
        },
    }


def test_an_alarm_on_an_expression_is_deployed_evaluated_updated_and_deleted(watching: Watching, aws: Emulator) -> None:
    name = watching.name
    assert aws.deploy(name, resources(watching)) == "CREATE_COMPLETE", aws.failures(name)
    watching.write(1)
    watching.write(1, 9, metric="Calls")
    watching.pass_minutes(0)
    assert (watching.state(), watching.alarm(f"{name}-any")["StateValue"]) == ("ALARM", "ALARM")
    changed = resources(watching, Threshold=20, AlarmDescription="Higher.")
    changed["Board"]["Properties"] |= {"DashboardBody": '{"widgets": []}', "Tags": [{"Key": "team", "Value": "models"}]}
    assert aws.deploy(name, changed) == "UPDATE_COMPLETE", aws.failures(name)
    assert watching.cloudwatch.get_dashboard(DashboardName=f"{name}-board")["DashboardBody"] == '{"widgets": []}'
    assert watching.alarm()["AlarmDescription"] == "Higher."
    watching.write(0, minutes_ago=0)
    watching.write(1, minutes_ago=0, metric="Calls")
    watching.pass_minutes()
    assert (watching.state(), watching.alarm(f"{name}-any")["StateValue"]) == ("OK", "OK")
    assert aws.delete_stack(name) == "DELETE_COMPLETE"
    left = watching.cloudwatch.describe_alarms(AlarmNamePrefix=name, AlarmTypes=["MetricAlarm", "CompositeAlarm"])
    assert left["MetricAlarms"] == left["CompositeAlarms"] == []
    assert watching.cloudwatch.list_dashboards(DashboardNamePrefix=name)["DashboardEntries"] == []


def test_a_wrong_expression_and_a_wrong_dashboard_fail_the_stack(watching: Watching, aws: Emulator) -> None:
    wrong = resources(watching)
    wrong["Alarm"]["Properties"]["Metrics"][0]["Expression"] = "MEDIAN(m1)"
    assert aws.deploy(watching.name, wrong) == "ROLLBACK_COMPLETE"
    assert "Function MEDIAN is not in the local AWS" in aws.failures(watching.name)
    board = {"Board": resources(watching)["Board"]}
    board["Board"]["Properties"]["DashboardBody"] = '{"widgets": [{}]}'
    assert aws.deploy(f"{watching.name}-2", board) == "ROLLBACK_COMPLETE"
    assert "/widgets/0: required key [type] not found" in aws.failures(f"{watching.name}-2")
