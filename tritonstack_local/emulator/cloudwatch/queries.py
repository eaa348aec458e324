"""MetricDataQueries: metrics and expressions that name each other, of GetMetricData and of alarms.

Source: API reference, MetricDataQuery and GetMetricData. The time of a request begins at a whole minute, or at a whole
period below a minute ("rounded down"); periods are counted from there. An expression has the period of its longest
metric, or its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tritonstack_local.emulator.cloudwatch import metric_store
from tritonstack_local.emulator.cloudwatch.expression_evaluation import check_functions, evaluate
from tritonstack_local.emulator.cloudwatch.expression_functions import Series, Span, Value
from tritonstack_local.emulator.cloudwatch.expression_syntax import ExpressionError, Tree, names, parse
from tritonstack_local.emulator.cloudwatch.search_terms import Metric, search
from tritonstack_local.emulator.cloudwatch.statistic import statistic

_ID = re.compile(r"[a-z][A-Za-z0-9_]{0,254}")
_KEYWORDS = frozenset({"REPEAT", "LINEAR", "AVG", "MAX", "MIN", "SUM", "ASC", "DESC"})
_SUB_MINUTE = (1, 5, 10, 20, 30)
_MINUTE = 60


def problem_with_period(period: int) -> str | None:
    """A sentence where it is none: 1, 5, 10, 20, 30, or a multiple of 60 seconds."""
    if period in _SUB_MINUTE or (period > 0 and period % _MINUTE == 0):
        return None
    return f"Period {period} is not valid: it is 1, 5, 10, 20, 30, or a multiple of 60 seconds"


def rounded_span(start: float, end: float, period: int) -> Span:
    """The span of a request: its start rounded down as AWS does."""
    step = min(period, _MINUTE)
    first = int(start // step * step)
    return Span(start=first, end=max(first, -int(-end // 1)), period=period)


@dataclass(frozen=True, kw_only=True)
class Query:
    """One MetricDataQuery, read.

    Attributes:
        metric: what is read; None for an expression.
        tree: what is computed; None for a metric.
        period: of the metric in seconds, or what an expression was given; None where it was given none.
    """

    identifier: str
    label: str | None
    shown: bool
    period: int | None
    metric: Metric | None = None
    stat: str = ""
    unit: str | None = None
    tree: Tree | None = None


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
    label, shown, period = query.get("Label"), query.get("ReturnData", True), query.get("Period")
    if "Expression" in query:
        try:
            tree = parse(query["Expression"])
            check_functions(tree)
        except ExpressionError as error:
            raise ExpressionError(f"Error in expression '{identifier}': {error}") from error
        return Query(identifier=identifier, label=label, shown=shown, period=period, tree=tree)
    stat = query["MetricStat"]
    problem = problem_with_period(stat["Period"])
    if problem:
        raise ExpressionError(f"{problem} (query {identifier})")
    statistic(stat["Stat"])
    metric = Metric(
        namespace=stat["Metric"].get("Namespace", ""),
        name=stat["Metric"].get("MetricName", ""),
        dimensions=metric_store.dimensions(stat["Metric"].get("Dimensions")),
    )
    return Query(
        identifier=identifier,
        label=label,
        shown=shown,
        period=stat["Period"],
        metric=metric,
        stat=stat["Stat"],
        unit=stat.get("Unit"),
    )


def _referred(query: Query) -> set[str]:
    return set(names(query.tree)) - _KEYWORDS if query.tree is not None else set()


def _refuse_circles(queries: Iterable[Query]) -> None:
    refers = {query.identifier: _referred(query) for query in queries}
    while True:
        free = [identifier for identifier, others in refers.items() if not others & refers.keys()]
        if not free:
            break
        for identifier in free:
            del refers[identifier]
    if refers:
        raise ExpressionError(f"The expressions {', '.join(sorted(refers))} refer to each other in a circle")


class Results:
    """What queries give over a time. Each is computed once, when it is first asked for."""

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
        """See ``Scope``."""
        if identifier not in self._values:
            self._values[identifier] = self._value(self._by_id[identifier])
        return self._values[identifier]

    def _value(self, query: Query) -> Value:
        if query.metric is not None:
            label = query.label if query.label is not None else query.metric.name
            span = self._span(query.period or _MINUTE)
            return metric_store.series(query.metric, span, statistic(query.stat), label=label, unit=query.unit)
        if query.tree is None:
            raise ExpressionError(f"The query {query.identifier} is empty")
        return evaluate(query.tree, self)

    def metrics(self) -> list[tuple[str, Series]]:
        """See ``Scope``."""
        found = []
        for query in self.queries:
            value = self.value(query.identifier) if query.metric is not None else None
            if isinstance(value, Series):
                found.append((query.identifier, value))
        return found

    def search(self, text: str, statistic_name: str, period: int) -> list[Series]:
        """See ``Scope``; in the order of names and dimension values."""
        matches, of, span = search(text), statistic(statistic_name), self._span(period)
        found = [metric for metric, _ in metric_store.metrics() if matches(metric)]
        found.sort(key=lambda metric: (metric.namespace, metric.name, sorted(metric.dimensions.items())))
        labels = _labels_of(found)
        return [metric_store.series(metric, span, of, label=labels[at]) for at, metric in enumerate(found)]

    def shown(self, query: Query) -> list[Series]:
        """The series of one query; raises ``ExpressionError`` where there are none to show."""
        try:
            value = self.value(query.identifier)
        except ExpressionError as error:
            raise ExpressionError(f"Error in expression '{query.identifier}': {error}") from error
        if isinstance(value, Series):
            return [value]
        if isinstance(value, list):
            return value
        raise ExpressionError(
            f"Error in expression '{query.identifier}': its result is a number, and must be a time series or an array "
            "of time series"
        )


def _labels_of(found: Sequence[Metric]) -> list[str]:
    """What tells the metrics of a search apart: values of dimensions where these differ, and names where those do."""
    several = len({metric.name for metric in found}) > 1
    names_of = {name for metric in found for name in metric.dimensions}
    differing = [name for name in sorted(names_of) if len({metric.dimensions.get(name) for metric in found}) > 1]
    labels = []
    for metric in found:
        parts = [metric.dimensions[name] for name in differing if name in metric.dimensions]
        labels.append(" ".join([*parts, *([metric.name] if several or not parts else [])]))
    return labels
