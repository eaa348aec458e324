"""Values, operators and functions of metric math."""

from __future__ import annotations

import math
import operator
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise

from tritonstack_local.emulator.cloudwatch.expression_syntax import ExpressionError


# Source: CloudWatch user guide, "Data type abbreviations" (S, TS, TS[]).
@dataclass(frozen=True, kw_only=True)
class Span:
    """The time that a query looks at: from ``start`` until before ``end``, in steps of ``period`` seconds."""

    start: int
    end: int
    period: int

    def times(self) -> range:
        """Where a series without gaps has its points: the beginning of each period."""
        return range(self.start, self.end, self.period)


@dataclass(frozen=True, kw_only=True)
class Series:
    """Values by the beginning of their period (seconds since the epoch).

    Attributes:
        label: for people.
        span: where points could be.
        is_metric: whether it was read, not computed: PERIOD takes no other.
    """

    label: str
    span: Span
    points: dict[int, float] = field(default_factory=dict)
    is_metric: bool = False

    def computed(self, points: dict[int, float]) -> Series:
        """The same series with other points."""
        return replace(self, points=points, is_metric=False)


Value = float | Series | list[Series]


def times_of(many: Iterable[Series]) -> list[int]:
    """Every time at which one of the series has a point."""
    return sorted({time for series in many for time in series.points})


def each(value: Value, change: Callable[[Series], Series], *, function: str) -> Value:
    """``change`` of one series or of each in an array; raises ``ExpressionError`` for a number."""
    if isinstance(value, Series):
        return change(value)
    if isinstance(value, list):
        return [change(series) for series in value]
    raise ExpressionError(f"{function} takes a time series or an array of time series, not a number")


def describe(value: Value) -> str:
    """What kind of value it is."""
    if isinstance(value, Series):
        return "a time series"
    return "an array of time series" if isinstance(value, list) else "a number"


# Source: CloudWatch user guide, "Basic arithmetic functions" and "Comparison and logical operators": between two
# series a missing value counts as 0; a point that would be divided by zero is dropped. A power that has no real value
# is dropped too (UNVERIFIED).
def _power(base: float, exponent: float) -> float | None:
    try:
        result = base**exponent
    except (OverflowError, ZeroDivisionError):
        return None
    return result if isinstance(result, int | float) else None


def _truth(relation: Callable[[float, float], bool]) -> Callable[[float, float], float | None]:
    return lambda left, right: float(relation(left, right))


_NUMBERS: dict[str, Callable[[float, float], float | None]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda left, right: left / right if right else None,
    "^": _power,
    "==": _truth(operator.eq),
    "!=": _truth(operator.ne),
    "<=": _truth(operator.le),
    ">=": _truth(operator.ge),
    "<": _truth(operator.lt),
    ">": _truth(operator.gt),
    "AND": _truth(lambda left, right: left != 0 and right != 0),
    "OR": _truth(lambda left, right: left != 0 or right != 0),
}


def apply(sign: str, left: Value, right: Value) -> Value:
    """Two values and an operator; raises ``ExpressionError`` where they do not go together."""
    number = _NUMBERS[sign]
    if isinstance(left, list) and isinstance(right, list):
        raise ExpressionError(f"'{sign}' does not take two arrays of time series")
    if isinstance(left, list):
        return [_of_series(number, one, _single(right)) for one in left]
    if isinstance(right, list):
        return [_of_series(number, _single(left), one) for one in right]
    if isinstance(left, Series) or isinstance(right, Series):
        return _of_series(number, left, right)
    result = number(left, right)
    if result is None or not math.isfinite(result):
        raise ExpressionError(f"{left:g} {sign} {right:g} has no value")
    return result


def negate(value: Value) -> Value:
    """Unary minus."""
    if isinstance(value, list):
        return [_negated(series) for series in value]
    return _negated(value) if isinstance(value, Series) else -value


def _negated(series: Series) -> Series:
    return series.computed({time: -value for time, value in series.points.items()})


def _single(value: Value) -> float | Series:
    if isinstance(value, list):
        raise ExpressionError(f"not expected here: {describe(value)}")
    return value


def _of_series(number: Callable[[float, float], float | None], left: float | Series, right: float | Series) -> Series:
    """At least one is a series: where both are, a missing value is 0."""
    many = [one for one in (left, right) if isinstance(one, Series)]
    points = {}
    for time in times_of(many):
        result = number(_at(left, time), _at(right, time))
        if result is not None and math.isfinite(result):
            points[time] = result
    return many[0].computed(points)


def _at(value: float | Series, time: int) -> float:
    return value.points.get(time, 0.0) if isinstance(value, Series) else value


# Source: CloudWatch user guide, "Functions supported for metric math". Of one series an aggregate is a number, of an
# array a series. "Missing values are treated as 0" is said of AVG, and is so here: over the query's whole span for one
# series, over all series of an array. Of MIN, MAX and STDDEV it is not said: they take the values that there are.
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
