"""A simulation as a self-contained HTML page, with charts as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape

import numpy as np

from tritonstack.monitoring.page.axis import value_marks, value_text
from tritonstack.monitoring.page.plot import BOTTOM, COLOURS, HEADROOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH
from tritonstack.monitoring.page.style import STYLE
from tritonstack_capacity.simulation.answer import Answer
from tritonstack_capacity.simulation.answer_document import about, holding_sentence, sentences
from tritonstack_capacity.simulation.events import HIT
from tritonstack_capacity.simulation.sources import HOUR
from tritonstack_capacity.simulation.split import SplitAdvice
from tritonstack_capacity.simulation.trace import Floats

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class Chart:
    """What a chart shows.

    Attributes:
        key: unique on the page.
        title, unit: above it; the unit is that of the values.
        lines: label → points from left to right, at most four lines.
        across: what the horizontal axis is, below it.
        top: the greatest value shown; None: a little above the values.
        log_x, log_y: logarithmic axes: values of zero or less are left out.
        limit: a value with a dashed line, and its label.
    """

    key: str
    title: str
    unit: str
    lines: dict[str, Points]
    across: str = "minutes"
    top: float | None = None
    log_x: bool = False
    log_y: bool = False
    limit: tuple[float, str] | None = None

    def with_points(self) -> Chart:
        """Without the lines that have none."""
        return replace(self, lines={label: points for label, points in self.lines.items() if points})


class Scale:
    """From values to pixels."""

    def __init__(
        self, values: Sequence[float], *, low: float, high: float, log: bool, top: float | None, most: int = 5
    ) -> None:
        """``low`` and ``high``: pixels of the smallest and greatest value; ``top`` overrides the greatest.

        ``most``: steps between the marks of an axis that is not logarithmic.
        """
        self._low, self._high, self._log = low, high, log
        if log:
            least, greatest = min(values, default=1.0), max(values, default=10.0)
            first = math.floor(math.log10(least))
            last = max(math.ceil(math.log10(greatest) - 1e-9), first + 1)
            step = max(1, math.ceil((last - first) / 6))
            self.marks = [10.0**power for power in range(first, last + 1, step)]
            self._from, self._to = float(first), float(last)
            return
        whole = all(value == int(value) for value in values)
        self.marks = value_marks(max([*values, 0.0]) * HEADROOM if top is None else top, most=most, whole=whole)
        self._from, self._to = 0.0, self.marks[-1] if top is None else top

    def __call__(self, value: float) -> float:
        """The pixel, within the frame."""
        shown = math.log10(value) if self._log else value
        share = (shown - self._from) / (self._to - self._from)
        return self._low + min(max(share, 0.0), 1.0) * (self._high - self._low)


def svg(chart: Chart) -> str:
    """The SVG element; of a chart with a point at least."""
    lines = {label: _shown(points, chart) for label, points in chart.lines.items()}
    across = [x for points in lines.values() for x, _ in points]
    values = [y for points in lines.values() for _, y in points]
    if chart.limit is not None:
        values.append(chart.limit[0])
    end = None if chart.log_x else max(across, default=1.0)
    x = Scale(across, low=LEFT, high=WIDTH - RIGHT, log=chart.log_x, top=end, most=8)
    y = Scale(values, low=HEIGHT - BOTTOM, high=TOP, log=chart.log_y, top=chart.top)
    parts = [*_rows(y), *_columns(x, chart.across)]
    if chart.limit is not None:
        parts += _limit(y(chart.limit[0]), chart.limit[1])
    for colour, points in zip(COLOURS, lines.values(), strict=False):
        path = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in points)
        if len(points) == 1:
            [(at, value)] = points
            parts.append(f'<circle cx="{x(at):.1f}" cy="{y(value):.1f}" r="2.5" class="{colour}"/>')
        elif points:
            parts.append(f'<polyline points="{path}" class="{colour}"/>')
    label = escape(f"{chart.title}, {chart.unit}", quote=True)
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _shown(points: Points, chart: Chart) -> Points:
    return [(x, y) for x, y in points if (x > 0 or not chart.log_x) and (y > 0 or not chart.log_y)]


def _rows(y: Scale) -> Iterator[str]:
    for mark in y.marks:
        at = y(mark)
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>'
        yield f'<text class="mark" x="{LEFT - 6}" y="{at + 3.5:.1f}" text-anchor="end">{_mark_text(mark)}</text>'


def _columns(x: Scale, across: str) -> Iterator[str]:
    """Marks below; the axis' name stands at the right end, in the place of a mark."""
    edge = WIDTH - RIGHT
    room = edge - 6 * len(across) - 14
    for mark in x.marks:
        at = x(mark)
        yield f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{HEIGHT - BOTTOM}" y2="{HEIGHT - BOTTOM + 4}"/>'
        if at <= room:
            yield f'<text class="mark" x="{at:.1f}" y="{HEIGHT - 6}" text-anchor="middle">{_mark_text(mark)}</text>'
    yield f'<text class="mark" x="{edge}" y="{HEIGHT - 6}" text-anchor="end">{escape(across)}</text>'


