"""The report on a terminal, and as one self-contained HTML page without a script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

import jinja2
from markupsafe import Markup
from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tritonstack.review.change import Effect
from tritonstack.review.document import CostTableEntry, EnvironmentEntry, PropertyEntry, ResourceEntry, ReviewDocument
from tritonstack.review.report import Level
from tritonstack.review.views.wording import (
    COST,
    COST_COLUMNS,
    cost_notes,
    cost_rows,
    diff_lines,
    file_words,
    finding_words,
    match_groups,
    part_lists,
    property_note,
    shown_traffic,
)

TEMPLATES = Path(__file__).parent / "templates"
SHORT = 14
"""Lines: a longer difference is folded on the page."""
CLASSES = {Level.NOTHING: "nothing", Level.PLAIN: "plain", Level.LOOK: "look", Level.CLOSE: "close"}


def page(document: ReviewDocument) -> str:
    """The HTML page; the same bytes for the same report."""
    # A box that is not ticked hides the resources of its effect.
    filters = "".join(
        f"body:has(#show-{slug(each)}:not(:checked)) .effect-{slug(each)} {{ display: none; }}\n" for each in Effect
    )
    style = (TEMPLATES / "page.css").read_text(encoding="utf-8") + filters
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shown = {each.effect for one in document.environments for each in one.resources}
    return environment.get_template("page.html.j2").render(
        document=document,
        # Escaped, it would be another style than the digest's.
        style=Markup(style),  # noqa: S704 - of this package, nothing of a report is in it
        style_digest=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        effects=[each for each in Effect if each in shown],
        classes=CLASSES,
        groups=_groups,
        matches=list(match_groups(document)),
        lines=diff_lines,
        short=SHORT,
        note=property_note,
        files=file_words,
        findings=finding_words,
        parts=part_lists,
        cost=COST,
        cost_columns=COST_COLUMNS,
        cost_rows=cost_rows,
        traffic=shown_traffic,
        slug=slug,
    )


def slug(value: str) -> str:
    """A value as part of an id: ``changed-in-place``."""
    return "".join(each if each.isalnum() else "-" for each in value.lower())


def _groups(environment: EnvironmentEntry) -> list[tuple[Effect, list[ResourceEntry]]]:
    return [(effect, list(group)) for effect, group in groupby(environment.resources, key=lambda each: each.effect)]


COLOURS = {Level.NOTHING: "dim", Level.PLAIN: "blue", Level.LOOK: "yellow", Level.CLOSE: "red"}
MOST_LINES = 6
"""Lines of a property or of a list, resources of an effect. What is replaced, removed or refused is shown whole."""
MOST_DETAILED = 8
"""Resources of an environment whose differences are shown; of more, the properties are named."""
_COUNTED = {Effect.NEW, Effect.RENAMED, Effect.CHANGED, Effect.MAY_CHANGE, Effect.TEMPLATE_ONLY}
_WITHOUT_VALUES = {Effect.NEW, Effect.REMOVED, Effect.RETAINED}
WHERE = "--verbose shows all of it, --markdown, --html and --output write it"


def show(document: ReviewDocument, console: Console, *, verbose: bool = False) -> None:
    """Print the report; ``verbose``: all of it, however long it is."""
    base = document.base
    named = "" if base.chosen else ", the default"
    console.print(Text(f"compared with the snapshots at {base.commit[:12]}, where this branch left {base.ref}{named}"))
    for note in document.notes:
        console.print(Text(note))
    table = _table(("environment", "verdict", "what happens"))
    for each in document.environments:
        words = "; ".join(one.text for one in each.verdict)
        table.add_row(Text(each.name), Text(each.level.value, style=COLOURS[each.level]), Text(words))
    console.print(table)
    printer = _Printer(console, verbose=verbose)
    for each in document.environments:
        if each.effect is not None:
            printer.environment(each)
    if printer.left_out:
        console.print(Text(f"Parts are left out: {WHERE}."))


def show_costs(name: str, table: CostTableEntry, console: Console) -> None:
    """Print what an environment costs, every row."""
    console.print(Text(name, style="bold"))
    console.print(_table(COST_COLUMNS, cost_rows(table, whole=True)))
    for note in cost_notes(table):
        console.print(Text(note))


def _table(columns: Iterable[str], rows: Iterable[Iterable[str]] = ()) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for cells in rows:
        table.add_row(*map(Text, cells))
    return table


class _Printer:
    """Prints environments. ``left_out``: whether anything was."""

    def __init__(self, console: Console, *, verbose: bool) -> None:
        self.console = console
        self.verbose = verbose
        self.left_out = False

    def environment(self, environment: EnvironmentEntry) -> None:
        self._line(environment.name, style="bold")
        for traffic in shown_traffic(environment):
            self._line(f"  {traffic.endpoint}: {' '.join(traffic.sentences)}")
        for title, lines in part_lists(environment):
            self._line(f"  {title}")
            if title == COST:
                self.console.print(
                    Padding(_table(COST_COLUMNS, cost_rows(environment.cost_table)), (0, 0, 0, 4), expand=False)
                )
            self._list(lines, indent="    ")
        detailed = self.verbose or len(environment.resources) <= MOST_DETAILED
        for effect, resources in _groups(environment):
            shown = len(resources) if self.verbose or effect not in _COUNTED else MOST_LINES
            for each in resources[:shown]:
                self._resource(each, detailed=detailed)
            self._rest(len(resources) - shown, f"  {effect.value}")
        self._list([f"policy finding {line}" for line in finding_words(environment)], indent="  ")

    def _resource(self, resource: ResourceEntry, *, detailed: bool) -> None:
        self._line(f"  {resource.effect.value}: {resource.stack}/{resource.path} ({resource.type})")
        for sentence in resource.sentences:
            self._line(f"    {sentence}", style="dim")
        if resource.effect in _WITHOUT_VALUES and not self.verbose:
            return
        whole = self.verbose or resource.effect not in _COUNTED
        shown = len(resource.properties) if whole else MOST_LINES
        rest = len(resource.properties) - shown
        if detailed:
            for entry in resource.properties[:shown]:
                self._property(entry)
            self._rest(rest, "   ", noun=" properties")
        elif resource.properties:
            self.left_out = True
            names = ", ".join(_named(each) for each in resource.properties[:shown])
            self._line(f"    {names}{f' and {rest} more' if rest > 0 else ''}")

    def _property(self, entry: PropertyEntry) -> None:
        self._line(f"    {_named(entry)}")
        lines = [] if entry.follows is not None else diff_lines(entry.before, entry.after)
        shown = len(lines) if self.verbose else MOST_LINES
        for line in lines[:shown]:
            self._line(f"      {line.sign} {line.text}", style={"+": "blue", "-": "yellow"}.get(line.sign, "dim"))
        self._rest(len(lines) - shown, "     ", noun=" lines")

    def _list(self, lines: Sequence[str], *, indent: str) -> None:
        shown = len(lines) if self.verbose else MOST_LINES
        for line in lines[:shown]:
            self._line(f"{indent}{line}")
        self._rest(len(lines) - shown, indent.removesuffix(" "))

    def _rest(self, count: int, before: str, *, noun: str = "") -> None:
        if count > 0:
            self.left_out = True
            self._line(f"{before} … {count} more{noun}", style="dim")

    def _line(self, line: str, *, style: str = "") -> None:
        self.console.print(Text(line, style=style))


def _named(entry: PropertyEntry) -> str:
    note = property_note(entry)
    return f"{entry.name}{f'  ({note})' if note else ''}"
