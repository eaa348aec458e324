"""Entries of a report in words and in lines of differences, the same in every form of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import Literal

from tritonstack.review.cost import HOURS_A_MONTH
from tritonstack.review.cost_table import LIST_PRICES
from tritonstack.review.document import (
    AmountEntry,
    CostRowEntry,
    CostTableEntry,
    EnvironmentEntry,
    FilesEntry,
    PropertyEntry,
    ReviewDocument,
    TrafficEntry,
)

MOST_FILES = 6
MOST_MATCHES = 3
"""Of a word of the policy in one environment: a new environment has dozens of new permissions."""
COST = "Cost"
"""The part that has a table beside its sentences."""
COST_COLUMNS = ("USD/hour", "how many", "idle", "at most", "billed by use")
_NOTES = {"yes": "replaces it", "maybe": "may replace it", "no": ""}


@dataclass(frozen=True, kw_only=True)
class MatchGroup:
    """What a word of ``--fail-on`` matches in one environment. ``first`` is always shown, ``rest`` folded."""

    policy: str
    environment: str
    first: tuple[str, ...]
    rest: tuple[str, ...]


def match_groups(document: ReviewDocument) -> Iterator[MatchGroup]:
    """What the policy matches, in the report's order."""
    for (policy, environment), matches in groupby(document.matches, key=lambda each: (each.policy, each.environment)):
        sentences = tuple(each.sentence for each in matches)
        # One line that says "1 more" is as long as the one that it leaves out.
        first = MOST_MATCHES if len(sentences) > MOST_MATCHES + 1 else len(sentences)
        yield MatchGroup(policy=policy, environment=environment, first=sentences[:first], rest=sentences[first:])


def property_note(entry: PropertyEntry) -> str:
    """``replaces it``, ``may follow Name``; may be empty."""
    moved = "" if entry.follows is None else f"{'follows' if entry.certain else 'may follow'} {entry.follows}"
    return ", ".join(each for each in (moved, _NOTES[entry.replaces]) if each)


def file_words(entry: FilesEntry) -> str:
    """``code: changed: handler.py; new: other.py``."""
    kinds = {"changed": entry.changed, "new": entry.new, "removed": entry.removed}
    files = "; ".join(f"{word}: {_some(names)}" for word, names in kinds.items() if names)
    return f"{entry.kind}: {files or 'another kind of asset'}"


def _some(names: tuple[str, ...]) -> str:
    rest = len(names) - MOST_FILES
    return ", ".join(names[:MOST_FILES]) + (f" and {rest} more" if rest > 0 else "")


def shown_traffic(environment: EnvironmentEntry) -> list[TrafficEntry]:
    """The endpoints of the stacks that change, the touched ones first."""
    order = {True: 0, None: 1, False: 2}
    return sorted(environment.traffic, key=lambda each: order[each.touched])


def part_lists(environment: EnvironmentEntry) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Title and lines of every part that is a list of sentences and is not empty."""
    stacks = (f"{stack.stack_name}: {each}" for stack in environment.stacks for each in stack.sentences)
    parts = {
        "Stacks as a whole": stacks,
        "Permissions that widen": _permissions(environment, "wider"),
        "Permissions that change otherwise": _permissions(environment, "other"),
        "Permissions that narrow": _permissions(environment, "narrower"),
        "What opens": _openings(environment, "opened"),
        "What is open otherwise": _openings(environment, "other"),
        "What closes": _openings(environment, "closed"),
        "Models": (each.sentence for each in environment.models),
        "Engines": (each.sentence for each in environment.engines),
        COST: _cost(environment),
    }
    yield from ((title, lines) for title, found in parts.items() if (lines := tuple(found)))


def _permissions(environment: EnvironmentEntry, kind: str) -> Iterator[str]:
    for each in environment.permissions:
        if each.kind != kind:
            continue
        wildcards = each.wildcards if kind != "narrower" else ()
        broad = f" Wildcards: {'; '.join(one.rstrip('.') for one in wildcards)}." if wildcards else ""
        foreign = f" Of other accounts: {', '.join(each.other_accounts)}." if each.other_accounts else ""
        yield f"{each.stack}/{each.principal} {each.statement}.{broad}{foreign}"


def _openings(environment: EnvironmentEntry, kind: str) -> Iterator[str]:
    yield from (f"{each.stack}/{each.name} {each.sentence}." for each in environment.openings if each.kind == kind)


def _cost(environment: EnvironmentEntry) -> Iterator[str]:
    """Sentences next to the table of ``cost_rows``, which has the amounts."""
    yield from environment.cost_notes
    yield from cost_notes(environment.cost_table)


def cost_notes(table: CostTableEntry) -> Iterator[str]:
    """Notes on a cost table's prices; none where it is empty."""
    if table.unknown:
        yield f"Unknown: {', '.join(table.unknown)}. `prices:` in the environment's file sets prices by these names."
    if table.rows:
        yield LIST_PRICES


