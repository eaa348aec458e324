"""Entries of a report in words, the same in every form of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from tritonstack.review.cost import HOURS_A_MONTH
from tritonstack.review.cost_table import LIST_PRICES
from tritonstack.review.document import ReviewDocument
from tritonstack.review.entries import (
    AmountEntry,
    CostRowEntry,
    CostTableEntry,
    EnvironmentEntry,
    FilesEntry,
    PropertyEntry,
    TrafficEntry,
)

_NOTES = {"yes": "replaces it", "maybe": "may replace it", "no": ""}
MOST_FILES = 6
MOST_MATCHES = 3
"""Of a word of the policy in one environment: a new environment has dozens of permissions that are new."""
COST = "Cost"
"""The part that has a table beside its sentences."""
COST_COLUMNS = ("USD/hour", "how many", "idle", "at most", "billed by use")


@dataclass(frozen=True, kw_only=True)
class MatchGroup:
    """What a word of ``--fail-on`` matches in one environment.

    Attributes:
        policy: the word, as it was given.
        environment: the environment's name.
        first: what is always shown.
        rest: what is folded, or counted.
    """

    policy: str
    environment: str
    first: tuple[str, ...]
    rest: tuple[str, ...]


def match_groups(document: ReviewDocument) -> Iterator[MatchGroup]:
    """What the policy matches, in the report's order."""
    for (policy, environment), matches in groupby(document.matches, key=lambda each: (each.policy, each.environment)):
        told = tuple(each.sentence for each in matches)
        # One line that says "1 more" is as long as the one that it leaves out.
        first = MOST_MATCHES if len(told) > MOST_MATCHES + 1 else len(told)
        yield MatchGroup(policy=policy, environment=environment, first=told[:first], rest=told[first:])


def property_note(entry: PropertyEntry) -> str:
    """What is to be known of a property beside its values; empty where nothing is."""
    moved = "" if entry.follows is None else f"{'follows' if entry.certain else 'may follow'} {entry.follows}"
    return ", ".join(each for each in (moved, _NOTES[entry.replaces]) if each)


def file_words(entry: FilesEntry) -> str:
    """``code: changed: handler.py; new: other.py``."""
    told = {"changed": entry.changed, "new": entry.new, "gone": entry.removed}
    files = "; ".join(f"{word}: {_some(names)}" for word, names in told.items() if names)
    return f"{entry.kind}: {files or 'what it is'}"


def _some(names: tuple[str, ...]) -> str:
    rest = len(names) - MOST_FILES
    return ", ".join(names[:MOST_FILES]) + (f" and {rest} more" if rest > 0 else "")


def shown_traffic(environment: EnvironmentEntry) -> Iterator[TrafficEntry]:
    """The endpoints that a report tells of: all of those in stacks that change, the touched ones first."""
    order = {True: 0, None: 1, False: 2}
    return iter(sorted(environment.traffic, key=lambda each: order[each.touched]))


def part_lists(environment: EnvironmentEntry) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Title and lines of every part that is a list of sentences; the empty ones are left out."""
    parts: dict[str, tuple[str, ...]] = {
        "Stacks as a whole": tuple(
            f"{stack.stack_name}: {each}" for stack in environment.stacks for each in stack.sentences
        ),
        "Permissions that widen": tuple(_permissions(environment, "wider")),
        "Permissions that change otherwise": tuple(_permissions(environment, "other")),
        "Permissions that narrow": tuple(_permissions(environment, "narrower")),
        "What opens": tuple(_openings(environment, "opened")),
        "What is open otherwise": tuple(_openings(environment, "other")),
        "What closes": tuple(_openings(environment, "closed")),
        "Models": (
            *(each.sentence for each in environment.models),
            *(" ".join(each.sentences) for each in environment.archives),
        ),
        "Engines": tuple(each.sentence for each in environment.engines),
        COST: tuple(_cost(environment)),
    }
    yield from ((title, lines) for title, lines in parts.items() if lines)


def _permissions(environment: EnvironmentEntry, kind: str) -> Iterator[str]:
    for each in environment.permissions:
        if each.kind != kind:
            continue
        called_out = each.wildcards if kind != "narrower" else ()
        broad = f" Wildcards: {'; '.join(one.rstrip('.') for one in called_out)}." if called_out else ""
        foreign = f" Of other accounts: {', '.join(each.other_accounts)}." if each.other_accounts else ""
        yield f"{each.stack}/{each.principal} {each.statement}.{broad}{foreign}"


def _openings(environment: EnvironmentEntry, kind: str) -> Iterator[str]:
    yield from (f"{each.stack}/{each.name} {each.sentence}." for each in environment.openings if each.kind == kind)


def _cost(environment: EnvironmentEntry) -> Iterator[str]:
    """What is to be known beside the table of ``cost_rows``; nothing where nothing costs anything."""
    for each in environment.costs:
        # The table has the amounts, which the sentences that begin with the endpoint's name tell, too.
        yield from (sentence for sentence in each.sentences if not sentence.startswith(str(each.endpoint)))
    yield from cost_notes(environment.cost_table)


def cost_notes(table: CostTableEntry) -> Iterator[str]:
    """What is to be known of a cost table's prices; nothing where it is empty."""
    if table.unknown:
        yield f"Not known: {', '.join(table.unknown)}. `prices:` in the environment's file sets prices by these names."
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
    old, new = row.quantity_before, row.quantity_after
    amounts = ((row.idle_before, row.idle_after), (row.most_before, row.most_after))
    return (
        row.name,
        _moved(old or "none", new or "none"),
        *(_moved(_by_time(old, before), _by_time(new, after)) for before, after in amounts),
        "; ".join(row.by_use),
    )


def _by_time(quantity: str | None, amount: AmountEntry | None) -> str:
    return "nothing" if quantity is None else "by use" if amount is None else _usd(amount)


def _usd(amount: AmountEntry) -> str:
    """Without the unit, which the table's corner has."""
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
    told = (
        []
        if environment.findings_known or environment.effect != "changed in place"
        else ["Not known: one side was synthesised without validation."]
    )
    for each in environment.findings:
        why = each.reason or each.description
        told.append(f"{each.change}: {each.stack}/{each.path}: {each.rule}{f': {why}' if why else ''}")
    return tuple(told)
