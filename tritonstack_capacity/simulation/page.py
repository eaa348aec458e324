"""A simulation as an HTML page with charts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from tritonstack.pages.charts import TIME_STEPS, Axis, Chart, Line, Points, line_chart, linear_axis, mark_text
from tritonstack.pages.page import Figure, Page, Section, render
from tritonstack_capacity.simulation.hit_ratio import SIZES
from tritonstack_capacity.simulation.report import about, sentences
from tritonstack_capacity.simulation.result import SimulationResult

ESTIMATED = (
    "Estimated from the models' rates, without a replay (Che's approximation of a least-recently-used cache): a model "
    "stays loaded for the same time after its last request, the time in which the memory fills; loads take no time."
)


def simulation_page(found: SimulationResult) -> str:
    """The whole document."""
    return render(
        Page(
            title=found.scenario.description or "A fleet, simulated",
            lines=(about(found), f"a simulation, not a measurement; seed {found.seed}"),
            sections=(
                Section(tiles=tuple(_tiles(found))),
                Section(items=sentences(found)),
                Section(figures=[each for each in _figures(found) if each.points]),
                Section(title="Assumed", items=found.assumptions),
            ),
        )
    )


def _tiles(found: SimulationResult) -> Iterator[tuple[str, str]]:
    calls, cost = found.calls, found.cost
    p95, warm = calls.everyone.percentiles.get(95), calls.warm.percentiles.get(95)
    yield "-" if calls.hit_ratio is None else f"{100 * calls.hit_ratio:.1f} %", "hit ratio"
    yield f"{calls.cold_starts:,}", "cold starts"
    yield f"{found.loads.again:,}", f"loaded again within {found.loads.thrash_seconds:g} s"
    yield "-" if p95 is None else f"{p95:,.0f} ms", "p95, all requests"
    yield "-" if warm is None else f"{warm:,.0f} ms", "p95, loaded models"
    yield f"{found.instances[1]:.2f}", "instances on average"
    yield "unknown" if cost.mean_per_hour is None else f"{cost.mean_per_hour:,.2f}", "USD an hour"
    yield "-" if found.held is None else f"{found.held[0]:,.0f}", "models on an instance"


def _figures(found: SimulationResult) -> Iterator[Figure]:
    course, limit = found.course, found.scenario.latency_limit_ms
    yield _figure("calls", "Requests (Invocations)", "a minute", {"requests": course.calls_per_minute})
    yield _figure("hits", "Hits (ModelCacheHit)", "percent of requests", {"hits": course.hit_percent}, top=100.0)
    yield _figure(
        "latency",
        "Latency",
        "ms",
        {"all, p50": course.p50_ms, "all, p95": course.p95_ms, "loaded models, p95": course.warm_p95_ms},
        log_y=True,
        limit=None if limit is None else (limit, f"limit {limit:,g} ms"),
    )
    yield _figure("instances", "Instances", "count", {"paid": course.paid, "take requests": course.serving})
    again = f"of models evicted in the last {found.loads.thrash_seconds:g} s"
    yield _figure(
        "loads",
        "Loads and thrash",
        "a minute",
        {"loads": course.loads_per_minute, again: course.loads_again_per_minute},
    )
    yield _figure("held", "Models on an instance (LoadedModelCount)", "mean", {"loaded": course.models_held})
    if found.steady is not None:
        by_size = [(size, 100 * ratio) for size, ratio in found.steady.by_size]
        simulated = found.calls.hit_ratio
        yield _figure(
            "sizes",
            "Hits by size of an instance",
            "percent, estimated",
            {"hits": by_size},
            x=_sizes_axis(),
            top=100.0,
            limit=None if simulated is None else (100 * simulated, f"simulated {100 * simulated:.1f} % at 1"),
            note=ESTIMATED,
        )
    if found.split is not None:
        one = 100 * found.split.one
        hits = [(float(each.hot_models), 100 * each.hit_ratio) for each in found.split.splits]
        label, places = "hot models", [place for place, _ in hits]
        yield _figure(
            "split",
            "Hits of two endpoints",
            "percent, estimated",
            {"hits": hits},
            x=(log_axis if len(found.models) > 20 else linear_axis)(places, label=label),
            top=100.0,
            limit=(one, f"one endpoint {one:.1f} %"),
            note="Estimated as hits by size are.",
        )


def _sizes_axis() -> Axis:
    """The estimated sizes, of which those that are powers of two are marked."""
    marks = [(size, mark_text(size)) for size in SIZES if math.log2(size).is_integer()]
    return Axis(least=SIZES[0], greatest=SIZES[-1], marks=marks, label="times its size", log=True)


def _figure(
    key: str,
    title: str,
    unit: str,
    lines: Mapping[str, Points],
    *,
    x: Axis | None = None,
    top: float | None = None,
    log_y: bool = False,
    limit: tuple[float, str] | None = None,
    note: str = "",
) -> Figure:
    """Lines without points are left out. Without an axis ``x`` points have seconds, and are shown in minutes."""
    unit_of_x = 60 if x is None else 1
    drawn = [
        Line(label=label, points=[(x / unit_of_x, y) for x, y in points], colour=number)
        for number, (label, points) in enumerate(lines.items())
        if points
    ]
    if not drawn:
        return Figure(title=title, unit=unit, key=key, points=0)
    values = [y for line in drawn for _, y in line.points] + ([] if limit is None else [limit[0]])
    chart = Chart(
        title=title,
        unit=unit,
        lines=drawn,
        x=x or minutes_axis(max(place for line in drawn for place, _ in line.points)),
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
        note=note,
    )


MOST_LOG_MARKS = 9
BEYOND = 0.05
"""Of a step: so little beyond the last mark is drawn at the edge."""


def log_axis(values: Iterable[float], *, label: str = "") -> Axis:
    """From the power of ten below the least value to the one above the greatest; at most 9 marks."""
    found = [value for value in values if value > 0] or [1.0, 10.0]
    first = math.floor(math.log10(min(found)))
    last = max(math.ceil(math.log10(max(found)) - 1e-9), first + 1)
    step = 1 if last - first < MOST_LOG_MARKS else math.ceil((last - first) / 6)
    shown = [(10.0**power, "1k" if power == 3 else mark_text(10.0**power)) for power in range(first, last + 1, step)]
    return Axis(least=10.0**first, greatest=10.0**last, marks=shown, label=label, log=True)


def minutes_axis(end: float, *, most: int = 8) -> Axis:
    """Minutes from 0 to the round duration at or after ``end``, which is marked."""
    steps = [seconds / 60 for seconds in TIME_STEPS]
    step = next((each for each in steps if end / each <= most + BEYOND), steps[-1])
    marks = [step * number for number in range(max(1, math.ceil(end / step - BEYOND)) + 1)]
    return Axis(least=0.0, greatest=marks[-1], marks=[(mark, mark_text(mark)) for mark in marks], label="minutes")
