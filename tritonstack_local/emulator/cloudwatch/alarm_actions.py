"""What follows a change of state: an event to EventBridge, always, and the alarm's actions where they are enabled.

Sources: CloudWatch user guide, "Alarm events and EventBridge" (events) and "Alarm actions". AWS shows no full SNS
message; its members here are those that published receivers of such messages read (UNVERIFIED).

An SNS topic is published to. The alarms of target tracking are followed by ``target_tracking``. Any other action (a
scaling policy of another kind, a Lambda function, EC2, Systems Manager) is recognised and not executed: the log and the
alarm's history say so.
"""

from __future__ import annotations

import functools
import json
import logging
import uuid
from typing import Any

import botocore.session
from ministack.core.arn import ArnParseError, parse_arn
from ministack.core.responses import get_account_id, get_region
from ministack.services import sns

from tritonstack_local.emulator import kms_keys, service_events
from tritonstack_local.emulator.cloudwatch import alarm_records
from tritonstack_local.emulator.cloudwatch.alarm_reason import iso
from tritonstack_local.emulator.cloudwatch.alarm_records import Alarm

logger = logging.getLogger("tritonstack.emulator.alarms")
_ACTIONS = {"ALARM": "AlarmActions", "OK": "OKActions", "INSUFFICIENT_DATA": "InsufficientDataActions"}
_STATISTICS = {
    "Average": "AVERAGE", "Sum": "SUM", "Minimum": "MINIMUM", "Maximum": "MAXIMUM", "SampleCount": "SAMPLE_COUNT",
}  # fmt: skip


def follow(alarm: Alarm, before: dict[str, Any]) -> None:
    """Tell of a change. ``alarm`` is as it is now; ``before`` holds value, reason and time as they were.

    Not to be called with the lock held.
    """
    detail = {
        "alarmName": alarm["AlarmName"],
        "configuration": configuration(alarm),
        "previousState": _state(before),
        "state": _state(alarm),
    }
    service_events.emit("aws.cloudwatch", "CloudWatch Alarm State Change", detail, [alarm["AlarmArn"]])
    actions = alarm.get(_ACTIONS[alarm["StateValue"]]) or []
    if not alarm.get("ActionsEnabled", True) or _suppressed(alarm):
        return
    for action in actions:
        _execute(action, alarm, before)


def _state(alarm: dict[str, Any]) -> dict[str, Any]:
    found = {"value": alarm["StateValue"], "reason": alarm["StateReason"]}
    if alarm.get("StateReasonData"):
        found["reasonData"] = alarm["StateReasonData"]
    return {**found, "timestamp": iso(alarm["StateUpdatedTimestamp"])}


def configuration(alarm: Alarm) -> dict[str, Any]:
    """``configuration`` of an event."""
    found: dict[str, Any] = {"description": alarm["AlarmDescription"]} if alarm.get("AlarmDescription") else {}
    if alarm_records.is_composite(alarm):
        return {**found, "alarmRule": alarm["AlarmRule"]}
    if "Metrics" in alarm:
        return {**found, "metrics": [_metric_of(query) for query in alarm["Metrics"]]}
    stat = {"period": alarm["Period"], "stat": alarm.get("Statistic") or alarm.get("ExtendedStatistic")}
    read = {"MetricStat": {"Metric": alarm, "Period": stat["period"], "Stat": stat["stat"]}, "ReturnData": True}
    return {**found, "metrics": [_metric_of({"Id": str(uuid.uuid5(uuid.NAMESPACE_URL, alarm["AlarmArn"])), **read})]}


def _metric_of(query: dict[str, Any]) -> dict[str, Any]:
    found = {"id": query["Id"], "returnData": query.get("ReturnData", True)}
    if "Expression" in query:
        label = {"label": query["Label"]} if "Label" in query else {}
        return {**found, "expression": query["Expression"], **label}
    stat = query["MetricStat"]
    dimensions = {one["Name"]: one["Value"] for one in stat["Metric"].get("Dimensions", [])}
    metric = {"dimensions": dimensions, "name": stat["Metric"]["MetricName"], "namespace": stat["Metric"]["Namespace"]}
    return {**found, "metricStat": {"metric": metric, "period": stat["Period"], "stat": stat["Stat"]}}


def _suppressed(alarm: Alarm) -> bool:
    """Whether a composite alarm's suppressor is in ALARM. Its two waits are kept and not waited."""
    suppressor = alarm.get("ActionsSuppressor")
    found = alarm_records.find(suppressor.rpartition(":")[2]) if suppressor else None
    return found is not None and found["StateValue"] == "ALARM"


