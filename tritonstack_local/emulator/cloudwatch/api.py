"""CloudWatch put into MiniStack: the local AWS's own operations, and MiniStack's evaluation switched off."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ministack.app
from ministack.services import cloudwatch

from tritonstack_local.emulator.cloudwatch import (
    alarm_operations,
    dashboard_operations,
    metric_operations,
    metric_store,
    wire,
)
from tritonstack_local.emulator.cloudwatch.alarm_evaluator import AlarmEvaluator
from tritonstack_local.emulator.refusal import RefusedError

Operation = Callable[[dict[str, Any]], dict[str, Any] | None]
_OPERATIONS: dict[str, Operation] = {
    "DeleteAlarms": alarm_operations.delete_alarms,
    "DescribeAlarmHistory": alarm_operations.describe_alarm_history,
    "DescribeAlarms": alarm_operations.describe_alarms,
    "DescribeAlarmsForMetric": alarm_operations.describe_alarms_for_metric,
    "DisableAlarmActions": alarm_operations.disable_alarm_actions,
    "EnableAlarmActions": alarm_operations.enable_alarm_actions,
    "GetMetricData": metric_operations.get_metric_data,
    "GetMetricStatistics": metric_operations.get_metric_statistics,
    "ListMetrics": metric_operations.list_metrics,
    "PutCompositeAlarm": alarm_operations.put_composite_alarm,
    "PutDashboard": dashboard_operations.put_dashboard,
    "PutMetricAlarm": alarm_operations.put_metric_alarm,
    "PutMetricData": metric_operations.put_metric_data,
    "SetAlarmState": alarm_operations.set_alarm_state,
}
"""What is answered here; tags, and dashboards once they are put, are answered by MiniStack."""


def install(*, alarm_seconds: float, before: Callable[[], None], after: Callable[[], None]) -> AlarmEvaluator:
    """Put the operations into MiniStack and evaluate alarms every ``alarm_seconds``. Once a process.

    ``before`` and ``after`` are called around each evaluation: to write metrics, and to follow alarms that are on.
    """
    theirs = ministack.app._get_module("cloudwatch").handle_request

    async def handle(method: str, path: str, headers: Mapping[str, str], body: bytes, query: Mapping[str, Any]) -> Any:
        message = wire.read(path, headers, body, query)
        operation = _OPERATIONS.get(message.operation)
        if operation is None:
            return await theirs(method, path, headers, body, query)
        try:
            return message.answer(operation(message.request()))
        except RefusedError as refusal:
            return message.refusal(refusal)

    cloudwatch.handle_request = handle
    cloudwatch._evaluate_alarm = lambda _alarm: None
    cloudwatch._evaluate_all_alarms = lambda: None
    cloudwatch._evaluate_parent_alarms = lambda _child, _seen=frozenset(): None
    cloudwatch._record_history = lambda *_arguments, **_more: None
    cloudwatch._evict_old_metrics = lambda: None
    cloudwatch.record_metric = metric_store.record
    cloudwatch._metric_bucket = metric_store.points_of
    evaluator = AlarmEvaluator(seconds=alarm_seconds, before=before, after=after)
    evaluator.start()
    return evaluator
