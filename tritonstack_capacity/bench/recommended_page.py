"""What Inference Recommender told, as one page: a point for each configuration and instance type."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from tritonstack.monitoring.page.axis import value_text
from tritonstack_capacity.bench.document import BenchDocument, ResultPart, result_notes, title
from tritonstack_capacity.bench.results_folder import Bar, Line, bars, figure, framed, legend, xy_plot

COLUMNS = ("configuration", "instance type", "instances", "a minute", "a minute each", "latency ms", "within the limit")

COMPLETED = "COMPLETED"
"""The status of a job that found what it was asked for."""


def is_recommended(document: BenchDocument) -> bool:
    """Whether the figures are Inference Recommender's: one load a result, and no percentiles."""
    return "recommender" in document.settings


def recommended_page(document: BenchDocument) -> str:
    """The whole document, whole or not."""
    state = "" if document.complete else " (not complete)"
    told = [document.started, "Measured by SageMaker Inference Recommender, at the most invocations that it found."]
    if document.local:
        told.append("On the local AWS: these figures are constructed. They say nothing of any instance.")
    return framed(
        title=f"Load test of environment {document.environment}{state}",
        told=told,
        figures=_figures(document),
        table=_table(document),
        notes=_notes(document),
    )


def _figures(document: BenchDocument) -> Iterator[str]:
    measured = [result for result in document.results if _rate(result) and _latency(result) is not None]
    if not measured:
        yield '<p class="note">Nothing was measured yet.</p>'
        return
    limit = _limit(document)
    colours = {name: number for number, name in enumerate(dict.fromkeys(each.configuration for each in measured))}
    points = [
        Line(
            label=_label(each),
            colour=colours[each.configuration],
            dash=0,
            points=[(_rate(each), _latency(each) or 0.0)],
        )
        for each in measured
    ]
    keys = [Line(label=name, colour=number, dash=0, points=()) for name, number in colours.items()]
    shown = "Latency against throughput"
    plot = xy_plot(points, title=shown, x_label="invocations a minute and instance", limit=limit)
    yield figure(shown, f"ms, limit {limit:g}", plot + legend(keys))
    shown = "Throughput of an instance"
    rates = [Bar(label=_label(each), colour=colours[each.configuration], value=_rate(each)) for each in measured]
    yield figure(shown, "invocations a minute", bars(rates, title=shown, unit=""))


def _table(document: BenchDocument) -> Iterator[str]:
    limit = _limit(document)
    yield '<section><h2>Every job</h2><div class="wide"><table><tr>'
    yield "".join(f"<th>{column}</th>" for column in COLUMNS)
    yield "</tr>"
    for result in document.results:
        latency = _latency(result)
        rate = _rate(result)
        within = "" if latency is None else "yes" if latency <= limit else "no"
        cells = [
            *(escape(result.configuration), escape(result.instance_type), str(result.instance_count)),
            *(value_text(rate * result.instance_count) if rate else "", value_text(rate) if rate else ""),
            *("" if latency is None else value_text(latency), within),
        ]
        yield f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
    yield "</table></div></section>"


def _notes(document: BenchDocument) -> Iterator[str]:
    for result in document.results:
        done = f"{title(result)}: {COMPLETED}"
        yield from (line for line in result_notes(result) if line != done)


def _limit(document: BenchDocument) -> float:
    return float(document.settings["stop"]["latency_ms"])


def _rate(result: ResultPart) -> float:
    """Invocations a minute and instance; nought where the job told none."""
    return result.points[0].all.per_minute / result.instance_count if result.points else 0.0


def _latency(result: ResultPart) -> float | None:
    """As it was told, of which share of the calls is not known."""
    told = result.points[0].latency_ms if result.points else None
    return None if told is None else told.mean


def _label(result: ResultPart) -> str:
    return f"{result.configuration}, {result.instance_type.removeprefix('ml.')}"
