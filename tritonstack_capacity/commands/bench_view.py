"""The results of a bench as a table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

from tritonstack_capacity.bench.document import result_notes, where

if TYPE_CHECKING:
    from tritonstack_capacity.bench.document import BenchDocument, PointPart, ResultPart
    from tritonstack_capacity.bench.results_folder import ResultsFolder

WIDTH = 160


def show(document: BenchDocument, results: ResultsFolder, *, as_json: bool) -> None:
    """Print the table and where everything lies, or the document as JSON."""
    if as_json:
        click.echo(json.dumps(document.model_dump(mode="json"), indent=2, ensure_ascii=False))
        return
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=WIDTH)
    console.print(table(document))
    for result in document.results:
        for line in result_notes(result):
            console.print(line, soft_wrap=True)
    console.print(where(document), soft_wrap=True)
    console.print(f"{results.folder}: results.json, measurements.csv, index.html", soft_wrap=True)


def table(document: BenchDocument) -> Table:
    """A row for each load."""
    rule = document.settings["rule"]
    found = Table("configuration", "format", "load", title="Latency in ms, end to end", title_justify="left")
    for name in ("a minute", "p50", f"p{rule['percentile']:g}", "p99", "rounds", "Triton", "queue", "batch", "failed"):
        found.add_column(name, justify="right")
    for result in document.results:
        for point in result.points:
            found.add_row(*_row(result, point, percentile=f"{rule['percentile']:g}"))
    return found


def _row(result: ResultPart, point: PointPart, *, percentile: str) -> list[str]:
    values = point.all.percentiles_ms
    latency = [_number(values.get(share)) for share in ("50", percentile, "99")]
    width = point.per_minute.half_width
    share = "" if width is None or not point.per_minute.mean else f" ±{width / point.per_minute.mean * 100:.0f} %"
    server = point.server[0] if point.server else None
    inside = ["", "", ""] if server is None else [_number(server.request_ms), _number(server.queue_ms)]
    batch = [] if server is None else [f"{server.mean_batch:.1f}"]
    return [
        result.configuration,
        result.payload_format,
        point.load,
        f"{point.all.per_minute:,.0f}{share}",
        *latency,
        f"{len(point.rounds)}{' unstable' if len(point.rounds) > 1 and not point.stable else ''}",
        *inside,
        *batch,
        str(point.all.failed or ""),
    ]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f}" if value >= 10 else f"{value:.2f}"
