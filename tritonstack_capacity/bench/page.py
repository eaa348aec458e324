"""The results as one page: HTML with its style and its pictures inside, and nothing that is loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from tritonstack.observability.page.axis import value_text
from tritonstack.observability.page.style import STYLE
from tritonstack_capacity.bench.document import BenchDocument, IntervalPart, PointPart, ResultPart
from tritonstack_capacity.bench.pictures import name, pictures
from tritonstack_capacity.bench.result_notes import result_notes, where

MORE_STYLE = """
:root { --c4: #a3194a; --c5: #00788a; --c6: #6b6f00; --c7: #555f6b; }
@media (prefers-color-scheme: dark) { :root { --c4: #f0709b; --c5: #43c3d6; --c6: #bfc43a; --c7: #9aa6b3; } }
.c4 { --own: var(--c4); } .c5 { --own: var(--c5); } .c6 { --own: var(--c6); } .c7 { --own: var(--c7); }
polyline.d1 { stroke-dasharray: 6 3; } polyline.d2 { stroke-dasharray: 2 2.5; }
polyline.d3 { stroke-dasharray: 8 3 2 3; }
rect { fill: var(--own); }
.legend { display: flex; flex-wrap: wrap; gap: 2px 14px; margin: 6px 0 0; padding: 0; list-style: none;
          font-size: 12px; color: var(--soft); }
.legend li, .note { overflow-wrap: anywhere; }
svg.key { display: inline-block; width: 26px; height: 8px; margin: 0 6px 0 0; vertical-align: middle; }
.wide { background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: 9px 11px; margin-top: 10px;
        overflow-x: auto; }
.wide table { width: auto; font-variant-numeric: tabular-nums; }
.wide td, .wide th { padding: 3px 0 3px 18px; }
.wide td:first-child, .wide th:first-child { padding-left: 0; width: auto; }
.wide td:nth-child(2), .wide th:nth-child(2) { text-align: left; }
.wide tr.first td { border-top: 1px solid var(--line); }
.wide td.bad { color: var(--fault); }
.notes { margin: 10px 0 0; padding-left: 18px; color: var(--soft); font-size: 13px; overflow-wrap: anywhere; }
"""


def page(document: BenchDocument) -> str:
    """The whole document, whole or not."""
    notes = [line for result in document.results for line in result_notes(result)]
    when = f"{document.started}, commit {document.versions.get('commit', 'unknown')}"
    return framed(
        title=f"Bench of environment {document.environment}{'' if document.complete else ' (not complete)'}",
        told=(when, where(document)),
        figures=pictures(document),
        table=_table(document),
        notes=notes,
    )


def framed(
    *, title: str, told: Iterable[str], figures: Iterable[str], table: Iterable[str], notes: Iterable[str]
) -> str:
    """A page around figures and a table, which are HTML; ``told`` stands below the title, ``notes`` at the end."""
    lines = "".join(f"<li>{escape(line)}</li>" for line in notes)
    parts = [
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title><style>{STYLE}{MORE_STYLE}</style></head><body><main>",
        f"<header><h1>{escape(title)}</h1><p>{'<br>'.join(map(escape, told))}</p></header>",
        '<section><div class="graphs">',
        *figures,
        "</div></section>",
        *table,
        f'<ul class="notes">{lines}</ul>' if lines else "",
        "</main></body></html>\n",
    ]
    return "".join(parts)


def _table(document: BenchDocument) -> Iterator[str]:
    percentile = f"{document.settings['rule']['percentile']:g}"
    names = ("configuration", "load", "a minute", "± %", "p50 ms", f"p{percentile} ms", "± %", "p99 ms", "rounds")
    more = ("failed", "Triton ms", "queue ms", "compute ms", "batch")
    yield '<section><h2>Every load</h2><div class="wide"><table><tr>'
    yield "".join(f"<th>{name}</th>" for name in (*names, *more))
    yield "</tr>"
    for result in document.results:
        for number, point in enumerate(result.points):
            begins = "" if number else ' class="first"'
            yield f"<tr{begins}>{''.join(_cells(document, result, point, percentile))}</tr>"
    yield "</table></div></section>"


def _cells(document: BenchDocument, result: ResultPart, point: PointPart, percentile: str) -> Iterator[str]:
    values = point.all.percentiles_ms
    numbers = [
        *(point.all.per_minute, _spread(point.per_minute), values.get("50")),
        *(values.get(percentile), _spread(point.latency_ms), values.get("99")),
    ]
    yield f"<td>{escape(name(document.results, result))}</td><td>{escape(point.load)}</td>"
    yield from (f"<td>{'' if value is None else value_text(value)}</td>" for value in numbers)
    unstable = len(point.rounds) > 1 and not point.stable
    yield f"<td>{len(point.rounds)}{', unstable' if unstable else ''}</td>"
    yield f'<td class="bad">{point.all.failed}</td>' if point.all.failed else "<td>0</td>"
    server = point.server[0] if point.server else None
    told = [] if server is None else [server.request_ms, server.queue_ms, server.compute_ms, server.mean_batch]
    yield from (f"<td>{value_text(value)}</td>" for value in told)


def _spread(interval: IntervalPart | None) -> float | None:
    """Half the width of the confidence interval, per cent of the mean."""
    if interval is None or interval.half_width is None or not interval.mean:
        return None
    return round(interval.half_width / interval.mean * 100, 1)
