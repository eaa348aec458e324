"""Alarms and dashboards as CloudFormation makes them."""

from __future__ import annotations

import json
from typing import Any

from tests.tritonstack_local.emulator.cloudwatch.watching import Watching
from tests.tritonstack_local.emulator.running import Emulator


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
    widget = {"type": "alarm", "properties": {"alarms": ["arn:aws:cloudwatch:us-east-1:123456789012:alarm:x"]}}
    return {
        "Alarm": {"Type": "AWS::CloudWatch::Alarm", "Properties": alarm},
        "Any": {
            "Type": "AWS::CloudWatch::CompositeAlarm",
            "Properties": {"AlarmName": f"{watching.name}-any", "AlarmRule": {"Fn::Sub": "ALARM(${Alarm})"}},
        },
        "Board": {
            "Type": "AWS::CloudWatch::Dashboard",
            "Properties": {"DashboardName": watching.name, "DashboardBody": json.dumps({"widgets": [widget]})},
        },
    }


def test_an_alarm_on_an_expression_is_deployed_evaluated_updated_and_deleted(watching: Watching, aws: Emulator) -> None:
    name = watching.name
    assert aws.deploy(name, resources(watching)) == "CREATE_COMPLETE", aws.failures(name)
    watching.write(1)
    watching.write(1, 9, metric="Calls")
    watching.pass_minutes(0)
    assert (watching.state(), watching.alarm(f"{name}-any")["StateValue"]) == ("ALARM", "ALARM")
    assert aws.deploy(name, resources(watching, Threshold=20, AlarmDescription="Higher.")) == "UPDATE_COMPLETE"
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
    assert "/widgets/0/type" in aws.failures(f"{watching.name}-2")
