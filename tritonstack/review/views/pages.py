"""The report on a terminal, and as one self-contained HTML page without a script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from pathlib import Path

from markupsafe import Markup
from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tritonstack.errors import visible
from tritonstack.pages.page import templates
from tritonstack.review.change import Effect, Level
from tritonstack.review.costs.cost_table import LIST_PRICES
from tritonstack.review.document import CostTableEntry, EnvironmentEntry, PropertyEntry, ReviewDocument
from tritonstack.review.views import wording
from tritonstack.review.views.wording import COST_COLUMNS, HURT, MOST_LINES, Section

TEMPLATES = Path(__file__).parent / "templates"
SHORT = 14
"""Lines: a longer difference is folded on the page."""
CLASSES = {Level.NOTHING: "nothing", Level.PLAIN: "plain", Level.LOOK: "look", Level.CLOSE: "close"}


def page(document: ReviewDocument) -> str:
    """The HTML page; the same bytes for the same report."""
    style = (TEMPLATES / "page.css").read_text(encoding="utf-8")
    template = templates(TEMPLATES).get_template("page.html.j2")
    return template.render(
        document=document,
        # Escaped, it would be another style than the digest's.
        style=Markup(style),  # noqa: S704 - of this package, nothing of a report is in it
        style_digest=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        classes=CLASSES,
        short=SHORT,
        wording=wording,
        slug=slug,
    )


def slug(value: str) -> str:
    """A value as part of an id: ``changed-in-place``."""
    return "".join(each if each.isalnum() else "-" for each in value.lower())


COLOURS = {Level.NOTHING: "dim", Level.PLAIN: "blue", Level.LOOK: "yellow", Level.CLOSE: "red"}
MOST_DETAILED = 8
"""Resources of an environment whose differences are shown; of more, only what can hurt is named."""
_WITHOUT_VALUES = {Effect.NEW, Effect.REMOVED, Effect.RETAINED}
WHERE = "--markdown, --html and --output write all of it"


def show(document: ReviewDocument, console: Console) -> None:
    """Print what matters most of the report."""
    base = document.base
    named = "" if base.chosen else ", the default"
    console.print(Text(f"compared with the snapshots at {base.commit[:12]}, where this branch left {base.ref}{named}"))
    for note in document.notes:
        console.print(Text(note))
    table = _table(("environment", "verdict", "what happens"))
    for each in document.environments:
        level = Text(each.level.value, style=COLOURS[each.level])
        table.add_row(Text(visible(each.name)), level, Text(visible(each.sentence)))
    console.print(table)
    printer = _Printer(console)
    for each in document.environments:
        if each.has_changes:
            printer.environment(each)
    if printer.left_out:
        console.print(Text(f"Parts are left out: {WHERE}."))


def show_costs(name: str, table: CostTableEntry, console: Console) -> None:
    """Print an environment's cost, every row."""
    console.print(Text(name, style="bold"))
    console.print(_table(COST_COLUMNS, wording.cost_cells(table, whole=True)))
    for note in (*wording.unknown_prices(table), *([LIST_PRICES] if table.rows else [])):
        console.print(Text(note))


def _table(columns: Iterable[str], rows: Iterable[Iterable[str]] = ()) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for cells in rows:
        table.add_row(*(Text(visible(cell)) for cell in cells))
    return table


class _Printer:
    """Prints environments. ``left_out``: whether anything was."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.left_out = False

    def environment(self, environment: EnvironmentEntry) -> None:
        self._line(environment.name, style="bold")
        if environment.settings:
            self._settings(environment)
        for section in wording.sections(environment):
            self._section(section)
        if environment.resources:
            self._resources(environment)

    def _settings(self, environment: EnvironmentEntry) -> None:
        self._line(f"  Settings in {environment.settings[0].file}, and what each alone does")
        for each in environment.settings:
            values = [wording.setting_value(value) for value in (each.before, each.after)]
            self._line(f"    {each.path}: {' → '.join(values)}")
            if each.level is not None:
                self._line(f"      {wording.setting_effect(each)}", style=COLOURS[each.level])
        if any(each.effect is None for each in environment.settings):
            self._line(f"    {wording.UNTRIED}")

    def _section(self, section: Section) -> None:
        self._line(f"  {section.title}")
        if section.rows:
            self.console.print(Padding(_table(COST_COLUMNS, section.rows), (0, 0, 0, 4), expand=False))
        for line in section.shown:
            self._line(f"    {line}")
        if section.folded:
            self._left_out(f"    … {section.fold}")

    def _resources(self, environment: EnvironmentEntry) -> None:
        self._line(f"  Resources: {wording.resource_counts(environment)}")
        own = [each for each in environment.resources if not each.only_follows]
        is_short = len(own) <= MOST_DETAILED
        listed = own if is_short else [each for each in own if each.effect in HURT]
        for each in listed:
            self._line(f"  {each.effect.value}: {each.stack}/{each.path} ({each.type})")
            for sentence in each.sentences:
                self._line(f"    {sentence}", style="dim")
            for entry in each.properties if is_short and each.effect not in _WITHOUT_VALUES else ():
                self._property(entry)
        rest = len(environment.resources) - len(listed)
        if rest or not is_short:
            self._left_out(f"  … {rest} more resources, and properties")

    def _property(self, entry: PropertyEntry) -> None:
        note = wording.property_note(entry)
        self._line(f"    {entry.name}{f'  ({note})' if note else ''}")
        lines = [] if entry.follows is not None else wording.diff_lines(entry.before, entry.after)
        for line in lines[:MOST_LINES]:
            self._line(f"      {line.sign} {line.text}", style={"+": "blue", "-": "yellow"}.get(line.sign, "dim"))
        if len(lines) > MOST_LINES:
            self._left_out(f"      … {len(lines) - MOST_LINES} more lines")

    def _left_out(self, line: str) -> None:
        self.left_out = True
        self._line(line, style="dim")

    def _line(self, line: str, *, style: str = "") -> None:
        self.console.print(Text(line, style=style))
