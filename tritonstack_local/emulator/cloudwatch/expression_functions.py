"""Functions of metric math whose arguments are values.

Source: CloudWatch user guide, "Functions supported for metric math". Of one series an aggregate is a number, of an
array a series. "Missing values are treated as 0" is said of AVG, and is so here: over the query's whole span for one
series, over all series of an array. Of MIN, MAX and STDDEV it is not said: they take the values that there are.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import pairwise

from tritonstack_local.emulator.cloudwatch.expression_syntax import ExpressionError
from tritonstack_local.emulator.cloudwatch.series import Series, Value, describe, each, times_of

Function = Callable[[Sequence[Value]], Value]


def aggregate(name: str, value: Value) -> Value:
    """AVG, MAX, MIN, STDDEV or SUM; raises ``ExpressionError`` for a number, and for a series without points."""
    if isinstance(value, Series):
        return _of_one(name, value)
    if not isinstance(value, list):
        raise ExpressionError(f"{name} takes a time series or an array of time series, not a number")
    if not value:
        raise ExpressionError(f"{name} of an array without time series")
    points = {}
    for time in times_of(value):
        there = [series.points[time] for series in value if time in series.points]
        points[time] = sum(there) / len(value) if name == "AVG" else _AGGREGATES[name](there)
    return value[0].computed(points)


def _of_one(name: str, series: Series) -> float:
    values = list(series.points.values())
    if name == "SUM":
        return math.fsum(values)
    if name == "AVG":
        return math.fsum(values) / max(1, len(series.span.times()))
    if not values:
        return 0.0
    return _AGGREGATES[name](values)


_AGGREGATES: dict[str, Callable[[Sequence[float]], float]] = {
    "AVG": statistics.fmean,
    "MAX": max,
    "MIN": min,
    "STDDEV": statistics.pstdev,
    "SUM": math.fsum,
}


def _datapoint_count(arguments: Sequence[Value]) -> Value:
    value = _only(arguments, "DATAPOINT_COUNT")
    if isinstance(value, Series):
        return float(len(value.points))
    many = _array(value, "DATAPOINT_COUNT")
    if not many:
        raise ExpressionError("DATAPOINT_COUNT of an array without time series")
    return many[0].computed({time: float(sum(time in s.points for s in many)) for time in times_of(many)})


def _metric_count(arguments: Sequence[Value]) -> Value:
    return float(len(_array(_only(arguments, "METRIC_COUNT"), "METRIC_COUNT")))


def _period(arguments: Sequence[Value]) -> Value:
    value = _only(arguments, "PERIOD")
    if not isinstance(value, Series) or not value.is_metric:
        raise ExpressionError("PERIOD takes a metric, not the result of an expression")
    return float(value.span.period)


def _between(name: str, change: Callable[[float, float], float]) -> Function:
    """A series of what ``change`` says of (difference of values, seconds) between each point and the one before."""

    def of(series: Series) -> Series:
        ordered = sorted(series.points.items())
        return series.computed(
            {time: change(value - before, time - earlier) for (earlier, before), (time, value) in pairwise(ordered)}
        )

    return lambda arguments: each(_only(arguments, name), of, function=name)


def _pointwise(name: str, change: Callable[[float], float]) -> Function:
    """``change`` of every point; where it has no value (a logarithm of 0) the point is dropped (UNVERIFIED)."""

    def of(series: Series) -> Series:
        points = {}
        for time, value in series.points.items():
            try:
                points[time] = float(change(value))
            except ValueError:
                continue
        return series.computed(points)

    return lambda arguments: each(_only(arguments, name), of, function=name)


def _running_sum(arguments: Sequence[Value]) -> Value:
    def of(series: Series) -> Series:
        total, points = 0.0, {}
        for time, value in sorted(series.points.items()):
            total += value
            points[time] = total
        return series.computed(points)

    return each(_only(arguments, "RUNNING_SUM"), of, function="RUNNING_SUM")


def _end(name: str, index: int) -> Function:
    def of(arguments: Sequence[Value]) -> Value:
        many = _array(_only(arguments, name), name)
        if not many:
            raise ExpressionError(f"{name} of an array without time series")
        return many[index]

    return of


def _remove_empty(arguments: Sequence[Value]) -> Value:
    return [series for series in _array(_only(arguments, "REMOVE_EMPTY"), "REMOVE_EMPTY") if series.points]


def _slice(arguments: Sequence[Value]) -> Value:
    if len(arguments) not in (2, 3) or not all(isinstance(one, float) for one in arguments[1:]):
        raise ExpressionError("SLICE takes an array of time series and one or two numbers")
    first, last = arguments[1], arguments[2] if len(arguments) == 3 else None
    many = _array(arguments[0], "SLICE")
    return many[int(first) : int(last) if isinstance(last, float) else None]  # type: ignore[arg-type]  # seen above


def _clock_part(name: str, part: Callable[[datetime], float]) -> Function:
    """A series without gaps whose values come from its times (UTC)."""

    def of(arguments: Sequence[Value]) -> Value:
        series = _only(arguments, name)
        if not isinstance(series, Series):
            raise ExpressionError(f"{name} takes a time series, not {describe(series)}")
        return series.computed({t: float(part(datetime.fromtimestamp(t, tz=UTC))) for t in series.span.times()})

    return of


def _only(arguments: Sequence[Value], name: str) -> Value:
    if len(arguments) != 1:
        raise ExpressionError(f"{name} takes one argument, not {len(arguments)}")
    return arguments[0]


def _array(value: Value, name: str) -> list[Series]:
    if not isinstance(value, list):
        raise ExpressionError(f"{name} takes an array of time series, not {describe(value)}")
    return value


def _aggregate(name: str) -> Function:
    return lambda arguments: aggregate(name, _only(arguments, name))


FUNCTIONS: dict[str, Function] = {
    **{name: _aggregate(name) for name in _AGGREGATES},
    "ABS": _pointwise("ABS", abs),
    "CEIL": _pointwise("CEIL", math.ceil),
    "FLOOR": _pointwise("FLOOR", math.floor),
    "LOG": _pointwise("LOG", math.log),
    "LOG10": _pointwise("LOG10", math.log10),
    "DATAPOINT_COUNT": _datapoint_count,
    "METRIC_COUNT": _metric_count,
    "PERIOD": _period,
    "DIFF": _between("DIFF", lambda difference, _seconds: difference),
    "DIFF_TIME": _between("DIFF_TIME", lambda _difference, seconds: seconds),
    "RATE": _between("RATE", lambda difference, seconds: difference / seconds),
    "RUNNING_SUM": _running_sum,
    "FIRST": _end("FIRST", 0),
    "LAST": _end("LAST", -1),
    "REMOVE_EMPTY": _remove_empty,
    "SLICE": _slice,
    "MINUTE": _clock_part("MINUTE", lambda at: at.minute),
    "HOUR": _clock_part("HOUR", lambda at: at.hour),
    "DAY": _clock_part("DAY", lambda at: at.isoweekday()),
    "DATE": _clock_part("DATE", lambda at: at.day),
    "MONTH": _clock_part("MONTH", lambda at: at.month),
    "YEAR": _clock_part("YEAR", lambda at: at.year),
    "EPOCH": _clock_part("EPOCH", lambda at: at.timestamp()),
}
"""Functions by name; each raises ``ExpressionError`` for arguments that it does not take."""

ELSEWHERE = (
    "ANOMALY_DETECTION_BAND",
    "DB_PERF_INSIGHTS",
    "INSIGHT_RULE_METRIC",
    "LAMBDA",
    "SERVICE_QUOTA",
)
"""Functions that AWS has and the local AWS has not."""
