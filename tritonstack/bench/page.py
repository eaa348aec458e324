"""The results as one page: HTML with its style and its pictures inside, and nothing that is loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from tritonstack.bench.document import BenchDocument, PointPart, ResultPart
from tritonstack.bench.xy_plot import COLOURS, Line, bars, xy_plot
from tritonstack.observability.page.axis import value_text
from tritonstack.observability.page.style import STYLE

MORE_STYLE = """
:root { --c4: #a3194a; --c5: #00788a; --c6: #6b6f00; --c7: #555f6b; }
@media (prefers-color-scheme: dark) { :root { --c4: #f0709b; --c5: #43c3d6; --c6: #bfc43a; --c7: #9aa6b3; } }
.c4 { --own: var(--c4); } .c5 { --own: var(--c5); } .c6 { --own: var(--c6); } .c7 { --own: var(--c7); }
rect { fill: var(--own); }
.wide { background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: 9px 11px; margin-top: 10px;
        overflow-x: auto; }
.wide td, .wide th { padding: 3px 0 3px 16px; }
.wide td:first-child { color: var(--soft); }
.wide td.bad { color: var(--fault); }
"""
DRAWN = ("50", "90", "95", "99")
MARKS = [(float(place), f"p{share}") for place, share in enumerate(DRAWN)]


def page(document: BenchDocument) -> str:
    """The whole document, whole or not."""
    state = "" if document.complete else " (not complete)"
    title = f"Bench of environment {document.environment}{state}"
    told = document.machine
    where = f"{told['processor']}, {told['cores']} cores, {told['memory']}, load before {told['load_before']}"
    said = f"Served and called by {where}. No figure of a GPU." if document.local else f"Called from {where}."
    when = escape(f"{document.started}, commit {document.versions.get('commit', 'unknown')}")
    parts = [
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title><style>{STYLE}{MORE_STYLE}</style></head><body><main>",
        f"<header><h1>{escape(title)}</h1><p>{when}<br>{escape(said)}</p></header>",
        *_pictures(document),
        *_table(document),
        "</main></body></html>\n",
    ]
    return "".join(parts)


def _pictures(document: BenchDocument) -> Iterator[str]:
    results = [result for result in document.results if any(point.all.percentiles_ms for point in result.points)]
    if not results:
        yield '<p class="note">Nothing was answered yet.</p>'
        return
    percentile = f"{document.settings['rule']['percentile']:g}"
    yield '<section><div class="graphs">'
    curves = [
        Line(label=_name(result), colour=number, points=_curve(result, percentile))
        for number, result in enumerate(results)
    ]
    limit = document.settings["stop"]["latency_ms"]
    plot = xy_plot(curves, title="Latency against throughput", x_label="answers a minute", limit=limit)
    yield _figure("Latency against throughput", f"p{percentile}, ms", plot + _legend(curves))
    spread = [
        Line(label=_name(result), colour=number, points=_percentiles(best))
        for number, result in enumerate(results)
        if (best := _busiest(result)) is not None
    ]
    title = "Percentiles at the highest throughput"
    yield _figure(title, "ms", xy_plot(spread, title=title, x_label="percentile", x_marks=MARKS) + _legend(spread))
    if len(results) > 1:
        yield _figure(*_speed_ups(results))
    yield "</div></section>"


def _curve(result: ResultPart, percentile: str) -> list[tuple[float, float]]:
    points = [point.all for point in result.points]
    return [(one.per_minute, one.percentiles_ms[percentile]) for one in points if one.percentiles_ms]


def _percentiles(point: PointPart) -> list[tuple[float, float]]:
    return [(place, point.all.percentiles_ms[share]) for place, share in enumerate(DRAWN)]


def _busiest(result: ResultPart) -> PointPart | None:
    answered = [point for point in result.points if point.all.percentiles_ms]
    return max(answered, key=lambda point: point.all.per_minute, default=None)


def _speed_ups(results: Sequence[ResultPart]) -> tuple[str, str, str]:
    """The highest throughput of each, as so many times the first's."""
    best = [(result, busiest.all.per_minute) for result in results if (busiest := _busiest(result)) is not None]
    first = best[0][1]
    title = f"Throughput, times {_name(best[0][0])}'s"
    values = [(_name(result), rate / first if first else 0.0, number) for number, (result, rate) in enumerate(best)]
    return title, "", bars(values, title=title, unit=" times")


def _figure(title: str, unit: str, body: str) -> str:
    return f"<figure><figcaption>{escape(title)}<span>{escape(unit)}</span></figcaption>{body}</figure>"


def _legend(lines: Sequence[Line]) -> str:
    rows = "".join(f'<tr><th><i class="c{line.colour % COLOURS}"></i>{escape(line.label)}</th></tr>' for line in lines)
    return f"<table>{rows}</table>"


def _table(document: BenchDocument) -> Iterator[str]:
    percentile = f"{document.settings['rule']['percentile']:g}"
    names = ("configuration", "load", "a minute", "± %", "p50 ms", f"p{percentile} ms", "p99 ms", "rounds", "failed")
    inside = ("Triton ms", "queue ms", "compute ms", "batch")
    yield '<section><h2>Every load</h2><div class="wide"><table><tr>'
    yield "".join(f"<th>{name}</th>" for name in (*names, *inside))
    yield "</tr>"
    for result in document.results:
        for point in result.points:
            yield f"<tr>{''.join(_cells(result, point, percentile))}</tr>"
    yield "</table></div>"
    for result in document.results:
        if result.cold is not None and result.cold.milliseconds:
            times = ", ".join(value_text(value) for value in result.cold.milliseconds)
            yield f'<p class="note">{escape(_name(result))}: cold starts {times} ms</p>'
    yield "</section>"


def _cells(result: ResultPart, point: PointPart, percentile: str) -> Iterator[str]:
    values, rate = point.all.percentiles_ms, point.per_minute
    share = None if rate.half_width is None or not rate.mean else rate.half_width / rate.mean * 100
    numbers = [point.all.per_minute, share, *(values.get(name) for name in ("50", percentile, "99"))]
    yield f"<td>{escape(_name(result))}</td><td>{escape(point.load)}</td>"
    yield from (f"<td>{'' if value is None else value_text(value)}</td>" for value in numbers)
    unstable = len(point.rounds) > 1 and not point.stable
    yield f"<td>{len(point.rounds)}{', unstable' if unstable else ''}</td>"
    yield f'<td class="bad">{point.all.failed}</td>' if point.all.failed else "<td>0</td>"
    server = point.server[0] if point.server else None
    told = [] if server is None else [server.request_ms, server.queue_ms, server.compute_ms, server.mean_batch]
    yield from (f"<td>{value_text(value)}</td>" for value in told)


def _name(result: ResultPart) -> str:
    return f"{result.configuration}, {result.payload_format}"
