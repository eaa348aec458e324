"""A dashboard as CloudWatch takes it.

Source: CloudWatch API reference, "Dashboard body structure and syntax".
"""

from __future__ import annotations

import json
from typing import Any

from tritonstack.monitoring.graph import Dashboard, Graph, Section
from tritonstack.monitoring.metric import Series

COLUMNS, WIDTH, HEIGHT, TITLE_HEIGHT = 24, 8, 6, 2
PERIOD = 60
"""Seconds. CloudWatch takes a longer one by itself where the range of time is long."""


def dashboard_body(dashboard: Dashboard) -> str:
    """The JSON text. The same definition gives the same text."""
    widgets: list[dict[str, Any]] = []
    top = 0
    for section in dashboard.sections:
        widgets.append(_title(section, top=top))
        top += TITLE_HEIGHT
        for number, graph in enumerate(section.graphs):
            row, column = divmod(number, COLUMNS // WIDTH)
            place = {"x": column * WIDTH, "y": top + row * HEIGHT, "width": WIDTH, "height": HEIGHT}
            widgets.append({"type": "metric", **place, "properties": _properties(graph, region=dashboard.region)})
        top += -(-len(section.graphs) // (COLUMNS // WIDTH)) * HEIGHT
    return json.dumps({"periodOverride": "auto", "widgets": widgets}, ensure_ascii=False, separators=(",", ":"))


def _title(section: Section, *, top: int) -> dict[str, Any]:
    text = "\n".join([f"## {section.title}", " ".join(section.notes)])
    place = {"x": 0, "y": top, "width": COLUMNS, "height": TITLE_HEIGHT}
    return {"type": "text", **place, "properties": {"markdown": text}}


def _properties(graph: Graph, *, region: str) -> dict[str, Any]:
    axis: dict[str, Any] = {"label": graph.unit, "min": 0, "showUnits": False}
    if graph.maximum is not None:
        axis["max"] = graph.maximum
    properties: dict[str, Any] = {
        "title": graph.title,
        "view": "timeSeries",
        "stacked": False,
        "region": region,
        "period": PERIOD,
        "yAxis": {"left": axis},
        "metrics": _metrics(graph.series),
    }
    if graph.limits:
        lines = [{"label": each.label, "value": each.value} for each in graph.limits]
        properties["annotations"] = {"horizontal": lines}
    return properties


def _metrics(series: tuple[Series, ...]) -> list[list[Any]]:
    """Rows of the widget: metrics first, of which only those that are lines themselves are seen."""
    plain = {each.key: each.label for each in series if each.expression is None}
    metrics = {name: metric for each in series for name, metric in each.metrics.items()}
    rows: list[list[Any]] = []
    for name, metric in metrics.items():
        dimensions = [part for pair in metric.dimensions for part in pair]
        shown = {"label": plain[name]} if name in plain else {"visible": False}
        rows.append([metric.namespace, metric.name, *dimensions, {"id": name, "stat": metric.statistic, **shown}])
    for each in series:
        if each.expression is not None:
            rows.append([{"id": each.key, "label": each.label, "expression": each.expression}])
    return rows
