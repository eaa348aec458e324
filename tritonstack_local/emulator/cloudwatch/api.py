"""CloudWatch's operations by name, and its CloudFormation types."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ministack.app
from ministack.core.responses import error_response_json
from ministack.services import cloudwatch

from tritonstack_local.emulator.cloudformation.provisioning import Properties, Provisioned, physical_name, register
from tritonstack_local.emulator.cloudwatch import alarms, metrics
from tritonstack_local.emulator.cloudwatch.alarm_evaluator import AlarmEvaluator, arn
from tritonstack_local.emulator.cloudwatch.dashboard import problems
from tritonstack_local.emulator.cloudwatch.metrics import Request, refused
from tritonstack_local.emulator.services import JsonService, call

_NAME = re.compile(r"[A-Za-z0-9_-]{1,255}")


def put_dashboard(request: Request) -> dict[str, Any]:
    """PutDashboard."""
    if not _NAME.fullmatch(request["DashboardName"]):
        raise refused(
            "PutDashboard",
            "The field DashboardName must be 1 to 255 letters, digits, dashes and underscores",
            code="InvalidParameterInput",
        )
    errors = problems(request["DashboardBody"])
    if errors:
        found = "; ".join(f"{path}: {sentence}" for path, sentence in errors)
        raise refused("PutDashboard", f"The dashboard body is invalid: {found}", code="InvalidParameterInput")
    arn = cloudwatch.cloudformation_put_dashboard(request["DashboardName"], request["DashboardBody"])
    if request.get("Tags"):
        cloudwatch._resource_tags[arn] = {tag["Key"]: tag["Value"] for tag in request["Tags"]}
    return {"DashboardValidationMessages": []}


# --- CloudFormation types: MiniStack's alarm refuses metric math, and its dashboard takes any text ---

_LONGEST_NAME = 255


class _AlarmResource:
    """AWS::CloudWatch::Alarm or CompositeAlarm."""

    def __init__(self, operation: str) -> None:
        self._operation = operation

    def create(self, logical_id: str, properties: Properties, stack_name: str) -> Provisioned:
        name = properties.get("AlarmName") or physical_name(stack_name, logical_id, longest=_LONGEST_NAME)
        return self._put(name, properties)

    def update(self, name: str, old: Properties, new: Properties, _stack_name: str) -> Provisioned:
        """Putting an alarm that exists ignores its tags (API reference)."""
        kept = _own_tags(new)
        dropped = {tag["Key"] for tag in _own_tags(old)} - {tag["Key"] for tag in kept}
        if dropped:
            call("cloudwatch", "UntagResource", {"ResourceARN": arn(name), "TagKeys": sorted(dropped)})
        if kept:
            call("cloudwatch", "TagResource", {"ResourceARN": arn(name), "Tags": kept})
        return self._put(name, new)

    @staticmethod
    def delete(name: str, _properties: Properties) -> None:
        call("cloudwatch", "DeleteAlarms", {"AlarmNames": [name]})

    def _put(self, name: str, properties: Properties) -> Provisioned:
        call("cloudwatch", self._operation, {**properties, "Tags": _own_tags(properties), "AlarmName": name})
        return name, {"Arn": arn(name)}


def _own_tags(properties: Properties) -> list[dict[str, str]]:
    """Without CloudFormation's ``aws:`` tags, which the API refuses."""
    return [tag for tag in properties.get("Tags", []) if not tag["Key"].startswith("aws:")]


def _create_dashboard(logical_id: str, properties: Properties, stack_name: str) -> Provisioned:
    name = properties.get("DashboardName") or physical_name(stack_name, logical_id, longest=_LONGEST_NAME)
    return _put_dashboard_resource(name, {}, properties, stack_name)


def _put_dashboard_resource(name: str, _old: Properties, new: Properties, _stack_name: str) -> Provisioned:
    call("cloudwatch", "PutDashboard", {"DashboardName": name, "DashboardBody": new["DashboardBody"]})
    return name, {}


def _delete_dashboard(name: str, _properties: Properties) -> None:
    call("cloudwatch", "DeleteDashboards", {"DashboardNames": [name]})


def _install_resources() -> None:
    for kind, operation in (("Alarm", "PutMetricAlarm"), ("CompositeAlarm", "PutCompositeAlarm")):
        resource = _AlarmResource(operation)
        register(f"AWS::CloudWatch::{kind}", create=resource.create, update=resource.update, delete=resource.delete)
    register(
        "AWS::CloudWatch::Dashboard",
        create=_create_dashboard,
        update=_put_dashboard_resource,
        delete=_delete_dashboard,
    )


Operation = Callable[[dict[str, Any]], dict[str, Any] | None]
_OPERATIONS: dict[str, Operation] = {
    "DeleteAlarms": alarms.delete_alarms,
    "DescribeAlarmHistory": alarms.refuse_operation,
    "DescribeAlarms": alarms.describe_alarms,
    "DescribeAlarmsForMetric": alarms.refuse_operation,
    "GetMetricData": metrics.get_metric_data,
    "GetMetricStatistics": metrics.get_metric_statistics,
    "ListMetrics": metrics.list_metrics,
    "PutCompositeAlarm": alarms.put_composite_alarm,
    "PutDashboard": put_dashboard,
    "PutMetricAlarm": alarms.put_metric_alarm,
    "PutMetricData": metrics.put_metric_data,
    "SetAlarmState": alarms.set_alarm_state,
}
"""Operations served here; MiniStack serves the others."""
_ONLY_JSON = (
    "CloudWatch's CBOR protocol and its query protocol are not in the local AWS; it has the JSON protocol of today's "
    "boto3 and AWS CLI"
)


def install(*, before: Sequence[Callable[[], None]], after: Sequence[Callable[[], None]]) -> AlarmEvaluator:
    """Put the operations into MiniStack and evaluate alarms from now on. Once a process.

    ``before`` and ``after`` are called around each evaluation: to write metrics, and to follow alarms that are on.
    """
    theirs = ministack.app._get_module("cloudwatch").handle_request

    ours = JsonService(service="cloudwatch", operations=_OPERATIONS, invalid="ValidationError")

    async def handle(method: str, path: str, headers: Mapping[str, str], body: bytes, query: Mapping[str, Any]) -> Any:
        operation = headers.get("x-amz-target", "").rpartition(".")[2]
        if not operation:
            return error_response_json("SerializationException", _ONLY_JSON, 400)
        served = ours.handle if operation in _OPERATIONS else theirs
        return await served(method, path, headers, body, query)

    cloudwatch.handle_request = handle
    cloudwatch._evaluate_alarm = lambda _alarm: None
    cloudwatch._evaluate_all_alarms = lambda: None
    cloudwatch._evaluate_parent_alarms = lambda _child, _seen=frozenset(): None
    cloudwatch._record_history = lambda *_arguments, **_more: None
    cloudwatch._evict_old_metrics = lambda: None
    cloudwatch.record_metric = metrics.record
    cloudwatch._metric_bucket = metrics.points_of
    _install_resources()
    evaluator = AlarmEvaluator(before=before, after=after)
    evaluator.start()
    return evaluator
