"""AWS::CloudWatch::Alarm and AWS::CloudWatch::Dashboard, by the API's own operations.

MiniStack's alarm refuses metric math, and its dashboard takes any text.
"""

from __future__ import annotations

from tritonstack_local.emulator.cloudformation.provisioning import Properties, Provisioned, physical_name, register
from tritonstack_local.emulator.cloudwatch.alarm_state import arn
from tritonstack_local.emulator.ministack_call import call

_LONGEST_NAME = 255


def _put_alarm(name: str, properties: Properties) -> Provisioned:
    call("cloudwatch", "PutMetricAlarm", {**properties, "Tags": _own_tags(properties), "AlarmName": name})
    return name, {"Arn": arn(name)}


def _own_tags(properties: Properties) -> list[dict[str, str]]:
    """Without CloudFormation's own ``aws:`` tags, which the API takes from nobody."""
    return [tag for tag in properties.get("Tags", []) if not tag["Key"].startswith("aws:")]


def _create_alarm(logical_id: str, properties: Properties, stack_name: str) -> Provisioned:
    return _put_alarm(
        properties.get("AlarmName") or physical_name(stack_name, logical_id, longest=_LONGEST_NAME), properties
    )


def _update_alarm(name: str, old: Properties, new: Properties, _stack_name: str) -> Provisioned:
    """PutMetricAlarm ignores the tags of an alarm that exists (API reference)."""
    kept = _own_tags(new)
    dropped = {tag["Key"] for tag in _own_tags(old)} - {tag["Key"] for tag in kept}
    if dropped:
        call("cloudwatch", "UntagResource", {"ResourceARN": arn(name), "TagKeys": sorted(dropped)})
    if kept:
        call("cloudwatch", "TagResource", {"ResourceARN": arn(name), "Tags": kept})
    return _put_alarm(name, new)


def _delete_alarm(name: str, _properties: Properties) -> None:
    call("cloudwatch", "DeleteAlarms", {"AlarmNames": [name]})


def _create_dashboard(logical_id: str, properties: Properties, stack_name: str) -> Provisioned:
    name = properties.get("DashboardName") or physical_name(stack_name, logical_id, longest=_LONGEST_NAME)
    return _put_dashboard(name, properties)


def _put_dashboard(name: str, properties: Properties) -> Provisioned:
    call("cloudwatch", "PutDashboard", {"DashboardName": name, "DashboardBody": properties["DashboardBody"]})
    return name, {}


def _update_dashboard(name: str, _old: Properties, new: Properties, _stack_name: str) -> Provisioned:
    return _put_dashboard(name, new)


def _delete_dashboard(name: str, _properties: Properties) -> None:
    call("cloudwatch", "DeleteDashboards", {"DashboardNames": [name]})


def install() -> None:
    """Register both types."""
    register("AWS::CloudWatch::Alarm", create=_create_alarm, update=_update_alarm, delete=_delete_alarm)
    register("AWS::CloudWatch::Dashboard", create=_create_dashboard, update=_update_dashboard, delete=_delete_dashboard)
