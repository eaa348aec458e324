"""CloudWatch's operations on metrics.

Source: CloudWatch API reference, PutMetricData, GetMetricData, GetMetricStatistics and ListMetrics.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.cloudwatch import metric_store, queries
from tritonstack_local.emulator.cloudwatch.alarm_operations import Request, refused
from tritonstack_local.emulator.cloudwatch.expression_functions import Series
from tritonstack_local.emulator.cloudwatch.expression_syntax import ExpressionError
from tritonstack_local.emulator.cloudwatch.metric_store import ahead_seconds
from tritonstack_local.emulator.cloudwatch.search_terms import Metric
from tritonstack_local.emulator.cloudwatch.statistic import BASIC, statistic

_MOST_DATA, _MOST_VALUES, _MOST_QUERIES = 1000, 150, 500
_MOST_STATISTICS_POINTS, _MOST_POINTS = 1440, 100_800
_RECENT_SECONDS = 3 * 3600
_LIST_PAGE = 500


def put_metric_data(request: Request) -> None:
    """PutMetricData: all or nothing."""
    if "EntityMetricData" in request:
        raise refused("PutMetricData", "EntityMetricData is not in the local AWS; it has MetricData")
    data = request.get("MetricData", [])
    if len(data) > _MOST_DATA:
        raise refused("PutMetricData", f"The collection MetricData must not have a size greater than {_MOST_DATA}.")
    problems = [problem for datum in data for problem in _datum_problems(datum)]
    if problems:
        raise refused("PutMetricData", "; ".join(problems), code="InvalidParameterValue")
    for datum in data:
        given = metric_store.dimensions(datum.get("Dimensions"))
        metric = Metric(namespace=request["Namespace"], name=datum["MetricName"], dimensions=given)
        told = {"Timestamp": datum["Timestamp"] + ahead_seconds()} if "Timestamp" in datum else {}
        metric_store.write(metric, {**datum, **told})


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
    numbers = [datum.get("Value", 0.0), *values, *(counts or ()), *datum.get("StatisticValues", {}).values()]
    if not all(map(math.isfinite, numbers)):
        yield f"Metric {name}: special values (for example, NaN, +Infinity, -Infinity) are not supported"


def list_metrics(request: Request) -> dict[str, Any]:
    """ListMetrics: a filter without a value asks for the dimension alone."""
    wanted = [(one["Name"], one.get("Value")) for one in request.get("Dimensions", [])]
    oldest = clock.now() - _RECENT_SECONDS if "RecentlyActive" in request else float("-inf")
    found = [
        metric
        for metric, newest in metric_store.metrics()
        if request.get("Namespace", metric.namespace) == metric.namespace
        and request.get("MetricName", metric.name) == metric.name
        and newest >= oldest
        and all(name in metric.dimensions and value in (None, metric.dimensions[name]) for name, value in wanted)
    ]
    first = _offset(request.get("NextToken"), "ListMetrics")
    more = {"NextToken": str(first + _LIST_PAGE)} if len(found) > first + _LIST_PAGE else {}
    return {"Metrics": [_shown(metric) for metric in found[first : first + _LIST_PAGE]], **more}


def _shown(metric: Metric) -> dict[str, Any]:
    dimensions = [{"Name": name, "Value": value} for name, value in metric.dimensions.items()]
    return {"Namespace": metric.namespace, "MetricName": metric.name, "Dimensions": dimensions}


def get_metric_statistics(request: Request) -> dict[str, Any]:
    """GetMetricStatistics, the oldest first (AWS promises no order)."""
    basic, extended = request.get("Statistics", []), request.get("ExtendedStatistics", [])
    if not basic and not extended:
        raise refused(
            "GetMetricStatistics",
            "Must specify either Statistics or ExtendedStatistics",
            code="InvalidParameterCombination",
        )
    try:
        of = {name: statistic(name) for name in [*basic, *extended]}
    except ExpressionError as error:
        raise refused("GetMetricStatistics", str(error), code="InvalidParameterValue") from error
    span = queries.rounded_span(*_times(request, "GetMetricStatistics"), request["Period"])
    problem = queries.problem_with_period(span.period)
    if problem:
        raise refused("GetMetricStatistics", problem, code="InvalidParameterValue")
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
        dimensions=metric_store.dimensions(request.get("Dimensions")),
    )
    points, ahead = [], ahead_seconds()
    for time, samples in sorted(metric_store.samples(metric, span, unit=request.get("Unit")).items()):
        values = {name: one(samples) for name, one in of.items()}
        known = {name: value for name, value in values.items() if value is not None}
        percentiles = {name: value for name, value in known.items() if name not in BASIC}
        point = {name: value for name, value in known.items() if name in BASIC}
        if percentiles:
            point["ExtendedStatistics"] = percentiles  # type: ignore[assignment]  # the one member that is no number
        points.append({"Timestamp": time - ahead, "Unit": samples[0].unit, **point})
    return {"Label": metric.name, "Datapoints": points}


def get_metric_data(request: Request) -> dict[str, Any]:
    """GetMetricData, the newest points first unless asked otherwise, in pages of MaxDatapoints."""
    wanted = request["MetricDataQueries"]
    if len(wanted) > _MOST_QUERIES:
        raise refused("GetMetricData", f"MetricDataQueries must not have a size greater than {_MOST_QUERIES}.")
    start, end = _times(request, "GetMetricData")
    try:
        results = queries.Results(queries.read(wanted), start=start, end=end)
        shown = [(query, series) for query in results.queries if query.shown for series in results.shown(query)]
    except ExpressionError as error:
        raise refused("GetMetricData", str(error)) from error
    backwards = request.get("ScanBy", "TimestampDescending") == "TimestampDescending"
    found = [
        {
            "Id": query.identifier,
            "Label": _label(results, query, series),
            "points": _ordered(series, backwards=backwards),
        }
        for query, series in shown
    ]
    first = _offset(request.get("NextToken"), "GetMetricData")
    return {**_page(found, first=first, most=request.get("MaxDatapoints", _MOST_POINTS)), "Messages": []}


def _label(results: queries.Results, query: queries.Query, series: Series) -> str:
    """Of an array's series the own label follows the expression's, if it has one (user guide, "Using metric math")."""
    if query.metric is not None:
        return series.label
    if isinstance(results.value(query.identifier), list):
        return f"{query.label} {series.label}" if query.label else series.label
    return query.identifier if query.label is None else query.label


def _ordered(series: Series, *, backwards: bool) -> list[tuple[int, float]]:
    ahead = ahead_seconds()
    return sorted(((time - ahead, value) for time, value in series.points.items()), reverse=backwards)


def _page(found: Sequence[dict[str, Any]], *, first: int, most: int) -> dict[str, Any]:
    """``most`` points from ``first`` on, counted through all results; a series that is cut is PartialData."""
    shown, at, last = [], 0, first + most
    for one in found:
        points = one["points"]
        taken = points[max(0, first - at) : max(0, last - at)]
        cut = at + len(points) > last
        shown.append(
            {
                "Id": one["Id"],
                "Label": one["Label"],
                "Timestamps": [time for time, _ in taken],
                "Values": [value for _, value in taken],
                "StatusCode": "PartialData" if cut else "Complete",
            }
        )
        at += len(points)
    return {"MetricDataResults": shown, **({"NextToken": str(last)} if at > last else {})}


def _times(request: Request, operation: str) -> tuple[float, float]:
    start, end = (request[name] + ahead_seconds() for name in ("StartTime", "EndTime"))
    if start >= end:
        sentence = "The parameter StartTime must be less than the parameter EndTime."
        code = "ValidationError" if operation == "GetMetricData" else "InvalidParameterCombination"
        raise refused(operation, sentence, code=code)
    return start, end


def _offset(token: str | None, operation: str) -> int:
    if token is None:
        return 0
    if not token.isdigit():
        raise refused(operation, f"Invalid NextToken : {token}", code="InvalidNextToken")
    return int(token)
