"""A simulation as a page: HTML with its style and charts inside, and nothing that is loaded from elsewhere."""

from __future__ import annotations

from html import escape

import numpy as np

from tritonstack.observability.page.axis import value_text
from tritonstack.observability.page.plot import COLOURS
from tritonstack.observability.page.style import STYLE
from tritonstack_capacity.simulation.answer import Answer
from tritonstack_capacity.simulation.chart import Chart, Points, svg
from tritonstack_capacity.simulation.fleet_cost import HOUR
from tritonstack_capacity.simulation.happening import HIT
from tritonstack_capacity.simulation.model_table import Floats
from tritonstack_capacity.simulation.split import SplitAdvice
from tritonstack_capacity.simulation.words import about, holding_sentence, sentences

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
