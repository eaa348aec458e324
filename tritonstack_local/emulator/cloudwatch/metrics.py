"""Metrics: samples stored, queries evaluated, and the operations on them."""

from __future__ import annotations

import ast
import re
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from graphlib import CycleError, TopologicalSorter
from typing import Any, ClassVar

from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.cloudwatch.metric_math import (
    STATISTICS,
    ExpressionError,
    Series,
    Span,
    Value,
    check_statistic,
    evaluate,
    names,
    parse,
    problem_with_period,
)
from tritonstack_local.emulator.cloudwatch.metric_search import MetricSearch, parse_search
from tritonstack_local.emulator.ministack_adapter import cloudwatch
from tritonstack_local.emulator.request_validation import RefusedError

Request = dict[str, Any]


def refused(operation: str, sentence: str, *, code: str = "ValidationError") -> RefusedError:
    """A refusal of CloudWatch."""
    return RefusedError(code, sentence, source=f"CloudWatch API reference, {operation}")


# Clients (the runtime, a dashboard, a script) write and read metrics in the system's time; alarms are evaluated in the
# emulator's clock. Data that is a minute old for the client is a minute old for an alarm too: timestamps are shifted by
# the whole minutes that the clock is ahead when written, and shifted back when read. Alarms' own times are the
# clock's, as those of other services here.
_MINUTE = 60
_JITTER_SECONDS = 0.5
"""The two clocks are read one after the other, and the system's may be corrected a little."""


