"""The report on a terminal, and as one self-contained HTML page without a script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from pathlib import Path

import jinja2
from markupsafe import Markup
from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tritonstack.review.change import Effect
from tritonstack.review.cost_table import LIST_PRICES
from tritonstack.review.document import CostTableEntry, EnvironmentEntry, PropertyEntry, ResourceEntry, ReviewDocument
from tritonstack.review.report import Level
from tritonstack.review.views.wording import (
    COST,
    COST_COLUMNS,
    HURT,
    MOST_LINES,
    REPEATS,
    UNTRIED,
    Section,
    cost_rows,
    diff_lines,
    file_words,
    hurt_lines,
    match_groups,
    property_note,
    resource_counts,
    resource_groups,
    sections,
    setting_effect,
    setting_value,
    unchanged_cost_rows,
    unknown_prices,
)

TEMPLATES = Path(__file__).parent / "templates"
SHORT = 14
"""Lines: a longer difference is folded on the page."""
CLASSES = {Level.NOTHING: "nothing", Level.PLAIN: "plain", Level.LOOK: "look", Level.CLOSE: "close"}


def page(document: ReviewDocument) -> str:
    """The HTML page; the same bytes for the same report."""
    style = (TEMPLATES / "page.css").read_text(encoding="utf-8")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2").render(
        document=document,
        # Escaped, it would be another style than the digest's.
        style=Markup(style),  # noqa: S704 - of this package, nothing of a report is in it
        style_digest=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        classes=CLASSES,
        groups=resource_groups,
        counts=resource_counts,
        hurt=hurt_lines,
        repeats=REPEATS,
        matches=list(match_groups(document)),
        lines=diff_lines,
        short=SHORT,
        note=property_note,
        files=file_words,
        sections=sections,
        setting_effect=setting_effect,
        setting_value=setting_value,
        untried=UNTRIED,
        cost=COST,
        cost_columns=COST_COLUMNS,
        cost_rows=cost_rows,
        unchanged_cost_rows=unchanged_cost_rows,
        slug=slug,
    )


def slug(value: str) -> str:
    """A value as part of an id: ``changed-in-place``."""
    return "".join(each if each.isalnum() else "-" for each in value.lower())


COLOURS = {Level.NOTHING: "dim", Level.PLAIN: "blue", Level.LOOK: "yellow", Level.CLOSE: "red"}
MOST_DETAILED = 8
"""Resources of an environment whose differences are shown; of more, the properties are named."""
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
        if each.told:
            printer.environment(each)
    if printer.left_out:
        console.print(Text(f"Parts are left out: {WHERE}."))


def show_costs(name: str, table: CostTableEntry, console: Console) -> None:
    """Print what an environment costs, every row."""
    console.print(Text(name, style="bold"))
    console.print(_table(COST_COLUMNS, cost_rows(table, whole=True)))
    for note in (*unknown_prices(table), *([LIST_PRICES] if table.rows else [])):
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
        if environment.settings:
            self._settings(environment)
        for section in sections(environment):
            self._section(section, environment.cost_table)
        if environment.resources:
            self._line(f"  Resources: {resource_counts(environment)}")
        own = [each for each in environment.resources if not each.repeats]
        detailed = self.verbose or len(own) <= MOST_DETAILED
        for effect, resources in resource_groups(environment):
            whole = self.verbose or effect in HURT
            listed = resources if whole else [each for each in resources if not each.repeats][:MOST_LINES]
            for each in listed:
                self._resource(each, detailed=detailed)
            self._rest(len(resources) - len(listed), f"  {effect.value}")

    def _settings(self, environment: EnvironmentEntry) -> None:
        self._line(f"  Settings in {environment.settings[0].file}, and what each alone does")
        for each in environment.settings:
            self._line(f"    {each.path}: {setting_value(each.before)} → {setting_value(each.after)}")
            if each.level is not None:
                self._line(f"      {setting_effect(each)}", style=COLOURS[each.level])
        if any(each.effect is None for each in environment.settings):
            self._line(f"    {UNTRIED}")

    def _section(self, section: Section, table: CostTableEntry) -> None:
        self._line(f"  {section.title}")
        if section.title == COST:
            rows = cost_rows(table, whole=self.verbose)
            self.console.print(Padding(_table(COST_COLUMNS, rows), (0, 0, 0, 4), expand=False))
        for line in (*section.shown, *(section.folded if self.verbose else ())):
            self._line(f"    {line}")
        if section.folded and not self.verbose:
            self.left_out = True
            self._line(f"    … {section.fold}", style="dim")

    def _resource(self, resource: ResourceEntry, *, detailed: bool) -> None:
        self._line(f"  {resource.effect.value}: {resource.stack}/{resource.path} ({resource.type})")
        for sentence in resource.sentences:
            self._line(f"    {sentence}", style="dim")
        if resource.effect in _WITHOUT_VALUES and not self.verbose:
            return
        whole = self.verbose or resource.effect in HURT
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

    def _rest(self, count: int, before: str, *, noun: str = "") -> None:
        if count > 0:
            self.left_out = True
            self._line(f"{before} … {count} more{noun}", style="dim")

    def _line(self, line: str, *, style: str = "") -> None:
        self.console.print(Text(line, style=style))


def _named(entry: PropertyEntry) -> str:
    note = property_note(entry)
    return f"{entry.name}{f'  ({note})' if note else ''}"
