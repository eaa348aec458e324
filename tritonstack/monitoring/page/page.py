"""The page: HTML with its style and its pictures inside, and nothing that is loaded from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from tritonstack.monitoring.graph import Dashboard, Graph, Needs, Section
from tritonstack.monitoring.page.axis import value_text
from tritonstack.monitoring.page.plot import COLOURS, plot
from tritonstack.monitoring.page.samples import Lines, Span
from tritonstack.monitoring.page.states import AlarmState
from tritonstack.monitoring.page.style import STYLE

WITHOUT: dict[Needs, str] = {
    "gpu": "No data: the local AWS runs on the CPU, and writes no figures of a GPU.",
}
"""What the local AWS can never show, and why."""
RUNBOOK = re.compile(r"Runbook: (https://\S+)$")
"""How an alarm's description ends where its runbook has an address; a path in a repository is no link of a page."""
NOTHING = "No data in this time: SageMaker writes this figure while calls come."
NEEDED: dict[Needs, str] = {
    "gpu": "No data in this time: instances write this figure every minute while they run.",
    "codebuild": "No build ended in this time.",
    "unloading": "No model was unloaded in this time.",
}


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What a page shows.

    Attributes:
        samples: the lines of every graph, by the keys of its section and its own.
        span: the time that they are of.
        alarms: the states of alarms; none where there are no alarms.
        local: whether they are of the local AWS.
    """

    samples: Mapping[tuple[str, str], Lines]
    span: Span
    alarms: Sequence[AlarmState]
    local: bool


def page(dashboard: Dashboard, figures: Figures, *, refresh_seconds: int | None = None) -> str:
    """The whole document; a browser loads it anew after ``refresh_seconds``."""
    span = figures.span
    source = "the local AWS" if figures.local else f"CloudWatch, {dashboard.region}"
    shown = f"{span.start:%-d %b %Y %H:%M} to {span.end:%H:%M} UTC, a value for every {_duration(span.period)}"
    refresh = "" if refresh_seconds is None else f'<meta http-equiv="refresh" content="{refresh_seconds}">'
    parts = [
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"{refresh}<title>{escape(dashboard.name)}</title><style>{STYLE}</style></head><body><main>",
        f"<header><h1>{escape(dashboard.name)}</h1><p>{shown}<br>from {escape(source)}</p></header>",
        *_alarms(figures.alarms),
        *(text for section in dashboard.sections for text in _section(section, figures)),
        "</main></body></html>\n",
    ]
    return "".join(parts)


def _duration(seconds: int) -> str:
    minutes = seconds // 60
    return "minute" if minutes == 1 else f"{minutes} minutes"


def _alarms(alarms: Sequence[AlarmState]) -> Iterator[str]:
    if not alarms:
        return
    yield '<ul class="alarms" aria-label="Alarms">'
    order = {"ALARM": 0, "INSUFFICIENT_DATA": 1}
    for each in sorted(alarms, key=lambda alarm: order.get(alarm.state, 2)):
        state = {"ALARM": " ALARM", "INSUFFICIENT_DATA": " no data"}.get(each.state, " OK")
        text = f"{escape(each.name)}:{state}"
        runbook = RUNBOOK.search(each.description)
        if runbook is not None:
            text = f'<a href="{escape(runbook[1], quote=True)}">{text}</a>'
        yield f'<li class="{escape(each.state)}" title="{escape(each.description, quote=True)}">{text}</li>'
    yield "</ul>"


def _section(section: Section, figures: Figures) -> Iterator[str]:
    yield f"<section><h2>{escape(section.title)}</h2>"
    yield from (f'<p class="note">{escape(note)}</p>' for note in section.notes)
    yield '<div class="graphs">'
    for graph in section.graphs:
        yield _figure(section, graph, figures)
    yield "</div></section>"


def _figure(section: Section, graph: Graph, figures: Figures) -> str:
    lines = figures.samples[section.key, graph.key]
    has_data = any(lines.values())
    body = _legend(graph, lines) if has_data else ""
    picture = plot(graph, lines, figures.span) if has_data else f'<p class="empty">{escape(_why(graph, figures))}</p>'
    return (
        f'<figure id="{escape(section.key, quote=True)}-{graph.key}" data-points="{sum(map(len, lines.values()))}">'
        f"<figcaption>{escape(graph.title)}<span>{escape(graph.unit)}</span></figcaption>{picture}{body}</figure>"
    )


def _why(graph: Graph, figures: Figures) -> str:
    if figures.local and graph.needs in WITHOUT:
        return WITHOUT[graph.needs]
    return NOTHING if graph.needs is None else NEEDED[graph.needs]


def _legend(graph: Graph, lines: Lines) -> str:
    rows = ["<tr><th></th><th>last</th><th>mean</th><th>highest</th></tr>"]
    for colour, series in zip(COLOURS, graph.series, strict=False):
        values = [value for _, value in lines[series.key]]
        figures = [values[-1], sum(values) / len(values), max(values)] if values else []
        cells = "".join(f"<td>{value_text(value)}</td>" for value in figures) or '<td colspan="3">no data</td>'
        rows.append(f'<tr><th><i class="{colour}"></i>{escape(series.label)}</th>{cells}</tr>')
    return f"<table>{''.join(rows)}</table>"
