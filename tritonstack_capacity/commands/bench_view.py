"""Results of ``tritonstack capacity bench`` on the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from tritonstack.cli.conventions import result_console
from tritonstack_capacity.bench.document import notes, where
from tritonstack_capacity.bench.page import results_table
from tritonstack_capacity.commands import text_table

if TYPE_CHECKING:
    from tritonstack_capacity.bench.document import BenchDocument


def show(document: BenchDocument, folder: Path) -> None:
    """Print the table of the page, its notes, and where everything lies."""
    console, shown = result_console(), results_table(document)
    rows = [
        [cell.striptags() if isinstance(cell, Markup) else cell for cell in row]
        for group in shown.groups
        for row in group
    ]
    table = text_table(shown.columns, rows, title="Latency in ms, end to end", left=range(shown.left))
    console.print(table)
    for line in (*notes(document), where(document), f"{folder}: results.json, measurements.csv, index.html"):
        console.print(line, soft_wrap=True)
