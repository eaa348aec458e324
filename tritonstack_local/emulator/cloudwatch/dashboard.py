"""What PutDashboard refuses of a dashboard's body.

Source: CloudWatch API reference, "Dashboard Body Structure and Syntax". Checked are the widgets' common fields and what
each type requires; of fields that a type does not know CloudWatch only warns, and so does this.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, TypeGuard

_COLUMNS, _MOST_HEIGHT, _MOST_WIDGETS, _MOST_METRICS = 24, 1000, 500, 500
_BODY = ("end", "periodOverride", "start", "variables", "widgets")
_WIDGET = ("height", "properties", "type", "width", "x", "y")
_VIEWS = ("timeSeries", "singleValue", "gauge", "bar", "pie", "table")
_RENDERED = (
    "accountId", "color", "expression", "id", "label", "period", "region", "stat", "visible", "yAxis",
)  # fmt: skip
_KNOWN = {
    "metric": (
        "accountId", "annotations", "end", "labels", "legend", "liveData", "metrics", "period", "region",
        "setPeriodToTimeRange",
        "singleValueFullPrecision", "sparkline", "stacked", "start", "stat", "table", "timezone", "title", "trend",
        "view", "yAxis",
    ),
    "text": ("background", "markdown"),
    "log": ("accountId", "query", "queryLanguage", "region", "stacked", "title", "view"),
    "alarm": ("alarms", "sortBy", "states", "title"),
}  # fmt: skip
_OTHERS = ("chart", "custom", "explorer")
"""Types whose properties are not looked into."""
Message = tuple[str, str]
"""Path and sentence."""


def problems(body: str) -> tuple[list[Message], list[Message]]:
    """Errors, for which a dashboard is refused, and warnings."""
    try:
        read = json.loads(body)
    except ValueError as error:
        return [("/", f"The field DashboardBody must be a valid JSON object: {error}")], []
    if not isinstance(read, dict) or not isinstance(read.get("widgets"), list):
        return [("/widgets", "The dashboard body must have an array 'widgets'")], []
    errors: list[Message] = []
    if len(read["widgets"]) > _MOST_WIDGETS:
        errors.append(("/widgets", f"A dashboard has at most {_MOST_WIDGETS} widgets"))
    if read.get("periodOverride", "auto") not in ("auto", "inherit"):
        errors.append(("/periodOverride", "Should be one of auto, inherit"))
    warnings = [(f"/{name}", "Should NOT have this additional property") for name in read if name not in _BODY]
    for index, widget in enumerate(read["widgets"]):
        path = f"/widgets/{index}"
        errors += _widget_errors(widget, path)
        if isinstance(widget, dict):
            warnings += _widget_warnings(widget, path)
    return errors, warnings


def _widget_errors(widget: Any, path: str) -> Iterator[Message]:
    if not isinstance(widget, dict):
        yield path, "Should be an object"
        return
    kind = widget.get("type")
    if kind not in _KNOWN and kind not in _OTHERS:
        yield f"{path}/type", f"Should be one of {', '.join([*_KNOWN, *_OTHERS])}"
    for name, low, high in (
        ("x", 0, _COLUMNS - 1),
        ("y", 0, None),
        ("width", 1, _COLUMNS),
        ("height", 1, _MOST_HEIGHT),
    ):
        if name in widget and not _is_between(widget[name], low, high):
            yield f"{path}/{name}", f"Should be an integer from {low}" + (f" to {high}" if high else "")
    if ("x" in widget) != ("y" in widget):
        yield path, "x and y are given both or not at all"
    left, width = widget.get("x"), widget.get("width")
    if _is_between(left, 0, None) and _is_between(width, 1, None) and left + width > _COLUMNS:
        yield path, f"x and width reach beyond the {_COLUMNS} columns"
    properties = widget.get("properties")
    if not isinstance(properties, dict):
        yield f"{path}/properties", "Should be an object"
    elif kind in _ERRORS:
        yield from _ERRORS[kind](properties, f"{path}/properties")


def _widget_warnings(widget: dict[str, Any], path: str) -> Iterator[Message]:
    properties = widget.get("properties")
    known = _KNOWN.get(str(widget.get("type")))
    yield from (
        (f"{path}/{name}", "Should NOT have this additional property") for name in widget if name not in _WIDGET
    )
    if known and isinstance(properties, dict):
        for name in properties:
            if name not in known:
                yield f"{path}/properties/{name}", "Should NOT have this additional property"


def _is_between(value: Any, low: int, high: int | None) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value and (high is None or value <= high)


def _metric_errors(properties: dict[str, Any], path: str) -> Iterator[Message]:
    annotations = properties.get("annotations")
    alarms = isinstance(annotations, dict) and "alarms" in annotations
    metrics = properties.get("metrics")
    if metrics is None and not alarms:
        yield path, "Should have 'metrics', or 'annotations' with 'alarms'"
    if metrics is not None and not isinstance(metrics, list):
        yield f"{path}/metrics", "Should be an array"
    elif metrics:
        if "region" not in properties:
            yield f"{path}/region", "Should be given with 'metrics'"
        if len(metrics) > _MOST_METRICS:
            yield f"{path}/metrics", f"Should have at most {_MOST_METRICS} metrics and expressions"
        for index, metric in enumerate(metrics):
            yield from _rendered_errors(metric, f"{path}/metrics/{index}")
    if properties.get("view", "timeSeries") not in _VIEWS:
        yield f"{path}/view", f"Should be one of {', '.join(_VIEWS)}"
    if "period" in properties:
        yield from _period_errors(properties["period"], f"{path}/period")


def _rendered_errors(metric: Any, path: str) -> Iterator[Message]:
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
    for name in rendering:
        if name not in _RENDERED:
            yield f"{path}/{name}", f"Should be one of {', '.join(_RENDERED)}"
    if "period" in rendering:
        yield from _period_errors(rendering["period"], f"{path}/period")


def _period_errors(period: Any, path: str) -> Iterator[Message]:
    if not _is_between(period, 1, None) or (period not in (1, 5, 10, 20, 30) and period % 60):
        yield path, "Should be 1, 5, 10, 20, 30, or a multiple of 60"


def _text_errors(properties: dict[str, Any], path: str) -> Iterator[Message]:
    if not isinstance(properties.get("markdown"), str):
        yield f"{path}/markdown", "Should be a text"
    if properties.get("background", "solid") not in ("solid", "transparent"):
        yield f"{path}/background", "Should be one of solid, transparent"


def _log_errors(properties: dict[str, Any], path: str) -> Iterator[Message]:
    for name in ("query", "region"):
        if not isinstance(properties.get(name), str):
            yield f"{path}/{name}", "Should be a text"


def _alarm_errors(properties: dict[str, Any], path: str) -> Iterator[Message]:
    alarms = properties.get("alarms")
    if not isinstance(alarms, list) or not 1 <= len(alarms) <= 100:
        yield f"{path}/alarms", "Should be an array of 1 to 100 ARNs"
    elif not all(isinstance(arn, str) and ":alarm:" in arn for arn in alarms):
        yield f"{path}/alarms", "Should have ARNs of alarms"


_ERRORS: dict[str, Callable[[dict[str, Any], str], Iterator[Message]]] = {
    "metric": _metric_errors,
    "text": _text_errors,
    "log": _log_errors,
    "alarm": _alarm_errors,
}
