"""What PutDashboard refuses of a dashboard's body.

Source: CloudWatch API reference, "Dashboard Body Structure and Syntax". Checked are the widgets' common fields and what
each type requires; of fields that a type does not know CloudWatch only warns, and so does this.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

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
Check = tuple[Callable[[Any], bool], str]
"""Whether a value is right, and the sentence where it is not."""


def _one_of(*allowed: str) -> Check:
    return lambda value: value in allowed, f"Should be one of {', '.join(allowed)}"


def _from(low: int, high: int | None = None) -> Check:
    sentence = f"Should be an integer from {low}" + (f" to {high}" if high else "")
    return lambda value: _is_between(value, low, high), sentence


def _is_between(value: Any, low: int, high: int | None = None) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value and (high is None or value <= high)


def _are_alarms(value: Any) -> bool:
    texts = isinstance(value, list) and 1 <= len(value) <= 100
    return texts and all(isinstance(arn, str) and ":alarm:" in arn for arn in value)


_PERIOD: Check = (
    lambda value: _is_between(value, 1) and (value in (1, 5, 10, 20, 30) or value % 60 == 0),
    "Should be 1, 5, 10, 20, 30, or a multiple of 60",
)
_TEXT: Check = (lambda value: isinstance(value, str), "Should be a text")
_GRID = {"x": _from(0, _COLUMNS - 1), "y": _from(0), "width": _from(1, _COLUMNS), "height": _from(1, _MOST_HEIGHT)}
_REQUIRED: dict[str, dict[str, Check]] = {
    "text": {"markdown": _TEXT},
    "log": {"query": _TEXT, "region": _TEXT},
    "alarm": {"alarms": (_are_alarms, "Should be an array of 1 to 100 ARNs of alarms")},
}
_OPTIONAL: dict[str, dict[str, Check]] = {
    "metric": {"view": _one_of(*_VIEWS), "period": _PERIOD},
    "text": {"background": _one_of("solid", "transparent")},
}


def problems(body: str) -> tuple[list[Message], list[Message]]:
    """Errors, for which a dashboard is refused, and warnings."""
    try:
        read = json.loads(body)
    except ValueError as error:
        return [("/", f"The field DashboardBody must be a valid JSON object: {error}")], []
    if not isinstance(read, dict) or not isinstance(read.get("widgets"), list):
        return [("/widgets", "The dashboard body must have an array 'widgets'")], []
    errors = list(_wrong(read, {"periodOverride": _one_of("auto", "inherit")}, ""))
    if len(read["widgets"]) > _MOST_WIDGETS:
        errors.append(("/widgets", f"A dashboard has at most {_MOST_WIDGETS} widgets"))
    warnings = list(_unknown(read, _BODY, ""))
    for index, widget in enumerate(read["widgets"]):
        path = f"/widgets/{index}"
        if not isinstance(widget, dict):
            errors.append((path, "Should be an object"))
            continue
        errors += _widget_errors(widget, path)
        warnings += _unknown(widget, _WIDGET, path)
        properties, known = widget.get("properties"), _KNOWN.get(str(widget.get("type")))
        if known and isinstance(properties, dict):
            warnings += _unknown(properties, known, f"{path}/properties")
    return errors, warnings


def _wrong(given: dict[str, Any], checks: dict[str, Check], path: str, *, required: bool = False) -> Iterator[Message]:
    for name, (is_right, sentence) in checks.items():
        if (required or name in given) and not is_right(given.get(name)):
            yield f"{path}/{name}", sentence


def _unknown(given: dict[str, Any], known: tuple[str, ...], path: str) -> Iterator[Message]:
    yield from ((f"{path}/{name}", "Should NOT have this additional property") for name in given if name not in known)


def _widget_errors(widget: dict[str, Any], path: str) -> Iterator[Message]:
    kind = widget.get("type")
    yield from _wrong(widget, {"type": _one_of(*_KNOWN, *_OTHERS)}, path, required=True)
    yield from _wrong(widget, _GRID, path)
    if ("x" in widget) != ("y" in widget):
        yield path, "x and y are given both or not at all"
    right = widget.get("x", 0) + widget.get("width", 0) if not any(_wrong(widget, _GRID, path)) else 0
    if right > _COLUMNS:
        yield path, f"x and width reach beyond the {_COLUMNS} columns"
    properties = widget.get("properties")
    if not isinstance(properties, dict):
        yield f"{path}/properties", "Should be an object"
        return
    path = f"{path}/properties"
    yield from _wrong(properties, _REQUIRED.get(str(kind), {}), path, required=True)
    yield from _wrong(properties, _OPTIONAL.get(str(kind), {}), path)
    if kind == "metric":
        yield from _metric_errors(properties, path)


def _metric_errors(properties: dict[str, Any], path: str) -> Iterator[Message]:
    annotations, metrics = properties.get("annotations"), properties.get("metrics")
    if metrics is None and not (isinstance(annotations, dict) and "alarms" in annotations):
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
    yield from _wrong(rendering, {"period": _PERIOD}, path)
