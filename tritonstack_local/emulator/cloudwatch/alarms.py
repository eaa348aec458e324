"""CloudWatch's operations on alarms, and what they refuse beyond botocore's model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ministack.core.arn import ArnParseError, parse_arn
from ministack.services import cloudwatch

from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.cloudwatch import alarm_evaluator, metrics
from tritonstack_local.emulator.cloudwatch.alarm_evaluation import INSUFFICIENT_DATA
from tritonstack_local.emulator.cloudwatch.alarm_evaluator import HELD, INITIAL, Alarm, Changes, make, rule_state
from tritonstack_local.emulator.cloudwatch.metric_math import ExpressionError, statistic
from tritonstack_local.emulator.cloudwatch.metrics import Request, refused

# Source: CloudWatch API reference, PutMetricAlarm, PutCompositeAlarm and MetricDataQuery. Where a sentence is not
# AWS's own, it says the same.
_OF_ONE_METRIC = ("MetricName", "Namespace", "Statistic", "ExtendedStatistic", "Dimensions", "Period", "Unit")
_SUB_MINUTE = (10, 20, 30)
_HOUR, _DAY, _WEEK = 3600, 86_400, 604_800
_MOST_QUERIES, _MOST_OF_A_KIND, _MOST_TAGS = 20, 10, 50


def _refuse(operation: str, problems: list[str]) -> None:
    if problems:
        raise refused(operation, "; ".join(problems))


def _common(request: Request) -> Iterator[str]:
    if not request["AlarmName"].isascii():
        yield "AlarmName must contain only ASCII characters"
    for kind in ("AlarmActions", "OKActions", "InsufficientDataActions"):
        for action in request.get(kind, []):
            try:
                parse_arn(action)
            except ArnParseError:
                yield f"Invalid arn syntax in {kind}: {action}"
    tags = [tag["Key"] for tag in request.get("Tags", [])]
    if len(set(tags)) > _MOST_TAGS:
        yield f"The tags are more than {_MOST_TAGS}"
    yield from (f'Tag {key} must not start with "aws:"' for key in tags if key.lower().startswith("aws:"))


def _source(request: Request) -> Iterator[str]:
    """The threshold, and one metric or queries."""
    yield from (f"{name} is required" for name in ("ComparisonOperator", "Threshold") if name not in request)
    if "Metrics" in request:
        mixed = [name for name in _OF_ONE_METRIC if name in request]
        if mixed:
            yield f"{', '.join(mixed)} cannot be given with Metrics"
        yield from _queries(request["Metrics"])
        return
    yield from (f"{name} is required" for name in ("MetricName", "Namespace", "Period") if name not in request)
    if ("Statistic" in request) == ("ExtendedStatistic" in request):
        yield "Exactly one of Statistic and ExtendedStatistic must be specified"
    try:
        statistic(request.get("ExtendedStatistic", "Average"))
    except ExpressionError as error:
        yield str(error)
    names = [one["Name"] for one in request.get("Dimensions", [])]
    yield from (
        f"Dimension {name} is given more than once" for name in sorted({n for n in names if names.count(n) > 1})
    )
    period = request.get("Period", _HOUR)
    if period not in _SUB_MINUTE and (period <= 0 or period % 60):
        yield f"Period {period} is not valid: it is 10, 20, 30, or a multiple of 60 seconds"


def _queries(wanted: list[dict[str, Any]]) -> Iterator[str]:
    try:
        found = metrics.read(wanted)
    except ExpressionError as error:
        yield str(error)
        return
    of_metrics = [query for query in found if query.metric]
    shown = [query for query in found if query.shown]
    if len(found) > _MOST_QUERIES or max(len(of_metrics), len(found) - len(of_metrics)) > _MOST_OF_A_KIND:
        yield f"Metrics has at most {_MOST_OF_A_KIND} metrics and {_MOST_OF_A_KIND} expressions"
    if not of_metrics:
        yield "Metrics must contain at least one metric"
    if len(shown) != 1:
        yield f"Exactly one of Metrics must have ReturnData true, {len(shown)} have"
    if len({query.period for query in of_metrics}) > 1:
        yield "All metrics of an alarm must have the same period"


def _time(request: Request) -> Iterator[str]:
    periods = request.get("EvaluationPeriods")
    if periods is None:
        yield "EvaluationPeriods is required"
        return
    if request.get("DatapointsToAlarm", 1) > periods:
        yield "DatapointsToAlarm must not be greater than EvaluationPeriods"
    stats = [query["MetricStat"]["Period"] for query in request.get("Metrics", []) if "MetricStat" in query]
    period = max([request.get("Period", 0), *stats])
    longest = _DAY if period < _HOUR else _WEEK
    if period * periods > longest:
        yield f"Metrics cannot be checked across more than {longest} seconds (EvaluationPeriods * Period)"


_STATE = ("StateValue", "StateReason", "StateUpdatedTimestamp", "StateTransitionedTimestamp", HELD)


def put_metric_alarm(request: Request) -> None:
    """PutMetricAlarm: a new alarm is evaluated soon, a changed one keeps its state until then."""
    _refuse("PutMetricAlarm", [*_common(request), *_source(request), *_time(request)])
    with metrics.lock:
        _put({**request, "Threshold": float(request["Threshold"])}, defaults={"TreatMissingData": "missing"})


def put_composite_alarm(request: Request) -> None:
    """PutCompositeAlarm: its rule, whose alarms must exist, is evaluated at once."""
    _refuse("PutCompositeAlarm", list(_common(request)))
    name = request["AlarmName"]

    def put(changes: Changes) -> None:
        _check_rule(request["AlarmRule"])
        alarm = _put(request, defaults={})
        state = rule_state(alarm)
        if state != alarm["StateValue"]:
            reason = f"{alarm_evaluator.arn(name)} was created or updated and its alarm rule evaluates to {state}"
            changes.set(alarm, state, reason)

    make(put)


def _check_rule(rule: str) -> None:
    try:
        children = cloudwatch._rule_refs(cloudwatch._parse_alarm_rule(rule))
    except ValueError as error:
        raise refused("PutCompositeAlarm", str(error)) from error
    missing = [
        one for one in dict.fromkeys(children) if alarm_evaluator.find(cloudwatch._rule_ref_name(one) or "") is None
    ]
    if missing:
        arns = ", ".join(one if one.startswith("arn:") else alarm_evaluator.arn(one) for one in missing)
        raise refused(
            "PutCompositeAlarm",
            f"Could not save the composite alarm as alarms [{arns}] in the alarm rule do not exist",
        )


def _put(request: Request, *, defaults: dict[str, Any]) -> Alarm:
    """Store the alarm. Tags count at creation only (API reference)."""
    name, now = request["AlarmName"], clock.now()
    before = alarm_evaluator.find(name)
    if before is not None and alarm_evaluator.is_composite(before) != ("AlarmRule" in request):
        raise refused("PutMetricAlarm", f"An alarm of another type has the name {name} already")
    initial = {"StateValue": INSUFFICIENT_DATA, "StateReason": INITIAL, "StateUpdatedTimestamp": now}
    state = {key: before[key] for key in _STATE if key in before} if before is not None else initial
    actions = {"ActionsEnabled": True, "AlarmActions": [], "OKActions": [], "InsufficientDataActions": []}
    settings = {key: value for key, value in request.items() if key != "Tags"}
    arn = alarm_evaluator.arn(name)
    alarm = {**actions, **defaults, **settings, "AlarmArn": arn, "AlarmConfigurationUpdatedTimestamp": now, **state}
    alarm_evaluator.keep(alarm)
    if before is None and request.get("Tags"):
        cloudwatch._resource_tags[arn] = {tag["Key"]: tag["Value"] for tag in request["Tags"]}
    return alarm


def delete_alarms(request: Request) -> None:
    """DeleteAlarms, of none that a composite alarm watches."""
    with metrics.lock:
        found = [alarm for alarm in map(alarm_evaluator.find, request["AlarmNames"]) if alarm is not None]
        parents = alarm_evaluator.composite_alarms()
        watched = {child for parent in parents for child in cloudwatch._composite_children(parent)}
        for alarm in found:
            if alarm["AlarmName"] in watched:
                raise refused(
                    "DeleteAlarms",
                    f"Cannot delete {alarm['AlarmName']} as there are composite alarm(s) depending on it.",
                )
        for alarm in found:
            alarm_evaluator.drop(alarm["AlarmName"])


def set_alarm_state(request: Request) -> None:
    """SetAlarmState: the state stays until data of the next period or a later one change it."""
    alarm = alarm_evaluator.find(request["AlarmName"])
    if alarm is None:
        raise refused("SetAlarmState", f"Alarm {request['AlarmName']} not found", code="ResourceNotFound")

    def set_state(changes: Changes) -> None:
        alarm[HELD] = clock.now()
        changes.set(alarm, request["StateValue"], request["StateReason"])

    make(set_state)


def refuse_operation(_request: Request) -> dict[str, Any]:
    """Operations that MiniStack would answer without dimensions or with what is not kept here."""
    raise refused("operations", "DescribeAlarmHistory and DescribeAlarmsForMetric are not in the local AWS")


def describe_alarms(request: Request) -> dict[str, Any]:
    """DescribeAlarms, by name; without AlarmTypes metric alarms alone."""
    types = request.get("AlarmTypes") or ["MetricAlarm"]
    with metrics.lock:
        found = [*alarm_evaluator.metric_alarms(), *alarm_evaluator.composite_alarms()]
        found = [alarm for alarm in found if alarm_evaluator.kind(alarm) in types and _matches(alarm, request)]
    found.sort(key=lambda alarm: str(alarm["AlarmName"]))
    first = request.get("NextToken", "")
    found = [alarm for alarm in found if alarm["AlarmName"] >= first]
    most = request.get("MaxRecords", 50)
    page, rest = found[:most], found[most:]
    shown = [{name: value for name, value in alarm.items() if name[0] != "_"} for alarm in page]
    return {
        "MetricAlarms": [alarm for alarm in shown if not alarm_evaluator.is_composite(alarm)],
        "CompositeAlarms": [alarm for alarm in shown if alarm_evaluator.is_composite(alarm)],
        **({"NextToken": rest[0]["AlarmName"]} if rest else {}),
    }


def _matches(alarm: Alarm, request: Request) -> bool:
    names, prefix = request.get("AlarmNames"), request.get("AlarmNamePrefix", "")
    return (
        (not names or alarm["AlarmName"] in names)
        and alarm["AlarmName"].startswith(prefix)
        and request.get("StateValue", alarm["StateValue"]) == alarm["StateValue"]
    )
