"""CloudWatch's operations on alarms, and their refusals beyond botocore's model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from tritonstack.cloudformation.limits import allowed, children_of
from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.cloudwatch import alarm_evaluator, metrics
from tritonstack_local.emulator.cloudwatch.alarm_evaluation import INSUFFICIENT_DATA
from tritonstack_local.emulator.cloudwatch.metric_math import ExpressionError, check_statistic, problem_with_period
from tritonstack_local.emulator.cloudwatch.metrics import Request, refused
from tritonstack_local.emulator.ministack_adapter import cloudwatch
from tritonstack_local.emulator.ministack_adapter.core import arn_parse_error, parse_arn
from tritonstack_local.emulator.request_validation import RefusedError

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
    """What metric and composite alarms share."""
    others = cloudwatch.alarms() if "AlarmRule" in request else cloudwatch.composite_alarms()
    if request["AlarmName"] in others:
        yield f"An alarm of another type has the name {request['AlarmName']} already"
    if not request["AlarmName"].isascii():
        yield "AlarmName must contain only ASCII characters"
    for kind in ("AlarmActions", "OKActions", "InsufficientDataActions"):
        for action in request.get(kind, []):
            try:
                parse_arn(action)
            except arn_parse_error():
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
        check_statistic(request.get("ExtendedStatistic", "Average"))
    except ExpressionError as error:
        yield str(error)
    names = [one["Name"] for one in request.get("Dimensions", [])]
    yield from (
        f"Dimension {name} is given more than once" for name in sorted({n for n in names if names.count(n) > 1})
    )
    period = problem_with_period(request.get("Period", _HOUR), sub_minute=_SUB_MINUTE)
    yield from [period] if period else []


def _queries(wanted: list[dict[str, Any]]) -> Iterator[str]:
    try:
        found = metrics.read(wanted)
    except ExpressionError as error:
        yield str(error)
        return
    of_metrics = [query for query in found if query.metric]
    if any(query.search is not None and not query.search.combined for query in found):
        yield "SEARCH is not supported on Metric Alarms"
    shown = [query for query in found if query.shown]
    if len(found) > _MOST_QUERIES or max(len(of_metrics), len(found) - len(of_metrics)) > _MOST_OF_A_KIND:
        yield f"Metrics has at most {_MOST_OF_A_KIND} metrics and {_MOST_OF_A_KIND} expressions"
    if not of_metrics and not any(query.search is not None for query in found):
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


_STATE = ("StateValue", "StateReason", "StateUpdatedTimestamp", "StateTransitionedTimestamp")


def put_metric_alarm(request: Request) -> None:
    """PutMetricAlarm: a new alarm is evaluated soon, a changed one keeps its state until then.

    Tags count at creation only (API reference).
    """
    _refuse("PutMetricAlarm", [*_common(request), *_source(request), *_time(request)])
    name, now = request["AlarmName"], clock.now()
    arn = alarm_evaluator.arn(name)
    with metrics.lock:
        before, reason = cloudwatch.alarms().get(name), "Unchecked: Initial alarm creation"
        initial = {"StateValue": INSUFFICIENT_DATA, "StateReason": reason, "StateUpdatedTimestamp": now}
        alarm_evaluator.seen.pop(arn, None)
        if before is None:
            alarm_evaluator.held_since.pop(arn, None)
            cloudwatch.resource_tags()[arn] = {tag["Key"]: tag["Value"] for tag in request.get("Tags", [])}
        cloudwatch.alarms()[name] = {
            "ActionsEnabled": True,
            **{kind: [] for kind in ("AlarmActions", "OKActions", "InsufficientDataActions")},
            "TreatMissingData": "missing",
            **{key: value for key, value in request.items() if key != "Tags"},
            "Threshold": float(request["Threshold"]),
            "AlarmArn": arn,
            "AlarmConfigurationUpdatedTimestamp": now,
            **{key: value for key, value in (before or initial).items() if key in _STATE},
        }


def _size_of_rule(rule: str) -> Iterator[str]:
    """The limits of limits.json, with their source: AlarmRule's length, and the alarms that a rule may name."""
    length, children = allowed("characters of an alarm rule"), allowed("children of a composite alarm")
    if len(rule) > length:
        constraint = f"Member must have length less than or equal to {length}"
        yield f"Value at 'alarmRule' failed to satisfy constraint: {constraint}"
    named = children_of(rule)
    if named > children:
        yield f"AlarmRule must not name more than {children} alarms, it names {named}"


def put_composite_alarm(request: Request) -> dict[str, Any]:
    """PutCompositeAlarm: its rule, whose alarms must exist, is evaluated at once."""
    _refuse("PutCompositeAlarm", [*_common(request), *_size_of_rule(request["AlarmRule"])])
    return _by_ministack(cloudwatch.put_composite_alarm, request)


def delete_alarms(request: Request) -> dict[str, Any]:
    """DeleteAlarms, of none that a composite alarm watches."""
    return _by_ministack(cloudwatch.delete_alarms, request)


def describe_alarms(request: Request) -> dict[str, Any]:
    """DescribeAlarms, by name; without AlarmTypes metric alarms alone."""
    return _by_ministack(cloudwatch.describe_alarms, request)


def list_metrics(request: Request) -> dict[str, Any]:
    """ListMetrics, in one page: a filter without a value matches the dimension alone."""
    return _by_ministack(cloudwatch.list_metrics, request)


def _by_ministack(operation: Callable[..., Any], request: Request) -> dict[str, Any]:
    """The response of MiniStack's operation, and the actions of the alarms that it changed."""
    with metrics.lock:
        status, _, body = operation({}, request, False, True)  # from JSON
    alarm_evaluator.follow()
    answer: dict[str, Any] = json.loads(body)
    if status != 200:
        raise RefusedError(answer["__type"], answer["message"], source="MiniStack's cloudwatch", status=status)
    return answer


def set_alarm_state(request: Request) -> None:
    """SetAlarmState: the state stays until data of the next period or a later one change it."""
    alarm = alarm_evaluator.find(request["AlarmName"])
    if alarm is None:
        raise refused("SetAlarmState", f"Alarm {request['AlarmName']} not found", code="ResourceNotFound")
    with metrics.lock:
        alarm_evaluator.held_since[alarm["AlarmArn"]] = clock.now()
        alarm_evaluator.change(alarm, request["StateValue"], request["StateReason"])
    alarm_evaluator.follow()


def describe_alarm_history(_request: Request) -> dict[str, Any]:
    """Refuse operations that MiniStack would respond to without dimensions, or from what is not kept here."""
    raise refused("operations", "DescribeAlarmHistory and DescribeAlarmsForMetric are not in the local AWS")


describe_alarms_for_metric = describe_alarm_history
