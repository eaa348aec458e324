"""The report on a terminal: verdicts, then what hurts; the whole of it is in the files."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tritonstack.review.document import ReviewDocument
from tritonstack.review.entries import EnvironmentEntry
from tritonstack.review.entry_words import COST, cost_rows, finding_words, part_lists, property_note, shown_traffic
from tritonstack.review.values import diff_lines
from tritonstack.review.verdict import Level

COLOURS = {Level.NOTHING: "dim", Level.PLAIN: "blue", Level.LOOK: "yellow", Level.CLOSE: "red"}
MOST_LINES = 6
"""Lines of one property."""


def show(document: ReviewDocument, console: Console) -> None:
    """Print it."""
    base = document.base
    named = "" if base.chosen else ", the default"
    console.print(Text(f"compared with the snapshots at {base.commit[:12]}, where this branch left {base.ref}{named}"))
    for note in document.notes:
        console.print(Text(note))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("environment", "verdict", "what happens"):
        table.add_column(column, overflow="fold")
    for each in document.environments:
        words = "; ".join(one.text for one in each.verdict)
        table.add_row(Text(each.name), Text(each.level.value, style=COLOURS[each.level]), Text(words))
    console.print(table)
    for each in document.environments:
        if each.effect is not None:
            _environment(each, console)


def _environment(environment: EnvironmentEntry, console: Console) -> None:
    console.print(Text(environment.name, style="bold"))
    for traffic in shown_traffic(environment):
        console.print(Text(f"  {traffic.endpoint}: {' '.join(traffic.sentences)}"))
    for title, lines in part_lists(environment):
        console.print(Text(f"  {title}"))
        if title == COST:
            for name, least, most in cost_rows(environment):
                console.print(Text(f"    {name}: {least} at minimum, {most} at maximum"))
        for line in lines:
            console.print(Text(f"    {line}"))
    for each in environment.resources:
        console.print(Text(f"  {each.effect.value}: {each.stack}/{each.path} ({each.type})"))
        for sentence in each.sentences:
            console.print(Text(f"    {sentence}", style="dim"))
        if each.effect.value == "new":
            continue
        for entry in each.properties:
            _property(entry.name, property_note(entry), entry.before, entry.after, console, follows=entry.follows)
    for line in finding_words(environment):
        console.print(Text(f"  policy finding {line}"))


def _property(
    name: str, note: str, before: str | None, after: str | None, console: Console, *, follows: str | None
) -> None:
    console.print(Text(f"    {name}{f'  ({note})' if note else ''}"))
    if follows is not None:
        return
    lines = diff_lines(before, after)
    for line in lines[:MOST_LINES]:
        style = {"+": "blue", "-": "yellow"}.get(line.sign, "dim")
        console.print(Text(f"      {line.sign} {line.text}", style=style))
    if len(lines) > MOST_LINES:
        console.print(Text(f"      … {len(lines) - MOST_LINES} more lines", style="dim"))
