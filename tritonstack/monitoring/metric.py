"""CloudWatch metrics with one statistic, and series: one metric, or metric math over several."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import Any

from tritonstack import aws_names
from tritonstack.naming import LOG_METRICS


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One statistic of one metric."""

    namespace: str  # for example ``AWS/SageMaker``
    name: str  # for example ``ModelLatency``
    dimensions: tuple[tuple[str, str], ...]  # names and values, in the order of the documentation
    statistic: str  # ``Sum``, ``Average``, ``Minimum``, ``Maximum``, ``SampleCount`` or a percentile (``p99``)

    def query(self, *, query_id: str, period: int, returned: bool, label: str | None = None) -> dict[str, Any]:
        """A MetricDataQuery; ``period`` in seconds."""
        dimensions = aws_names.dimension_list(dict(self.dimensions))
        stat = {
            "Metric": {"Namespace": self.namespace, "MetricName": self.name, "Dimensions": dimensions},
            "Period": period,
            "Stat": self.statistic,
        }
        query: dict[str, Any] = {"Id": query_id, "MetricStat": stat, "ReturnData": returned}
        return query if label is None else {**query, "Label": label}


@dataclass(frozen=True, kw_only=True)
class Search:
    """A metric by further dimensions, whose values are known only when it is written: an instance, a GPU."""

    metric: Metric  # with the dimensions that are known
    by: tuple[str, ...]  # names of the further ones
    parts: int = 1  # what each value is divided by

    def expression(self, *, period: int) -> str:
        """Metric math that finds a line for each metric (CloudWatch user guide, "Search expression syntax")."""
        metric = self.metric
        names = ",".join([f'"{metric.namespace}"', *(name for name, _ in metric.dimensions), *self.by])
        terms = " ".join(f'{name}="{value}"' for name, value in (("MetricName", metric.name), *metric.dimensions))
        found = f"SEARCH('{{{names}}} {terms}', '{metric.statistic}', {period})"
        return found if self.parts == 1 else f"{found} / {self.parts}"

    @property
    def greatest(self) -> str:
        """A query for the greatest of all, which an alarm may have in place of a search.

        Source: CloudWatch user guide, "Metrics Insights query components", "Create a CloudWatch alarm based on a
        Metrics Insights query".
        """
        metric = self.metric
        names = ", ".join([f'"{metric.namespace}"', *(name for name, _ in metric.dimensions), *self.by])
        where = " AND ".join(f"{name} = '{value}'" for name, value in metric.dimensions)
        return f"SELECT MAX({metric.name}) FROM SCHEMA({names}) WHERE {where}"  # noqa: S608 - no database: names of this environment


@dataclass(frozen=True, kw_only=True)
class Series:
    """One line of a graph, or the value of an alarm."""

    key: str  # its Id among the queries, unique in its graph: lower case first, then letters, digits, underscores
    label: str  # in the legend
    # Id → metric; without an expression one, with ``key`` as its Id. An Id is one metric in a graph
    metrics: Mapping[str, Metric] = field(hash=False)
    expression: str | None = None  # metric math over those Ids, or a query; None for the metric itself
    search: Search | None = None  # finds any number of lines; None for one line

    def text(self, *, period: int) -> str | None:
        """The expression of a query with this period in seconds; None for a metric itself."""
        return self.expression if self.search is None else self.search.expression(period=period)

    @classmethod
    def each(cls, key: str, search: Search) -> Series:
        """A line for each metric that a search finds, with the values of its further dimensions as label.

        Source: CloudWatch user guide, "Use dynamic labels".
        """
        label = " ".join(f"${{PROP('Dim.{name}')}}" for name in search.by)
        return cls(key=key, label=label, metrics={}, search=search)

    @classmethod
    def of(cls, key: str, label: str, metric: Metric, *, parts: int = 1, total: str = "") -> Series:
        """The line of one metric; of each of ``parts`` where it is their sum, whose Id is ``total``."""
        if parts == 1:
            return cls(key=key, label=label, metrics={key: metric})
        return cls(key=key, label=label, metrics={total: metric}, expression=f"{total} / {parts}")


def queries(series: Sequence[Series], *, period: int) -> list[dict[str, Any]]:
    """The MetricDataQueries of several lines; shared metrics are queried once."""
    metrics = {name: metric for each in series for name, metric in each.metrics.items()}
    expressions = {each.key: each.text(period=period) for each in series}
    plain = {each.key: each.label for each in series if expressions[each.key] is None}
    return [
        metric.query(query_id=name, period=period, returned=name in plain, label=plain.get(name))
        for name, metric in metrics.items()
    ] + [
        {
            "Id": each.key,
            "Expression": expressions[each.key],
            "Label": each.label,
            "Period": period,
            "ReturnData": True,
        }
        for each in series
        if expressions[each.key] is not None
    ]


def unit_of(metric: Metric) -> str:
    """The unit that AWS writes the metric in (``Microseconds``).

    Raises:
        LookupError: AWS does not document the metric, its dimensions, or its statistic.
    """
    if metric.namespace.startswith(LOG_METRICS) and not metric.dimensions and metric.statistic == "Sum":
        return "Count"  # of this project's metric filters
    namespace = _document()["namespaces"].get(metric.namespace)
    row = namespace["metrics"].get(metric.name) if namespace else None
    if namespace is None or row is None:
        raise LookupError(f"no metric {metric.name} in {metric.namespace}")
    further = namespace.get("further_dimensions", {})
    names = [name for name, _ in metric.dimensions if metric.name not in further.get(name, ())]
    if names != namespace["dimensions"]:
        raise LookupError(f"{metric.name} has the dimensions {namespace['dimensions']}, not {names}")
    statistic = "percentiles" if re.fullmatch(r"p\d{1,2}(\.\d+)?", metric.statistic) else metric.statistic
    if statistic not in row["statistics"]:
        raise LookupError(f"{metric.name} has the statistics {row['statistics']}, not {metric.statistic}")
    return str(row["unit"])


def documented(dimensions: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Name → namespace and usual statistic, of the metrics that AWS writes with just these dimensions."""
    return {
        name: (namespace, str(row["statistics"][0]))
        for namespace, each in _document()["namespaces"].items()
        if each["dimensions"] == list(dimensions)
        for name, row in each["metrics"].items()
    }


@lru_cache(maxsize=1)
def _document() -> dict[str, Any]:
    text = files("tritonstack.monitoring").joinpath("data", "metrics.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document
