"""Metrics that an expression finds by their dimensions: SEARCH of dashboards, Metrics Insights' SELECT of alarms.

Sources: CloudWatch user guide, "Search expression syntax", "Use dynamic labels", "Metrics Insights query components".
Of both languages the local AWS has what this project's dashboards and alarms use: a schema, and equality of names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tritonstack_local.emulator.cloudwatch.metric_math import ExpressionError, check_statistic, problem_with_period
from tritonstack_local.emulator.ministack_adapter import cloudwatch

_SEARCH = re.compile(
    r"SEARCH\('\{(?P<schema>[^{}]+)\} (?P<terms>[^']+)', '(?P<stat>[\w.]+)', (?P<period>\d+)\)(?: / (?P<parts>\d+))?"
)
_SELECT = re.compile(
    r"SELECT (?P<function>AVG|MAX|MIN|SUM)\((?P<name>\w+)\) FROM SCHEMA\((?P<schema>[^()]+)\) WHERE (?P<terms>.+)"
)
_SEARCH_TERM, _SELECT_TERM = re.compile(r'(\w+)="([^"]+)"'), re.compile(r"(\w+) = '([^']+)'")
_FORMS = (
    "SEARCH('{namespace,dimension} MetricName=\"metric\" dimension=\"value\"', 'statistic', period) and "
    "SELECT MAX(metric) FROM SCHEMA(namespace, dimension) WHERE dimension = 'value' AND …"
)
_STATISTICS = {"AVG": "Average", "MAX": "Maximum", "MIN": "Minimum", "SUM": "Sum"}
_LABEL = re.compile(r"\$\{PROP\('Dim\.(\w+)'\)\}")


@dataclass(frozen=True, kw_only=True)
class MetricSearch:
    """What is searched for."""

    namespace: str
    name: str
    dimensions: tuple[str, ...]  # exactly these a metric has
    equal: Mapping[str, str]  # dimension → its value
    stat: str
    period: int | None  # seconds; None of SELECT, whose query has it
    parts: int = 1  # what each value is divided by

    @property
    def combined(self) -> bool:
        """Whether all that is found makes one series (SELECT), not one each (SEARCH)."""
        return self.period is None

    def found(self) -> Iterator[dict[str, str]]:
        """The dimensions of every metric that it finds."""
        for (namespace, name, _), points in sorted(cloudwatch.metrics().items()):
            if (namespace, name) != (self.namespace, self.name) or not points:
                continue
            own: dict[str, str] = dict(points[0].get("Dimensions", {}))
            if set(own) == set(self.dimensions) and self.equal.items() <= own.items():
                yield own

    def label(self, template: str | None, own: Mapping[str, str]) -> str:
        """The label of one metric: the template with its values, or the values that the search left open."""
        if template is None:
            return " ".join(value for name, value in own.items() if name not in self.equal)
        return _LABEL.sub(lambda match: own.get(match[1], ""), template)


def parse_search(expression: str) -> MetricSearch | None:
    """The search of an expression; None for metric math. Raises ``ExpressionError`` for one that is not read here."""
    if expression.startswith("SEARCH("):
        match, term = _SEARCH.fullmatch(expression), _SEARCH_TERM
        equal = None if match is None else _equal(match["terms"].split(" "), term)
    elif expression.startswith("SELECT "):
        match, term = _SELECT.fullmatch(expression), _SELECT_TERM
        equal = None if match is None else _equal(match["terms"].split(" AND "), term)
    else:
        return None
    if match is None or equal is None:
        raise ExpressionError(f"'{expression}' is not in the local AWS: it has {_FORMS}")
    namespace, *dimensions = (each.strip().strip('"') for each in match["schema"].split(","))
    found = match.groupdict()
    if "function" in found:
        stat, period, name = _STATISTICS[found["function"]], None, found["name"]
    else:
        stat, period, name = found["stat"], int(found["period"]), equal.pop("MetricName", "")
        check_statistic(stat)
        if problem := problem_with_period(period):
            raise ExpressionError(problem)
    return MetricSearch(
        namespace=namespace,
        name=name,
        dimensions=tuple(dimensions),
        equal=equal,
        stat=stat,
        period=period,
        parts=int(found.get("parts") or 1),
    )


def _equal(terms: list[str], form: re.Pattern[str]) -> dict[str, str] | None:
    matches = [form.fullmatch(each) for each in terms]
    return None if None in matches else {each[1]: each[2] for each in matches if each is not None}
