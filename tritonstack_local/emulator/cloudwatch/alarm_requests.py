"""What PutMetricAlarm and PutCompositeAlarm refuse beyond botocore's model.

Source: CloudWatch API reference, PutMetricAlarm, PutCompositeAlarm and MetricDataQuery. Where a sentence is not AWS's
own, it says the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ministack.core.arn import ArnParseError, parse_arn

from tritonstack_local.emulator.cloudwatch import alarm_evaluation, queries
from tritonstack_local.emulator.cloudwatch.expression_syntax import ExpressionError, calls
from tritonstack_local.emulator.cloudwatch.statistic import percentile_share, statistic
from tritonstack_local.emulator.refusal import RefusedError

Request = dict[str, Any]
_OF_ONE_METRIC = ("MetricName", "Namespace", "Statistic", "ExtendedStatistic", "Dimensions", "Period", "Unit")
_LACKING = ("ThresholdMetricId", "EvaluationWindow", "WarmUpConfiguration", "EvaluationCriteria", "EvaluationInterval")
_SUB_MINUTE = (10, 20, 30)
_HOUR, _DAY, _WEEK = 3600, 86_400, 604_800
_MOST_QUERIES, _MOST_OF_A_KIND, _MOST_TAGS = 20, 10, 50


def refused(operation: str, sentence: str, *, code: str = "ValidationError") -> RefusedError:
    """A refusal of CloudWatch."""
    return RefusedError(code, sentence, source=f"CloudWatch API reference, {operation}")


def check_metric_alarm(request: Request) -> None:
    """Raise ``RefusedError`` with every problem of a PutMetricAlarm request."""
    _refuse("PutMetricAlarm", [*_common(request), *_threshold(request), *_source(request), *_time(request)])


def check_composite_alarm(request: Request) -> None:
    """Raise ``RefusedError`` with every problem of a PutCompositeAlarm request but those of its rule."""
    problems = [*_common(request)]
    suppressing = [name for name in request if name.startswith("ActionsSuppressor")]
    if suppressing and len(suppressing) != 3:
        problems.append(
            "ActionsSuppressor, ActionsSuppressorWaitPeriod and …ExtensionPeriod are given all or not at all"
        )
    _refuse("PutCompositeAlarm", problems)


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


def _threshold(request: Request) -> Iterator[str]:
    for name in _LACKING:
        if name in request:
            yield f"{name} is not in the local AWS; it has alarms on static thresholds"
    operator = request.get("ComparisonOperator")
    if operator is None:
        yield "ComparisonOperator is required"
    elif operator not in alarm_evaluation.COMPARISONS:
        yield f"ComparisonOperator {operator} is for anomaly detection, which is not in the local AWS"
    if "Threshold" not in request:
        yield "Threshold is required"
    treatment = request.get("TreatMissingData", "missing")
    if treatment not in alarm_evaluation.TREATMENTS:
        yield f"TreatMissingData {treatment}: one of {', '.join(alarm_evaluation.TREATMENTS)}"
    low = request.get("EvaluateLowSampleCountPercentile")
    if low not in (None, "evaluate", "ignore"):
        yield f"EvaluateLowSampleCountPercentile {low}: evaluate or ignore"
    if low is not None and percentile_share(request.get("ExtendedStatistic", "")) is None:
        yield "EvaluateLowSampleCountPercentile is for an ExtendedStatistic that is a percentile"


def _source(request: Request) -> Iterator[str]:
    """One metric, or queries."""
    if "Metrics" in request:
        mixed = [name for name in _OF_ONE_METRIC if name in request]
        if mixed:
            yield f"{', '.join(mixed)} cannot be given with Metrics"
        yield from _queries(request["Metrics"])
        return
    yield from (f"{name} is required" for name in ("MetricName", "Namespace", "Period") if name not in request)
    if ("Statistic" in request) == ("ExtendedStatistic" in request):
        yield "Exactly one of Statistic and ExtendedStatistic must be specified"
    if "ExtendedStatistic" in request:
        try:
            statistic(request["ExtendedStatistic"])
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
        found = queries.read(wanted)
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
    if any(call.function == "SEARCH" for query in found if query.tree is not None for call in calls(query.tree)):
        yield "An alarm cannot be based on a SEARCH expression"


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