def cost_rows(table: CostTableEntry, *, whole: bool = False) -> Iterator[tuple[str, ...]]:
    """The cells of ``COST_COLUMNS``, row by row; the sums alone where no row changed. ``whole``: all rows anyhow."""
    listed = whole or table.changed
    if listed:
        yield from (_cost_row(each) for each in table.rows)
    sides = ((table.idle_before, table.idle_after), (table.most_before, table.most_after))
    by_use = "" if listed else ", ".join(table.by_use)
    yield "all", "", *(_moved(_usd(old), _usd(new)) for old, new in sides), by_use
    month = f"{HOURS_A_MONTH} hours"
    yield "USD/month", month, *(_moved(_monthly(old), _monthly(new)) for old, new in sides), ""


def _cost_row(row: CostRowEntry) -> tuple[str, ...]:
    def by_time(quantity: str | None, amount: AmountEntry | None) -> str:
        return "nothing" if quantity is None else "by use" if amount is None else _usd(amount)

    old, new = row.quantity_before, row.quantity_after
    amounts = ((row.idle_before, row.idle_after), (row.most_before, row.most_after))
    return (
        row.name,
        _moved(old or "none", new or "none"),
        *(_moved(by_time(old, before), by_time(new, after)) for before, after in amounts),
        "; ".join(row.by_use),
    )


def _usd(amount: AmountEntry) -> str:
    """Without the unit, which stands in the table's corner."""
    return amount.text.replace(" USD/hour", "")


def _monthly(amount: AmountEntry) -> str:
    known = f"{amount.at_least * HOURS_A_MONTH:,.0f}"
    if not amount.unknown:
        return known
    return f"at least {known}" if amount.at_least else "unknown"


def _moved(old: str, new: str) -> str:
    return new if old == new else f"{old} → {new}"


def finding_words(environment: EnvironmentEntry) -> tuple[str, ...]:
    """A line for every policy finding that comes, goes or is accepted."""
    lines = []
    if not environment.findings_known and environment.effect == "changed in place":
        lines.append("Unknown: one side was synthesised without validation.")
    for each in environment.findings:
        why = each.reason or each.description
        lines.append(f"{each.change}: {each.stack}/{each.path}: {each.rule}{f': {why}' if why else ''}")
    return tuple(lines)


# Lines of a difference.
AROUND = 2
"""Unchanged lines that are shown around a difference."""


@dataclass(frozen=True)
class DiffLine:
    """A line of a difference."""

    sign: Literal["+", "-", " ", "…"]  # new, removed, unchanged; ``…``: unchanged lines that are left out here
    text: str


def diff_lines(before: str | None, after: str | None) -> list[DiffLine]:
    """The lines of a difference; None is no text at all."""
    old = [] if before is None else before.split("\n")
    new = [] if after is None else after.split("\n")
    lines: list[DiffLine] = []
    for kind, first, last, start, end in SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
        if kind == "equal":
            lines += _same(old[first:last], at_start=first == 0, at_end=last == len(old))
        else:
            lines += [DiffLine("-", line) for line in old[first:last]]
            lines += [DiffLine("+", line) for line in new[start:end]]
    return lines


def _same(lines: list[str], *, at_start: bool, at_end: bool) -> list[DiffLine]:
    head, tail = (0 if at_start else AROUND), (0 if at_end else AROUND)
    shown = [DiffLine(" ", line) for line in lines]
    left_out = len(lines) - head - tail
    if left_out <= 1:
        return shown
    return [*shown[:head], DiffLine("…", f"{left_out} unchanged lines"), *shown[len(lines) - tail :]]
