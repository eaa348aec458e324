"""CloudWatch's operations on alarms."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ministack.services import cloudwatch

from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.cloudwatch import alarm_changes, alarm_records, metric_store
from tritonstack_local.emulator.cloudwatch.alarm_changes import Changes
from tritonstack_local.emulator.cloudwatch.alarm_evaluation import INSUFFICIENT_DATA
from tritonstack_local.emulator.cloudwatch.alarm_records import HELD, INITIAL, Alarm
from tritonstack_local.emulator.cloudwatch.alarm_requests import (
    Request,
    check_composite_alarm,
    check_metric_alarm,
    refused,
)

_STATE = (
    "StateValue",
    "StateReason",
    "StateReasonData",
    "StateUpdatedTimestamp",
    "StateTransitionedTimestamp",
    HELD,
)


def put_metric_alarm(request: Request) -> None:
    """PutMetricAlarm: a new alarm is evaluated soon, a changed one keeps its state until then."""
    check_metric_alarm(request)
    with metric_store.lock:
        _put(request, defaults={"TreatMissingData": "missing"})


def put_composite_alarm(request: Request) -> None:
    """PutCompositeAlarm: its rule, whose alarms must exist, is evaluated at once."""
    check_composite_alarm(request)
    name = request["AlarmName"]

    def put(changes: Changes) -> None:
        _check_rule(request["AlarmRule"])
        alarm = _put(request, defaults={})
        state = alarm_changes.rule_state(alarm)
        if state != alarm["StateValue"]:
            reason = f"{alarm_records.arn(name)} was created or updated and its alarm rule evaluates to {state}"
            changes.set(alarm, state, reason, None)

    alarm_changes.make(put)


def _check_rule(rule: str) -> None:
    try:
        children = cloudwatch._rule_refs(cloudwatch._parse_alarm_rule(rule))
    except ValueError as error:
        raise refused("PutCompositeAlarm", str(error)) from error
    missing = [
        one for one in dict.fromkeys(children) if alarm_records.find(cloudwatch._rule_ref_name(one) or "") is None
    ]
    if missing:
        arns = ", ".join(one if one.startswith("arn:") else alarm_records.arn(one) for one in missing)
        raise refused(
            "PutCompositeAlarm",
            f"Could not save the composite alarm as alarms [{arns}] in the alarm rule do not exist",
        )


def _put(request: Request, *, defaults: dict[str, Any]) -> Alarm:
    """Store the alarm. Tags count at creation only (API reference)."""
    name, now = request["AlarmName"], clock.now()
    before = alarm_records.find(name)
    if before is not None and alarm_records.is_composite(before) != ("AlarmRule" in request):
        raise refused("PutMetricAlarm", f"An alarm of another type has the name {name} already")
    initial = {"StateValue": INSUFFICIENT_DATA, "StateReason": INITIAL, "StateUpdatedTimestamp": now}
    state = {key: before[key] for key in _STATE if key in before} if before is not None else initial
    actions = {"ActionsEnabled": True, "AlarmActions": [], "OKActions": [], "InsufficientDataActions": []}
    settings = {key: value for key, value in request.items() if key != "Tags"}
    arn = alarm_records.arn(name)
    alarm = {**actions, **defaults, **settings, "AlarmArn": arn, "AlarmConfigurationUpdatedTimestamp": now, **state}
    alarm_records.keep(alarm)
    if before is None and request.get("Tags"):
        cloudwatch._resource_tags[arn] = {tag["Key"]: tag["Value"] for tag in request["Tags"]}
    _note_configuration(alarm, "created" if before is None else "updated")
    return alarm


def _note_configuration(alarm: Alarm, verb: str) -> None:
    settings = {key: value for key, value in alarm.items() if key not in _STATE and not key.startswith("_")}
    data = {"version": "1.0", "type": verb.removesuffix("d").capitalize(), verb + "Alarm": settings}
    alarm_records.add_history(alarm, "ConfigurationUpdate", f'Alarm "{alarm["AlarmName"]}" {verb}', data)


def delete_alarms(request: Request) -> None:
    """DeleteAlarms: at most one composite alarm, and none that another composite alarm watches."""
    with metric_store.lock:
        found = [alarm for alarm in map(alarm_records.find, request["AlarmNames"]) if alarm is not None]
        composite = [alarm["AlarmName"] for alarm in found if alarm_records.is_composite(alarm)]
        if len(composite) > 1:
            raise refused(
                "DeleteAlarms",
                f"Cannot delete [{len(composite)}] Composite Alarms as only one composite alarm delete is allowed in "
                "single request",
            )
        watched = {child for parent in alarm_records.composite_alarms() for child in _children(parent)}
        for alarm in found:
            if alarm["AlarmName"] in watched:
                raise refused(
                    "DeleteAlarms",
                    f"Cannot delete {alarm['AlarmName']} as there are composite alarm(s) depending on it.",
                )
        for alarm in found:
            _note_configuration(alarm, "deleted")
            alarm_records.drop(alarm["AlarmName"])


def set_alarm_state(request: Request) -> None:
    """SetAlarmState: the state stays until there is data that says otherwise, in the next period at the earliest."""
    alarm = alarm_records.find(request["AlarmName"])
    if alarm is None:
        raise refused("SetAlarmState", f"Alarm {request['AlarmName']} not found", code="ResourceNotFound")

    def set_state(changes: Changes) -> None:
        alarm[HELD] = clock.now()
        changes.set(alarm, request["StateValue"], request["StateReason"], request.get("StateReasonData"))

    alarm_changes.make(set_state)


def enable_alarm_actions(request: Request) -> None:
    """EnableAlarmActions."""
    _switch_actions(request["AlarmNames"], on=True)


def disable_alarm_actions(request: Request) -> None:
    """DisableAlarmActions: states go on changing, nothing is executed; events go on too."""
    _switch_actions(request["AlarmNames"], on=False)


def _switch_actions(names: Iterable[str], *, on: bool) -> None:
    with metric_store.lock:
        for alarm in filter(None, map(alarm_records.find, names)):
            if alarm["ActionsEnabled"] != on:
                alarm["ActionsEnabled"] = on
                _note_configuration(alarm, "updated")


def describe_alarms(request: Request) -> dict[str, Any]:
    """DescribeAlarms, by name; without AlarmTypes metric alarms alone."""
    types = request.get("AlarmTypes") or ["MetricAlarm"]
    with metric_store.lock:
        related = _related(request)
        found = related if related is not None else [*alarm_records.metric_alarms(), *alarm_records.composite_alarms()]
        found = [alarm for alarm in found if alarm_records.kind(alarm) in types and _matches(alarm, request)]
    found.sort(key=lambda alarm: str(alarm["AlarmName"]))
    first = request.get("NextToken", "")
    found = [alarm for alarm in found if alarm["AlarmName"] >= first]
    most = request.get("MaxRecords", 50)
    page, rest = found[:most], found[most:]
    return {
        "MetricAlarms": [dict(alarm) for alarm in page if not alarm_records.is_composite(alarm)],
        "CompositeAlarms": [dict(alarm) for alarm in page if alarm_records.is_composite(alarm)],
        **({"NextToken": rest[0]["AlarmName"]} if rest else {}),
    }


def _related(request: Request) -> list[Alarm] | None:
    """The alarms that ChildrenOfAlarmName or ParentsOfAlarmName asks for; None where neither does."""
    above, below = request.get("ChildrenOfAlarmName"), request.get("ParentsOfAlarmName")
    if above:
        parent = alarm_records.find(above)
        if parent is None:
            raise refused("DescribeAlarms", f"Alarm {above} not found", code="ResourceNotFound")
        return [alarm for alarm in map(alarm_records.find, _children(parent)) if alarm is not None]
    if below:
        return [alarm for alarm in alarm_records.composite_alarms() if below in _children(alarm)]
    return None


def _children(alarm: Alarm) -> list[str]:
    names: list[str] = cloudwatch._composite_children(alarm) if alarm_records.is_composite(alarm) else []
    return names


def _matches(alarm: Alarm, request: Request) -> bool:
    names, prefix = request.get("AlarmNames"), request.get("AlarmNamePrefix", "")
    actions = [*alarm["AlarmActions"], *alarm["OKActions"], *alarm["InsufficientDataActions"]]
    return (
        (not names or alarm["AlarmName"] in names)
        and alarm["AlarmName"].startswith(prefix)
        and request.get("StateValue", alarm["StateValue"]) == alarm["StateValue"]
        and ("ActionPrefix" not in request or any(action.startswith(request["ActionPrefix"]) for action in actions))
    )


def describe_alarms_for_metric(request: Request) -> dict[str, Any]:
    """DescribeAlarmsForMetric: alarms on exactly this metric; those on expressions are never among them."""
    wanted = metric_store.dimensions(request.get("Dimensions"))
    found = [
        dict(alarm)
        for alarm in alarm_records.metric_alarms()
        if (alarm.get("Namespace"), alarm.get("MetricName")) == (request["Namespace"], request["MetricName"])
        and metric_store.dimensions(alarm.get("Dimensions")) == wanted
        and all(
            request.get(name, alarm.get(name)) == alarm.get(name)
            for name in ("Statistic", "ExtendedStatistic", "Period", "Unit")
        )
    ]
    return {"MetricAlarms": found}


def describe_alarm_history(request: Request) -> dict[str, Any]:
    """DescribeAlarmHistory, the newest first unless asked otherwise; without AlarmTypes of metric alarms alone."""
    types = request.get("AlarmTypes") or ["MetricAlarm"]
    with metric_store.lock:
        found = [
            item
            for item in alarm_records.history()
            if item["AlarmType"] in types
            and request.get("AlarmName", item["AlarmName"]) == item["AlarmName"]
            and request.get("HistoryItemType", item["HistoryItemType"]) == item["HistoryItemType"]
            and request.get("StartDate", 0.0) <= item["Timestamp"] <= request.get("EndDate", float("inf"))
        ]
    if request.get("ScanBy") != "TimestampAscending":
        found.reverse()
    token = request.get("NextToken", "0")
    if not token.isdigit():
        raise refused("DescribeAlarmHistory", f"Invalid NextToken : {token}", code="InvalidNextToken")
    first, most = int(token), request.get("MaxRecords", 50)
    more = {"NextToken": str(first + most)} if len(found) > first + most else {}
    return {"AlarmHistoryItems": found[first : first + most], **more}
