"""The dashboard of an environment: its sections, and its body as CloudWatch takes it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tritonstack import naming
from tritonstack.config import Environment
from tritonstack.monitoring.graphs import (
    BuildProjects,
    Dashboard,
    Graph,
    Section,
    Variant,
    build_graphs,
    enhanced_graphs,
    fleet_graphs,
    instance_graphs,
    loading_graphs,
    request_graphs,
    variants_of,
)
from tritonstack.monitoring.parts import observed_parts

BUILDS = "builds of the environment"
"""The key of that section; no endpoint's name has a space."""


def dashboard_of(environment: Environment, *, projects: BuildProjects | None) -> Dashboard:
    """The dashboard of an environment. ``projects``: of its builds stack; None without one."""
    sections = [
        _endpoint_section(variant) for each in environment.endpoints for variant in variants_of(environment, each)
    ]
    if projects is not None:
        note = "Builds that deployments start. Engines that SageMaker Processing builds count in their archive's build."
        graphs = tuple(build_graphs(projects))
        sections.append(Section(key=BUILDS, title="Builds", notes=(note,), graphs=graphs))
    return Dashboard(
        name=naming.dashboard(environment.environment), region=environment.region, sections=tuple(sections)
    )


def dashboards_of(environment: Environment, *, projects: BuildProjects | None) -> tuple[Dashboard, ...]:
    """The same as CloudWatch gets it: a dashboard for each observability stack, the builds on the first."""
    whole = dashboard_of(environment, projects=projects)
    sections = {each.key: each for each in whole.sections}
    found = []
    for number, endpoints in enumerate(observed_parts(environment), start=1):
        variants = (each for endpoint in endpoints for each in variants_of(environment, endpoint))
        keys = [f"{each.settings.name}{each.label}" for each in variants]
        if number == 1 and BUILDS in sections:
            keys.append(BUILDS)
        name = naming.dashboard(environment.environment, part=number)
        found.append(replace(whole, name=name, sections=tuple(sections[key] for key in keys)))
    return tuple(found)


def _endpoint_section(variant: Variant) -> Section:
    settings = variant.settings
    graphs = (
        *request_graphs(variant),
        *loading_graphs(variant),
        *instance_graphs(variant),
        *enhanced_graphs(variant),
        *fleet_graphs(variant),
    )
    types = ", else ".join(settings.types)
    title = f"{variant.subject}: {settings.mode}, {types}, Triton {settings.release}"
    return Section(key=f"{settings.name}{variant.label}", title=title, notes=tuple(_notes(variant)), graphs=graphs)


def _notes(variant: Variant) -> Iterator[str]:
    settings = variant.settings
    if settings.variants:
        share = f"{100 * variant.share:.3g} % of the requests by weight"
        yield f"Variant {settings.variant_name}: {settings.models[0]}, {share}."
    types = settings.types
    if variant.price is None:
        yield (
            f"No cost: the price of {' or '.join(types)} in this region is unknown. Read it from AWS with "
            f"`tritonstack capacity prices update`, or set `prices: {{{types[0]}: …}}` in the "
            "environment's file."
        )
    elif variant.pool_prices:
        prices = ", ".join(f"{usd:g} ({name})" for name, usd in variant.pool_prices)
        yield (
            f"Cost: {prices} USD per hour and instance ({variant.price.short}), as AWS's capacity "
            "decides which types serve. Instances and cost are known only while requests arrive."
        )
    else:
        yield (
            f"Cost: {variant.price.usd_per_hour:g} USD per hour and instance ({variant.price.short}). Instances and "
            "cost are known only while requests arrive."
        )
    if settings.multi_model and not variant.has_cache:
        yield "No hit ratio and no loaded models: the model cache is disabled, so each request loads its model."
    if settings.instance.gpu_count > 1:
        yield (
            f"SageMaker reports the sum over the {settings.instance.gpu_count} GPUs of an instance; the graphs show "
            "their average, in which one full GPU may hide"
            + (": the graphs of each GPU show it." if variant.enhanced else ".")
        )


# The body (CloudWatch API reference, "Dashboard body structure and syntax").
COLUMNS, WIDTH, HEIGHT, TITLE_HEIGHT = 24, 8, 6, 2


def dashboard_body(dashboard: Dashboard) -> str:
    """The body as JSON text, the same bytes for the same definition."""
    widgets: list[dict[str, Any]] = []
    top = 0
    for section in dashboard.sections:
        text = "\n".join([f"## {section.title}", " ".join(section.notes)])
        place = {"x": 0, "y": top, "width": COLUMNS, "height": TITLE_HEIGHT}
        widgets.append({"type": "text", **place, "properties": {"markdown": text}})
        top += TITLE_HEIGHT
        for number, graph in enumerate(section.graphs):
            row, column = divmod(number, COLUMNS // WIDTH)
            place = {"x": column * WIDTH, "y": top + row * HEIGHT, "width": WIDTH, "height": HEIGHT}
            widgets.append({"type": "metric", **place, "properties": _properties(graph, region=dashboard.region)})
        top += -(-len(section.graphs) // (COLUMNS // WIDTH)) * HEIGHT
    return json.dumps({"periodOverride": "auto", "widgets": widgets}, ensure_ascii=False, separators=(",", ":"))


def _properties(graph: Graph, *, region: str) -> dict[str, Any]:
    axis: dict[str, Any] = {"label": graph.unit, "min": 0, "showUnits": False}
    if graph.maximum is not None:
        axis["max"] = graph.maximum
    properties: dict[str, Any] = {
        "title": graph.title,
        "view": "timeSeries",
        "stacked": False,
        "region": region,
        "period": graph.period,
        "yAxis": {"left": axis},
        "metrics": _metrics(graph),
    }
    if graph.limits:
        lines = [{"label": each.label, "value": each.value} for each in graph.limits]
        properties["annotations"] = {"horizontal": lines}
    return properties


def _metrics(graph: Graph) -> list[list[Any]]:
    """Rows of the widget: metrics first, visible only where they are lines themselves; then expressions."""
    series = graph.series
    expressions = {each.key: each.text(period=graph.period) for each in series}
    plain = {each.key: each.label for each in series if expressions[each.key] is None}
    metrics = {name: metric for each in series for name, metric in each.metrics.items()}
    rows: list[list[Any]] = []
    for name, metric in metrics.items():
        dimensions = [part for pair in metric.dimensions for part in pair]
        shown = {"label": plain[name]} if name in plain else {"visible": False}
        rows.append([metric.namespace, metric.name, *dimensions, {"id": name, "stat": metric.statistic, **shown}])
    for each in series:
        if each.key not in plain:
            rows.append([{"id": each.key, "label": each.label, "expression": expressions[each.key]}])
    return rows