def _execute(action: str, alarm: Alarm, before: dict[str, Any]) -> None:
    try:
        service = parse_arn(action).service
    except ArnParseError:
        service = ""
    if service == "autoscaling" and alarm["AlarmName"].startswith("TargetTracking-"):
        return
    if service == "sns" and sns._topic_by_arn_any_scope(action):
        source = {"aws:SourceArn": alarm["AlarmArn"], "aws:SourceAccount": get_account_id()}
        refusal = kms_keys.publishing_refusal(action, service="cloudwatch.amazonaws.com", source=source)
        if refusal is not None:
            logger.warning("alarm %s: not published to %s: %s", alarm["AlarmName"], action, refusal)
            _tell(action, alarm, error=refusal)
            return
        text = json.dumps(message(alarm, before))
        subject = f'{alarm["StateValue"]}: "{alarm["AlarmName"]}" in {_region_name()}'[:100]
        sns._fanout(action, str(uuid.uuid4()), text, subject)
        _tell(action, alarm, error=None)
    else:
        error = "there is no such topic" if service == "sns" else "the local AWS executes no such action"
        logger.warning("alarm %s: action %s is not executed: %s", alarm["AlarmName"], action, error)
        _tell(action, alarm, error=error)


def _tell(action: str, alarm: Alarm, *, error: str | None) -> None:
    words = "Failed to execute" if error else "Successfully executed"
    data = {"actionState": "Failed" if error else "Succeeded", "notificationResource": action}
    alarm_records.add_history(
        alarm, "Action", f"{words} action {action}", {**data, **({"error": error} if error else {})}
    )


def message(alarm: Alarm, before: dict[str, Any]) -> dict[str, Any]:
    """The SNS message."""
    found = {
        "AlarmName": alarm["AlarmName"],
        "AlarmDescription": alarm.get("AlarmDescription"),
        "AWSAccountId": get_account_id(),
        "AlarmConfigurationUpdatedTimestamp": iso(alarm["AlarmConfigurationUpdatedTimestamp"]),
        "NewStateValue": alarm["StateValue"],
        "NewStateReason": alarm["StateReason"],
        "StateChangeTime": iso(alarm["StateUpdatedTimestamp"]),
        "Region": _region_name(),
        "AlarmArn": alarm["AlarmArn"],
        "OldStateValue": before["StateValue"],
        "OKActions": alarm.get("OKActions", []),
        "AlarmActions": alarm.get("AlarmActions", []),
        "InsufficientDataActions": alarm.get("InsufficientDataActions", []),
    }
    if alarm_records.is_composite(alarm):
        return {**found, "AlarmRule": alarm["AlarmRule"]}
    return {**found, "Trigger": _trigger(alarm)}


def _trigger(alarm: Alarm) -> dict[str, Any]:
    common = {
        "Period": alarm.get("Period"),
        "EvaluationPeriods": alarm["EvaluationPeriods"],
        "DatapointsToAlarm": alarm.get("DatapointsToAlarm"),
        "ComparisonOperator": alarm["ComparisonOperator"],
        "Threshold": alarm["Threshold"],
        "TreatMissingData": alarm["TreatMissingData"],
        "EvaluateLowSampleCountPercentile": alarm.get("EvaluateLowSampleCountPercentile", ""),
    }
    common = {name: value for name, value in common.items() if value is not None}
    if "Metrics" in alarm:
        return {**common, "Metrics": [_lower_dimensions(query) for query in alarm["Metrics"]]}
    extended = alarm.get("ExtendedStatistic")
    statistic = (
        {"StatisticType": "ExtendedStatistic", "ExtendedStatistic": extended}
        if extended
        else {"StatisticType": "Statistic", "Statistic": _STATISTICS[alarm["Statistic"]]}
    )
    dimensions = [{"value": one["Value"], "name": one["Name"]} for one in alarm.get("Dimensions", [])]
    what = {"MetricName": alarm["MetricName"], "Namespace": alarm["Namespace"], "Unit": alarm.get("Unit")}
    return {**what, **statistic, "Dimensions": dimensions, **common}


def _lower_dimensions(query: dict[str, Any]) -> dict[str, Any]:
    if "MetricStat" not in query:
        return query
    metric = query["MetricStat"]["Metric"]
    dimensions = [{"value": one["Value"], "name": one["Name"]} for one in metric.get("Dimensions", [])]
    return {**query, "MetricStat": {**query["MetricStat"], "Metric": {**metric, "Dimensions": dimensions}}}


@functools.cache
def _region_names() -> dict[str, str]:
    """Botocore's names of regions (``US East (N. Virginia)``)."""
    data = botocore.session.get_session().get_component("data_loader").load_data("endpoints")
    return {name: str(one["description"]) for part in data["partitions"] for name, one in part["regions"].items()}


def _region_name() -> str:
    region: str = get_region()
    return _region_names().get(region, region)
