"""A simulation as an HTML page with charts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from tritonstack.pages.charts import Chart, Line, Points, line_chart, linear_axis, log_axis
from tritonstack.pages.page import Figure, Page, Section, Table, render
from tritonstack_capacity.simulation.answer import Answer
from tritonstack_capacity.simulation.answer_document import about, holding_sentence, sentences
from tritonstack_capacity.simulation.events import HIT
from tritonstack_capacity.simulation.sources import HOUR
from tritonstack_capacity.simulation.trace import Floats

SHARES = (*(percent / 100 for percent in range(1, 100)), 0.995, 0.999, 0.9999, 1.0)
"""Of calls, in the chart of their latencies."""


def simulation_page(found: Answer) -> str:
    """The whole document."""
    rows = [(each.figure, each.value, each.origin) for each in found.sources]
    table = Table(columns=("figure", "value", "from"), groups=[rows], left=3)
    return render(
        Page(
            title=found.scenario.description or "A fleet, simulated",
            lines=(about(found), f"a simulation, not a measurement; seed {found.seed}"),
            sections=(
                Section(tiles=tuple(_tiles(found))),
                Section(items=(*sentences(found), holding_sentence(found))),
                Section(figures=[each for each in _figures(found) if each.points]),
                Section(title="Assumed", items=found.assumptions),
                Section(title="Where figures come from", table=table),
            ),
        )
    )


def _tiles(found: Answer) -> Iterator[tuple[str, str]]:
    calls, cost = found.calls, found.cost
    p95, warm = calls.everyone.percentiles.get(95), calls.warm.percentiles.get(95)
    yield "-" if calls.hit_ratio is None else f"{100 * calls.hit_ratio:.1f} %", "hit ratio"
    yield f"{calls.cold_starts:,}", "cold starts"
    yield f"{found.loads.again:,}", f"loaded again within {found.loads.thrash_seconds:g} s"
    yield "-" if p95 is None else f"{p95:,.0f} ms", "p95, all calls"
    yield "-" if warm is None else f"{warm:,.0f} ms", "p95, loaded models"
    yield f"{found.instances[1]:.2f}", "instances on average"
    yield "unknown" if cost.mean_per_hour is None else f"{cost.mean_per_hour:,.2f}", "USD an hour"
    held = "-" if found.held is None or found.holding is None else f"{found.held[0]:,.0f}"
    yield held, "models on an instance"


def _figures(found: Answer) -> Iterator[Figure]:
    course, limit = found.course, found.scenario.latency_limit_ms
    yield _figure("calls", "Calls", "a minute", {"calls": course.calls})
    yield _figure("hits", "Hits", "percent of calls", {"hits": course.hit_ratio}, top=100.0)
    yield _figure(
        "latency",
        "Latency",
        "ms",
        {"all, p50": course.median, "all, p95": course.p95, "loaded models, p95": course.warm_p95},
        log_y=True,
        limit=None if limit is None else (limit, f"limit {limit:g} ms"),
    )
    yield _figure("instances", "Instances", "count", {"paid": course.paid, "take calls": course.serving})
    again = f"of models evicted in the last {found.loads.thrash_seconds:g} s"
    yield _figure("loads", "Loads and thrash", "a minute", {"loads": course.loads, again: course.thrash})
    yield _figure("cost", "Cost until then", "USD", {"cost": cost_over_time(found)})
    yield _figure("held", "Models on an instance", "mean", {"loaded": course.held})
    kept = found.happening.calls
    counted = found.trace.times >= found.scenario.warm_up_minutes * 60
    yield _figure(
        "distribution",
        "Calls within a latency",
        "percent",
        {
            "all": _distribution(kept.latencies[counted]),
            "of loaded models": _distribution(kept.latencies[counted & (kept.outcomes == HIT)]),
        },
        across="ms",
        log_x=True,
        top=100.0,
    )
    if found.holding is not None:
        by_size = [(scale, 100 * ratio) for scale, ratio in found.holding.by_memory]
        title = "Hits by size of an instance"
        yield _figure("memory", title, "percent, estimated", {"hits": by_size}, across="times its size", top=100.0)
    title = "Calls of the most called models"
    shares = _popularity(found.models.popularity)
    large = len(found.models) > 20
    yield _figure(
        "popularity", title, "percent of all calls", {"calls": shares}, across="models", log_x=large, top=100.0
    )
    if found.split is not None:
        by_cut = [(float(cut), 100 * ratio) for cut, ratio in found.split.by_cut]
        one = 100 * found.split.one
        yield _figure(
            "split",
            "Hits of two endpoints",
            "percent, estimated",
            {"hits": by_cut},
            across="hot models",
            log_x=bool(by_cut) and by_cut[-1][0] > 20,
            top=100.0,
            limit=(one, f"one endpoint {one:.1f} %"),
        )


def _figure(
    key: str,
    title: str,
    unit: str,
    lines: Mapping[str, Points],
    *,
    across: str = "minutes",
    top: float | None = None,
    log_x: bool = False,
    log_y: bool = False,
    limit: tuple[float, str] | None = None,
) -> Figure:
    """Lines without points are left out. Points over time have seconds, and are shown in minutes."""
    drawn = [
        Line(label=label, points=_minutes(points) if across == "minutes" and key != "cost" else points, colour=number)
        for number, (label, points) in enumerate(lines.items())
        if points
    ]
    if not drawn:
        return Figure(title=title, unit=unit, key=key, points=0)
    values = [y for line in drawn for _, y in line.points] + ([] if limit is None else [limit[0]])
    places = [x for line in drawn for x, _ in line.points]
    chart = Chart(
        title=title,
        unit=unit,
        lines=drawn,
        x=log_axis(places, label=across) if log_x else linear_axis(places, top=max(places), most=8, label=across),
        y=log_axis(values) if log_y else linear_axis(values, top=top),
        limits=() if limit is None else (limit,),
    )
    return Figure(
        title=title,
        unit=unit,
        key=key,
        picture=line_chart(chart),
        points=sum(len(line.points) for line in drawn),
        legend=drawn if len(lines) > 1 else (),
    )


def cost_over_time(found: Answer) -> Points:
    """(Minute, USD until then), where the number of instances changes; empty where the price is unknown."""
    price, paid = found.cost.usd_per_hour, found.course.paid
    if price is None:
        return []
    total, points = 0.0, [(0.0, 0.0)]
    for (start, count), (end, _) in zip(paid[::2], paid[1::2], strict=True):
        total += price * count * (end - start) / HOUR
        points.append((end / 60, total))
    return points


def _minutes(points: Points) -> Points:
    return [(seconds / 60, value) for seconds, value in points]


def _distribution(latencies: Floats) -> Points:
    if not len(latencies):
        return []
    values = np.quantile(latencies, SHARES, method="inverted_cdf") * 1000
    return [(float(value), 100 * share) for value, share in zip(values, SHARES, strict=True)]


def _popularity(shares: Floats) -> Points:
    together = np.cumsum(np.sort(shares)[::-1]) * 100
    places = sorted({int(place) for place in np.geomspace(1, len(together), 60)})
    return [(float(place), float(together[place - 1])) for place in places]