def ahead_seconds() -> int:
    """The whole minutes, in seconds, that the emulator's clock is ahead of the system's."""
    return int(max(0.0, clock.now() - time.time() + _JITTER_SECONDS) // _MINUTE) * _MINUTE


# A metric is a namespace, a name and an exact set of dimensions (user guide, "Dimensions"): what is written with
# EndpointName, VariantName and EndpointConfigName is another metric than what is written without the last.
lock = threading.RLock()
"""Guards metrics, alarms and history: requests come on the event loop, evaluations on a thread too."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A metric's identity."""

    namespace: str
    name: str
    dimensions: Mapping[str, str]


Point = dict[str, Any]
"""A sample as MiniStack keeps it: a value, or a statistic set."""


class Points(list[Point]):
    """The samples of a metric, in the order in which they came, and by minute: a day's are many, an alarm reads few.

    Attributes:
        written: how many samples of all metrics were ever written: where it is the same as before, so are the metrics.
    """

    written: ClassVar[int] = 0

    def __init__(self, points: Iterable[Point] = ()) -> None:
        """``points`` in their order."""
        super().__init__()
        self._by_minute: dict[int, list[Point]] = {}
        for point in points:
            self.append(point)

    def append(self, point: Point) -> None:
        """One more sample."""
        with lock:
            Points.written += 1
            super().append(point)
            self._by_minute.setdefault(int(point["Timestamp"] // _MINUTE), []).append(point)

    def __reduce__(self) -> tuple[type[Points], tuple[list[Point]]]:
        """Copied as its samples; the order by minute is made anew."""
        return Points, (list(self),)

    def within(self, start: float, end: float) -> Iterator[Point]:
        """The samples from ``start`` until before ``end``."""
        first, last = int(start // _MINUTE), int(-(-end // _MINUTE))
        every = range(first, last) if last - first < len(self._by_minute) else sorted(self._by_minute)
        for minute in every:
            yield from (point for point in self._by_minute.get(minute, ()) if start <= point["Timestamp"] < end)


def points_of(key: tuple[str, str, str]) -> Points:
    """The samples of a metric, an empty list of which is kept where there is none."""
    found = cloudwatch.metrics().get(key)
    if not isinstance(found, Points):
        found = cloudwatch.metrics()[key] = Points(found or ())
    return found


def dimensions(members: list[dict[str, str]] | None) -> dict[str, str]:
    """``[{"Name": …, "Value": …}]`` as a mapping."""
    return {one["Name"]: one["Value"] for one in members or []}


def write(namespace: str, data: Sequence[dict[str, Any]]) -> None:
    """Keep data of PutMetricData, whose times are the clock's; without one a datum is of now."""
    cloudwatch.put_metric_data({}, {"Namespace": namespace, "MetricData": data}, False, True)  # from JSON


def samples(metric: Metric, span: Span, *, unit: str | None = None) -> dict[int, list[Point]]:
    """The samples by the beginning of their period; those of another unit than ``unit`` are left out."""
    found: dict[int, list[Point]] = defaultdict(list)
    with lock:
        key = (metric.namespace, metric.name, cloudwatch.dims_key(metric.dimensions))
        for point in points_of(key).within(span.start, span.end) if key in cloudwatch.metrics() else ():
            if cloudwatch.point_stats(point)[0] > 0 and unit in (None, point["Unit"]):
                found[span.start + int(point["Timestamp"] - span.start) // span.period * span.period].append(point)
    return found


def value_of(points: Sequence[Point], stat: str) -> float | None:
    """A statistic of at least one sample; None where it has no value for them."""
    value: float | None = cloudwatch.stat_value(cloudwatch.calc_stats(points), stat, points)
    return value


def series(metric: Metric, span: Span, stat: str, *, label: str, unit: str | None = None) -> Series:
    """A statistic of each period that has samples, and a value for them."""
    values = {time: value_of(many, stat) for time, many in sorted(samples(metric, span, unit=unit).items())}
    points = {time: value for time, value in values.items() if value is not None}
    return Series(label=label, span=span, points=points, is_metric=True)


# --- Queries ---
# Source: API reference, MetricDataQuery and GetMetricData. The time of a request begins at a whole minute, or at a
# whole period below a minute ("rounded down"); periods are counted from there. An expression has the period of its
# longest metric, or its own.

_ID = re.compile(r"[a-z][A-Za-z0-9_]{0,254}")


def rounded_span(start: float, end: float, period: int) -> Span:
    """The span of a request: its start rounded down as AWS does."""
    step = min(period, _MINUTE)
    first = int(start // step * step)
    return Span(start=first, end=max(first, -int(-end // 1)), period=period)


@dataclass(frozen=True, kw_only=True)
class Query:
    """One MetricDataQuery, read."""

    identifier: str
    label: str | None
    shown: bool
    period: int | None  # of the metric in seconds, or what an expression was given; None where it was given none
    metric: Metric | None = None  # what is read; None for an expression
    stat: str = ""
    unit: str | None = None
    tree: ast.expr | None = None  # what is computed; None for a metric and for a search
    search: MetricSearch | None = None  # what is searched for; None for the others


def read(queries: Sequence[dict[str, Any]]) -> list[Query]:
    """The queries; raises ``ExpressionError`` for the first that is none."""
    found = [_read(query) for query in queries]
    known = [query.identifier for query in found]
    for identifier in known:
        if known.count(identifier) > 1:
            raise ExpressionError(f"The Id {identifier} is used more than once")
    for query in found:
        for name in _referred(query):
            if name not in known:
                raise ExpressionError(f"Error in expression '{query.identifier}': Undefined variable {name}")
    _refuse_circles(found)
    return found


def _read(query: dict[str, Any]) -> Query:
    identifier = query["Id"]
    if not _ID.fullmatch(identifier):
        raise ExpressionError(
            f"The Id {identifier} is not valid: letters, digits, underscores, first a lowercase letter"
        )
    if ("Expression" in query) == ("MetricStat" in query):
        raise ExpressionError(f"The query {identifier} has either an Expression or a MetricStat")
    read_as = partial(Query, identifier=identifier, label=query.get("Label"), shown=query.get("ReturnData", True))
    if "Expression" in query:
        try:
            search = parse_search(query["Expression"])
            tree = None if search is not None else parse(query["Expression"])
        except ExpressionError as error:
            raise ExpressionError(f"Error in expression '{identifier}': {error}") from error
        if search is not None and search.combined and "Period" not in query:
            raise ExpressionError(f"The query {identifier} needs a Period")
        return read_as(period=query.get("Period"), tree=tree, search=search)
    stat = query["MetricStat"]
    problem = problem_with_period(stat["Period"])
    if problem:
        raise ExpressionError(f"{problem} (query {identifier})")
    check_statistic(stat["Stat"])
    metric = Metric(
        namespace=stat["Metric"].get("Namespace", ""),
        name=stat["Metric"].get("MetricName", ""),
        dimensions=dimensions(stat["Metric"].get("Dimensions")),
    )
    return read_as(period=stat["Period"], metric=metric, stat=stat["Stat"], unit=stat.get("Unit"))


def _referred(query: Query) -> set[str]:
    return names(query.tree) if query.tree is not None else set()


def _refuse_circles(queries: Iterable[Query]) -> None:
    try:
        TopologicalSorter({query.identifier: _referred(query) for query in queries}).prepare()
    except CycleError as error:
        raise ExpressionError(
            f"The expressions {', '.join(sorted(set(error.args[1])))} refer to each other in a circle"
        ) from error


class Results:
    """Results of queries over a span. Each is computed once, when it is first read."""

    def __init__(self, queries: Sequence[Query], *, start: float, end: float) -> None:
        """``start`` and ``end`` in seconds since the epoch."""
        self.queries = queries
        self._by_id = {query.identifier: query for query in queries}
        self._start, self._end = start, end
        self._values: dict[str, Value] = {}
        longest = max((query.period or _MINUTE for query in queries if query.metric), default=None)
        given = max((query.period for query in queries if query.period), default=_MINUTE)
        self.span = self._span(longest or given)

    def _span(self, period: int) -> Span:
        return rounded_span(self._start, self._end, period)

    def value(self, identifier: str) -> Value:
        """The value of the query with this Id."""
        if identifier not in self._values:
            self._values[identifier] = self._value(self._by_id[identifier])
        return self._values[identifier]

    def _value(self, query: Query) -> Value:
        if query.metric is not None:
            label = query.label if query.label is not None else query.metric.name
            span = self._span(query.period or _MINUTE)
            return series(query.metric, span, query.stat, label=label, unit=query.unit)
        if query.search is not None:
            return self._combined(query.search, self._span(query.period or _MINUTE))
        if query.tree is None:
            raise ExpressionError(f"The query {query.identifier} is empty")
        return evaluate(query.tree, self.value, self.span)

    def _combined(self, search: MetricSearch, span: Span) -> Series:
        """One series of all samples that a query finds."""
        if not search.combined:
            raise ExpressionError("a SEARCH has no single value: it is shown alone")
        many: dict[int, list[Point]] = defaultdict(list)
        for own in search.found():
            metric = Metric(namespace=search.namespace, name=search.name, dimensions=own)
            for at, points in samples(metric, span).items():
                many[at] += points
        values = {at: value_of(points, search.stat) for at, points in sorted(many.items())}
        shown = {at: value for at, value in values.items() if value is not None}
        return Series(label=search.name, span=span, points=shown)

    def every(self, query: Query) -> list[Series]:
        """The series of one query: one, or of a SEARCH each that it finds."""
        search = query.search
        if search is None or search.combined:
            return [self.shown(query)]
        span, found = self._span(search.period or _MINUTE), []
        for own in search.found():
            metric = Metric(namespace=search.namespace, name=search.name, dimensions=own)
            line = series(metric, span, search.stat, label=search.label(query.label, own))
            found.append(replace(line, points={at: value / search.parts for at, value in line.points.items()}))
        return found

    def shown(self, query: Query) -> Series:
        """The series of one query; raises ``ExpressionError`` where there is none to show."""
        try:
            value = self.value(query.identifier)
        except ExpressionError as error:
            raise ExpressionError(f"Error in expression '{query.identifier}': {error}") from error
        if isinstance(value, Series):
            return value
        raise ExpressionError(
            f"Error in expression '{query.identifier}': its result is a number, and must be a time series"
        )


# --- Operations ---
# Source: CloudWatch API reference, PutMetricData, GetMetricData and GetMetricStatistics.

_MOST_DATA, _MOST_VALUES, _MOST_QUERIES = 1000, 150, 500
_MOST_STATISTICS_POINTS = 1440


def put_metric_data(request: Request) -> None:
    """PutMetricData: all or nothing."""
    data = request.get("MetricData", [])
    if len(data) > _MOST_DATA:
        raise refused("PutMetricData", f"The collection MetricData must not have a size greater than {_MOST_DATA}.")
    problems = [problem for datum in data for problem in _datum_problems(datum)]
    if problems:
        raise refused("PutMetricData", "; ".join(problems), code="InvalidParameterValue")
    ahead = ahead_seconds()
    times = ({"Timestamp": datum["Timestamp"] + ahead} if "Timestamp" in datum else {} for datum in data)
    write(request["Namespace"], [{**datum, **time} for datum, time in zip(data, times, strict=True)])


def _datum_problems(datum: dict[str, Any]) -> Iterable[str]:
    name = datum["MetricName"]
    given = [kind for kind in ("Value", "Values", "StatisticValues") if kind in datum]
    if len(given) != 1:
        yield f"Metric {name}: exactly one of Value, Values and StatisticValues is required"
        return
    values, counts = datum.get("Values", []), datum.get("Counts")
    if len(values) > _MOST_VALUES:
        yield f"Metric {name}: Values has more than {_MOST_VALUES} values"
    if counts is not None and len(counts) != len(values):
        yield f"Metric {name}: Values and Counts must have the same length"


def get_metric_statistics(request: Request) -> dict[str, Any]:
    """GetMetricStatistics, the oldest first (AWS documents no order)."""
    basic, extended = request.get("Statistics", []), request.get("ExtendedStatistics", [])
    if not basic and not extended:
        raise refused(
            "GetMetricStatistics",
            "Must specify either Statistics or ExtendedStatistics",
            code="InvalidParameterCombination",
        )
    try:
        for name in (*basic, *extended):
            check_statistic(name)
        problem = problem_with_period(request["Period"])
    except ExpressionError as error:
        problem = str(error)
    if problem:
        raise refused("GetMetricStatistics", problem, code="InvalidParameterValue")
    span = rounded_span(*_times(request, "GetMetricStatistics"), request["Period"])
    if len(span.times()) > _MOST_STATISTICS_POINTS:
        raise refused(
            "GetMetricStatistics",
            f"You have requested up to {len(span.times())} datapoints, which exceeds the limit of "
            f"{_MOST_STATISTICS_POINTS}. You may reduce the datapoints requested by increasing Period, or decreasing "
            "the time range.",
            code="InvalidParameterCombination",
        )
    metric = Metric(
        namespace=request["Namespace"],
        name=request["MetricName"],
        dimensions=dimensions(request.get("Dimensions")),
    )
    points, ahead = [], ahead_seconds()
    for at, found in sorted(samples(metric, span, unit=request.get("Unit")).items()):
        values = {name: value_of(found, name) for name in (*basic, *extended)}
        known = {name: value for name, value in values.items() if value is not None}
        percentiles = {name: value for name, value in known.items() if name not in STATISTICS}
        point = {name: value for name, value in known.items() if name in STATISTICS}
        more = {"ExtendedStatistics": percentiles} if percentiles else {}
        points.append({"Timestamp": at - ahead, "Unit": found[0]["Unit"], **point, **more})
    return {"Label": metric.name, "Datapoints": points}


def get_metric_data(request: Request) -> dict[str, Any]:
    """GetMetricData, the newest points first unless ScanBy is TimestampAscending, every point in one page."""
    wanted = request["MetricDataQueries"]
    if len(wanted) > _MOST_QUERIES:
        raise refused("GetMetricData", f"MetricDataQueries must not have a size greater than {_MOST_QUERIES}.")
    start, end = _times(request, "GetMetricData")
    try:
        results = Results(read(wanted), start=start, end=end)
        shown = [(query, each) for query in results.queries if query.shown for each in results.every(query)]
    except ExpressionError as error:
        raise refused("GetMetricData", str(error)) from error
    backwards, ahead = request.get("ScanBy", "TimestampDescending") == "TimestampDescending", ahead_seconds()
    found = []
    for query, series in shown:
        points = sorted(series.points.items(), reverse=backwards)
        found.append(
            {
                "Id": query.identifier,
                "Label": _label(query, series),
                "Timestamps": [time - ahead for time, _ in points],
                "Values": [value for _, value in points],
                "StatusCode": "Complete",
            }
        )
    return {"MetricDataResults": found, "Messages": []}


def _label(query: Query, series: Series) -> str:
    if query.search is not None and not query.search.combined:
        return series.label
    if query.label is not None:
        return query.label
    return query.identifier if query.tree is not None else series.label


def _times(request: Request, operation: str) -> tuple[float, float]:
    start, end = (request[name] + ahead_seconds() for name in ("StartTime", "EndTime"))
    if start >= end:
        sentence = "The parameter StartTime must be less than the parameter EndTime."
        code = "ValidationError" if operation == "GetMetricData" else "InvalidParameterCombination"
        raise refused(operation, sentence, code=code)
    return start, end
