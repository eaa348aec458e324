"""PutDashboard's refusals of a dashboard's body: everything but the widgets that this project's dashboards have.

A field or a type of widget that CloudWatch has and ``dashboard.json`` does not is refused by name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tritonstack.cloudformation.limits import exceeded
from tritonstack_local.emulator.cloudformation.property_schemas import schema_problems
from tritonstack_local.emulator.cloudwatch.metric_math import problem_with_period
from tritonstack_local.emulator.request_validation import data_beside

_COLUMNS = 24


def problems(body: str) -> list[str]:
    """Reasons to refuse a dashboard, each after the path of its place."""
    try:
        read = json.loads(body)
    except ValueError as error:
        return [f"/: The field DashboardBody must be a valid JSON object: {error}"]
    return (
        list(_wrong("body", read, ""))
        or _too_many(body)
        or [
            problem
            for index, widget in enumerate(read["widgets"])
            for problem in _widget_problems(widget, f"/widgets/{index}")
        ]
    )


def _too_many(body: str) -> list[str]:
    """Parts of a dashboard that exceed CloudWatch's quotas."""
    resource = {"Type": "AWS::CloudWatch::Dashboard", "Properties": {"DashboardBody": body}}
    return [f"/widgets: {each}" for each in exceeded({"Resources": {"": resource}}, size=0, stack="")]


def _wrong(schema: str, value: Any, path: str) -> Iterator[str]:
    schemas = data_beside(__file__, "dashboard.json")
    yield from schema_problems(schemas[schema], value, path, schemas)
    period = problem_with_period(value["period"]) if isinstance(value, dict) and "period" in value else None
    if period is not None:
        yield f"{path}/period: {period}"


def _widget_problems(widget: dict[str, Any], path: str) -> Iterator[str]:
    if ("x" in widget) != ("y" in widget):
        yield f"{path}: x and y are given both or not at all"
    if widget.get("x", 0) + widget.get("width", 0) > _COLUMNS:
        yield f"{path}: x and width reach beyond the {_COLUMNS} columns"
    properties, path = widget["properties"], f"{path}/properties"
    wrong = list(_wrong(widget["type"], properties, path))
    yield from wrong
    for index, metric in enumerate(properties.get("metrics", ()) if not wrong else ()):
        yield from _metric_problems(metric, f"{path}/metrics/{index}")


def _metric_problems(metric: list[Any], path: str) -> Iterator[str]:
    """One of ``metrics``: namespace, name, dimension names and values, and how it is rendered; or an expression."""
    names = [each for each in metric if isinstance(each, str)]
    rendering = metric[-1] if metric and isinstance(metric[-1], dict) else {}
    if "expression" in rendering:
        if names:
            yield f"{path}: an expression has rendering properties alone"
    elif len(names) < 2 or len(names) % 2 or [*names, *([rendering] if rendering else [])] != metric:
        yield f"{path}: must have a namespace, a metric's name, and pairs of dimension names and values"
    yield from _wrong("rendered", rendering, path)
