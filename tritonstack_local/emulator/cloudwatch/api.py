"""CloudWatch's operations by name, and its CloudFormation types."""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.cloudformation.provisioning import Properties, Provisioned, physical_name, register
from tritonstack_local.emulator.cloudwatch import alarms, metrics
from tritonstack_local.emulator.cloudwatch.alarm_evaluator import AlarmEvaluator, arn, note_change
from tritonstack_local.emulator.cloudwatch.dashboard import problems
from tritonstack_local.emulator.cloudwatch.metrics import Request, refused
from tritonstack_local.emulator.ministack_adapter import cloudwatch
from tritonstack_local.emulator.ministack_adapter.core import error_response_json
from tritonstack_local.emulator.services import JsonService, call

_NAME = re.compile(r"[A-Za-z0-9_-]{1,255}")


def put_dashboard(request: Request) -> dict[str, Any]:
    if not _NAME.fullmatch(request["DashboardName"]):
        raise refused(
            "PutDashboard",
            "The field DashboardName must be 1 to 255 letters, digits, dashes and underscores",
            code="InvalidParameterInput",
        )
    errors = problems(request["DashboardBody"])
    if errors:
        sentence = f"The dashboard body is invalid: {'; '.join(errors)}"
        raise refused("PutDashboard", sentence, code="InvalidParameterInput")
    arn = cloudwatch.put_dashboard(request["DashboardName"], request["DashboardBody"])
    if request.get("Tags"):
        cloudwatch.resource_tags()[arn] = {tag["Key"]: tag["Value"] for tag in request["Tags"]}
    return {"DashboardValidationMessages": []}


# --- CloudFormation types: MiniStack's alarm refuses metric math, and its dashboard takes any text ---

_LONGEST_NAME = 255


class _PutResource:
    """AWS::CloudWatch::Alarm, CompositeAlarm or Dashboard: put under its name, whether or not it is there."""

    def __init__(self, name: str, *, putting: str, deleting: str) -> None:
        """``name``: the member with the name; the others are operations."""
        self._name, self._putting, self._deleting = name, putting, deleting

    def create(self, logical_id: str, properties: Properties, stack_name: str) -> Provisioned:
        name = properties.get(self._name) or physical_name(stack_name, logical_id, longest=_LONGEST_NAME)
        return self._put(name, properties)

    def update(self, name: str, old: Properties, new: Properties, _stack_name: str) -> Provisioned:
        """Putting an alarm that exists ignores its tags (API reference); MiniStack tags nothing else."""
        kept = _own_tags(new)
        dropped = {tag["Key"] for tag in _own_tags(old)} - {tag["Key"] for tag in kept}
        alarm = self._name == "AlarmName"
        if alarm and dropped:
            call("cloudwatch", "UntagResource", {"ResourceARN": arn(name), "TagKeys": sorted(dropped)})
        if alarm and kept:
            call("cloudwatch", "TagResource", {"ResourceARN": arn(name), "Tags": kept})
        return self._put(name, new)

    def delete(self, name: str, _properties: Properties) -> None:
        call("cloudwatch", self._deleting, {f"{self._name}s": [name]})

    def _put(self, name: str, properties: Properties) -> Provisioned:
        tags = {"Tags": _own_tags(properties)} if "Tags" in properties else {}
        call("cloudwatch", self._putting, {**properties, **tags, self._name: name})
        return name, {"Arn": arn(name)} if self._name == "AlarmName" else {}


def _own_tags(properties: Properties) -> list[dict[str, str]]:
    """Without CloudFormation's ``aws:`` tags, which the API refuses."""
    return [tag for tag in properties.get("Tags", []) if not tag["Key"].startswith("aws:")]


def _install_resources() -> None:
    for kind, putting in (("Alarm", "PutMetricAlarm"), ("CompositeAlarm", "PutCompositeAlarm")):
        resource = _PutResource("AlarmName", putting=putting, deleting="DeleteAlarms")
        register(f"AWS::CloudWatch::{kind}", resource)
    dashboard = _PutResource("DashboardName", putting="PutDashboard", deleting="DeleteDashboards")
    register("AWS::CloudWatch::Dashboard", dashboard)


_ONLY_JSON = (
    "CloudWatch's CBOR protocol and its query protocol are not in the local AWS; it has the JSON protocol of today's "
    "boto3 and AWS CLI"
)


def install(*, before: Sequence[Callable[[], None]], after: Sequence[Callable[[], None]]) -> AlarmEvaluator:
    """Put the operations into MiniStack and evaluate alarms from now on. Once a process.

    ``before`` and ``after`` are called around each evaluation: to write metrics, and to follow alarms that are on.
    """
    dashboards = types.SimpleNamespace(put_dashboard=put_dashboard)
    JsonService(alarms, metrics, dashboards, service="cloudwatch", invalid="ValidationError").serve_first(
        cloudwatch.handle_request
    )
    serve = cloudwatch.handle_request.current

    async def handle(method: str, path: str, headers: Mapping[str, str], body: bytes, query: Any) -> Any:
        if "x-amz-target" not in headers:
            return error_response_json("SerializationException", _ONLY_JSON, 400)
        return await serve(method, path, headers, body, query)

    cloudwatch.handle_request.replace(handle)
    cloudwatch.evaluate_all_alarms.replace(lambda: None)
    cloudwatch.dispatch_alarm_actions.replace(note_change)
    cloudwatch.record_history.replace(lambda *_arguments, **_more: None)
    cloudwatch.evict_old_metrics.replace(lambda: None)
    cloudwatch.metric_bucket.replace(metrics.points_of)
    cloudwatch.system_time.replace(types.SimpleNamespace(time=clock.now))
    _install_resources()
    evaluator = AlarmEvaluator(before=before, after=after)
    evaluator.start()
    return evaluator
