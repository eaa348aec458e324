"""Entries of a report in words, the same in every form of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from tritonstack.review.cost import OUTSIDE
from tritonstack.review.document import ReviewDocument
from tritonstack.review.entries import (
    AmountEntry,
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
COST_COLUMNS = ("endpoint", "at the fewest instances", "at the most")


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
    """What is to be known beside the table of ``cost_rows``; nothing where no endpoint is there at all."""
    for each in environment.costs:
        # The table has the amounts, which the sentences that begin with the endpoint's name tell, too.
        yield from (sentence for sentence in each.sentences if not sentence.startswith(str(each.endpoint)))
    if environment.costs:
        yield OUTSIDE


def cost_rows(environment: EnvironmentEntry) -> Iterator[tuple[str, str, str]]:
    """Endpoint, cost at its fewest instances, at its most; of several endpoints also all of them together."""
    totals = (environment.cost,) if len(environment.costs) > 1 else ()
    for each in (*environment.costs, *totals):
        yield (
            each.endpoint or "all endpoints",
            _moved(each.minimum_before, each.minimum_after),
            _moved(each.maximum_before, each.maximum_after),
        )


def _moved(before: AmountEntry | None, after: AmountEntry | None) -> str:
    old, new = "nothing" if before is None else before.text, "nothing" if after is None else after.text
    return new if before == after else f"{old} → {new}"


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
