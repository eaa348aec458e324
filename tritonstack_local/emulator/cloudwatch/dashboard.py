"""What PutDashboard refuses of a dashboard's body: everything but the widgets that this project's dashboards have.

Source: CloudWatch API reference, "Dashboard Body Structure and Syntax". A field or a type of widget that the reference
has and no dashboard of this project uses is refused by name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

_COLUMNS, _MOST_HEIGHT, _MOST_WIDGETS, _MOST_METRICS = 24, 1000, 500, 500
Message = tuple[str, str]
"""Path and sentence."""
Check = tuple[Callable[[Any], bool], str]
"""Whether a value is right, and the sentence where it is not."""


def _one_of(*allowed: str) -> Check:
    return lambda value: value in allowed, f"Should be one of {', '.join(allowed)}"


def _from(low: int, high: int | None = None) -> Check:
    sentence = f"Should be an integer from {low}" + (f" to {high}" if high else "")
    return lambda value: type(value) is int and low <= value and (high is None or value <= high), sentence


_TEXT: Check = (lambda value: isinstance(value, str), "Should be a text")
_OBJECT: Check = (lambda value: isinstance(value, dict), "Should be an object")
_BOOLEAN: Check = (lambda value: isinstance(value, bool), "Should be true or false")
_PERIOD: Check = (
    lambda value: type(value) is int and value > 0 and (value in (1, 5, 10, 20, 30) or value % 60 == 0),
    "Should be 1, 5, 10, 20, 30, or a multiple of 60",
)
_BODY = {
    "periodOverride": _one_of("auto", "inherit"),
    "widgets": (lambda value: isinstance(value, list) and len(value) <= _MOST_WIDGETS, "Should be at most 500 widgets"),
}
_WIDGET = {
    "type": _one_of("metric", "text"),
    "x": _from(0, _COLUMNS - 1),
    "y": _from(0),
    "width": _from(1, _COLUMNS),
    "height": _from(1, _MOST_HEIGHT),
    "properties": _OBJECT,
}
_PROPERTIES = {
    "text": {"markdown": _TEXT},
    "metric": {
        "metrics": (
            lambda value: isinstance(value, list) and len(value) <= _MOST_METRICS,
            "Should be at most 500 metrics and expressions",
        ),
        "region": _TEXT,
        "title": _TEXT,
        "view": _one_of("timeSeries"),
        "stacked": _BOOLEAN,
        "period": _PERIOD,
        "yAxis": _OBJECT,
        "annotations": _OBJECT,
    },
}
_RENDERED = {"id": _TEXT, "stat": _TEXT, "label": _TEXT, "visible": _BOOLEAN, "expression": _TEXT, "period": _PERIOD}


def problems(body: str) -> list[Message]:
    """What a dashboard is refused for."""
    try:
        read = json.loads(body)
    except ValueError as error:
        return [("/", f"The field DashboardBody must be a valid JSON object: {error}")]
    if not isinstance(read, dict):
        return [("/", "The field DashboardBody must be a JSON object")]
    found = list(_wrong(read, _BODY, "", required=("widgets",)))
    if not found:
        for index, widget in enumerate(read["widgets"]):
            found += _widget_errors(widget, f"/widgets/{index}")
    return found


def _wrong(given: Any, checks: dict[str, Check], path: str, *, required: tuple[str, ...] = ()) -> Iterator[Message]:
    """Fields that are missing, wrong, or not here."""
    if not isinstance(given, dict):
        yield path, "Should be an object"
        return
    yield from ((f"{path}/{name}", "Is required") for name in required if name not in given)
    for name, value in given.items():
        is_right, sentence = checks.get(name, (lambda _: False, f"Is not in the local AWS; it has {', '.join(checks)}"))
        if not is_right(value):
            yield f"{path}/{name}", sentence


def _widget_errors(widget: Any, path: str) -> Iterator[Message]:
    wrong = list(_wrong(widget, _WIDGET, path, required=("type", "properties")))
    yield from wrong
    if wrong:
        return
    if ("x" in widget) != ("y" in widget):
        yield path, "x and y are given both or not at all"
    if widget.get("x", 0) + widget.get("width", 0) > _COLUMNS:
        yield path, f"x and width reach beyond the {_COLUMNS} columns"
    properties, path = widget["properties"], f"{path}/properties"
    required = ("metrics", "region") if widget["type"] == "metric" else ("markdown",)
    wrong = list(_wrong(properties, _PROPERTIES[widget["type"]], path, required=required))
    yield from wrong
    if widget["type"] == "metric" and not wrong:
        for index, metric in enumerate(properties["metrics"]):
            yield from _metric_errors(metric, f"{path}/metrics/{index}")


def _metric_errors(metric: Any, path: str) -> Iterator[Message]:
    """One of ``metrics``: namespace, name, dimension names and values, and how it is rendered; or an expression."""
    if not isinstance(metric, list) or not metric:
        yield path, "Should be an array that is not empty"
        return
    *names, rendering = metric if isinstance(metric[-1], dict) else [*metric, {}]
    if not all(isinstance(name, str) for name in names):
        yield path, "Should have texts before the rendering properties"
    if "expression" in rendering:
        if names:
            yield path, "An expression should have rendering properties alone"
    elif len(names) < 2 or len(names) % 2:
        yield path, "Should have a namespace, a metric's name, and pairs of dimension names and values"
    yield from _wrong(rendering, _RENDERED, path)