def _mark_text(value: float) -> str:
    """Short enough for the space beside an axis."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= size:
            return f"{value / (1e3 if letter == 'k' else size):g}{letter}"
    return value_text(value)


def _limit(at: float, label: str) -> Iterator[str]:
    yield f'<line class="limit" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>'
    yield f'<text class="limit" x="{WIDTH - RIGHT - 2}" y="{at - 3:.1f}" text-anchor="end">{escape(label)}</text>'


OWN_STYLE = """
ul.says { margin: 10px 0 0; padding-left: 20px; } ul.says li { margin: 2px 0; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(135px, 1fr)); gap: 8px 12px;
           margin-top: 14px; }
.figures div { background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: 8px 11px; }
.sources { margin-top: 10px; font-size: 13px; }
.sources th, .sources td { text-align: left; white-space: normal; padding: 2px 14px 2px 0; vertical-align: top;
                           overflow-wrap: anywhere; width: auto !important; }
.figures b { display: block; font-size: 19px; font-weight: 600; } .figures span { color: var(--soft); font-size: 12px; }
"""
SHARES = (*(percent / 100 for percent in range(1, 100)), 0.995, 0.999, 0.9999, 1.0)


def simulation_page(found: Answer) -> str:
    """The whole document."""
    title = found.scenario.description or "A fleet, simulated"
    charts = [drawn for chart in _charts(found) if (drawn := chart.with_points()).lines]
    what = f"{escape(about(found))}<br>a simulation, not a measurement; seed {found.seed}"
    says = "".join(f"<li>{escape(line)}</li>" for line in (*sentences(found), holding_sentence(found)))
    assumed = "".join(f"<li>{escape(line)}</li>" for line in found.assumptions)
    return "".join(
        [
            '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title><style>{STYLE}{OWN_STYLE}</style></head><body><main>",
            f"<header><h1>{escape(title)}</h1><p>{what}</p></header>",
            f'<div class="figures">{_tiles(found)}</div>',
            f'<ul class="says">{says}</ul><div class="graphs">{"".join(_figure(chart) for chart in charts)}</div>',
            f'<h2>Assumed</h2><ul class="says">{assumed}</ul>',
            f"<h2>Where figures come from</h2>{_sources(found)}</main></body></html>\n",
        ]
    )


def _sources(found: Answer) -> str:
    rows = "".join(
        f"<tr><th>{escape(each.figure)}</th><td>{escape(each.value)}</td><td>{escape(each.origin)}</td></tr>"
        for each in found.sources
    )
    return f'<table class="sources">{rows}</table>'


def _tiles(found: Answer) -> str:
    calls, cost = found.calls, found.cost
    ratio = "-" if calls.hit_ratio is None else f"{100 * calls.hit_ratio:.1f} %"
    p95 = calls.everyone.percentiles.get(95)
    warm = calls.warm.percentiles.get(95)
    tiles = (
        ("hit ratio", ratio),
        ("cold starts", f"{calls.cold_starts:,}"),
        (f"loaded again within {found.loads.thrash_seconds:g} s", f"{found.loads.again:,}"),
        ("p95, all calls", "-" if p95 is None else f"{p95:,.0f} ms"),
        ("p95, loaded models", "-" if warm is None else f"{warm:,.0f} ms"),
        ("instances on average", f"{found.instances[1]:.2f}"),
        ("USD an hour", "unknown" if cost.mean_per_hour is None else f"{cost.mean_per_hour:,.2f}"),
        ("models on an instance", "-" if found.held is None or found.holding is None else f"{found.held[0]:,.0f}"),
    )
    return "".join(f"<div><b>{escape(value)}</b><span>{escape(name)}</span></div>" for name, value in tiles)


def _charts(found: Answer) -> list[Chart]:
    course = found.course
    limit = found.scenario.latency_limit_ms
    kept = found.happening.calls
    counted = found.trace.times >= found.scenario.warm_up_minutes * 60
    return [
        Chart(key="calls", title="Calls", unit="a minute", lines={"calls": _minutes(course.calls)}),
        Chart(key="hits", title="Hits", unit="percent of calls", lines={"hits": _minutes(course.hit_ratio)}, top=100.0),
        Chart(
            key="latency",
            title="Latency",
            unit="ms",
            lines={
                "all, 50 %": _minutes(course.median),
                "all, 95 %": _minutes(course.p95),
                "loaded models, 95 %": _minutes(course.warm_p95),
            },
            log_y=True,
            limit=None if limit is None else (limit, f"limit {limit:g} ms"),
        ),
        Chart(
            key="instances",
            title="Instances",
            unit="count",
            lines={"paid": _minutes(course.paid), "take calls": _minutes(course.serving)},
        ),
        Chart(
            key="loads",
            title="Loads and thrash",
            unit="a minute",
            lines={
                "loads": _minutes(course.loads),
                f"of models evicted in the last {found.loads.thrash_seconds:g} s": _minutes(course.thrash),
            },
        ),
        Chart(key="cost", title="Cost until then", unit="USD", lines={"cost": cost_over_time(found)}),
        Chart(key="held", title="Models on an instance", unit="mean", lines={"loaded": _minutes(course.held)}),
        Chart(
            key="distribution",
            title="Calls within a latency",
            unit="percent",
            lines={
                "all": _distribution(kept.latencies[counted]),
                "of loaded models": _distribution(kept.latencies[counted & (kept.outcomes == HIT)]),
            },
            across="ms",
            log_x=True,
            top=100.0,
        ),
        Chart(
            key="memory",
            title="Hits by size of an instance",
            unit="percent, estimated",
            lines={
                "hits": []
                if found.holding is None
                else [(scale, 100 * ratio) for scale, ratio in found.holding.by_memory]
            },
            across="times its size",
            top=100.0,
        ),
        Chart(
            key="popularity",
            title="Calls of the most called models",
            unit="percent of all calls",
            lines={"calls": _popularity(found.models.popularity)},
            across="models",
            log_x=len(found.models) > 20,
            top=100.0,
        ),
        _split_chart(found.split),
    ]


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


def _split_chart(advice: SplitAdvice | None) -> Chart:
    return Chart(
        key="split",
        title="Hits of two endpoints",
        unit="percent, estimated",
        lines={"hits": [] if advice is None else [(cut, 100 * ratio) for cut, ratio in advice.by_cut]},
        across="hot models",
        log_x=advice is not None and bool(advice.by_cut) and advice.by_cut[-1][0] > 20,
        top=100.0,
        limit=None if advice is None else (100 * advice.one, f"one endpoint {100 * advice.one:.1f} %"),
    )


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


def _figure(chart: Chart) -> str:
    return (
        f'<figure id="{chart.key}" data-points="{sum(map(len, chart.lines.values()))}">'
        f"<figcaption>{escape(chart.title)}<span>{escape(chart.unit)}</span></figcaption>{svg(chart)}{_legend(chart)}</figure>"
    )


def _legend(chart: Chart) -> str:
    """Names of the lines; a single line is named by the title."""
    if len(chart.lines) == 1:
        return ""
    rows = []
    for colour, (label, points) in zip(COLOURS, chart.lines.items(), strict=False):
        greatest = value_text(max(value for _, value in points)) if points and chart.across == "minutes" else ""
        cell = f"<td>at most {greatest}</td>" if greatest else "<td></td>"
        rows.append(f'<tr><th><i class="{colour}"></i>{escape(label)}</th>{cell}</tr>')
    return f"<table>{''.join(rows)}</table>"
