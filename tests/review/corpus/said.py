"""What a review says of a change, as the corpus keeps it: all that matters, in the report's own words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from tritonstack.review.entries import (
    CostTableEntry,
    EnvironmentEntry,
    PermissionEntry,
    PropertyEntry,
    ResourceEntry,
)
from tritonstack.review.entry_words import cost_rows

LONGEST = 100
"""Characters of a value; a dashboard's or a document's is longer, and what changes in it is said in parts."""
LONGEST_STATEMENT = 200
"""Characters of a permission; the rest of one that is longer is conditions and further resources."""
ONE_SIDED = {"new", "removed", "removed from the stack, kept in the account"}
"""Effects of resources that are on one side alone, all of whose properties a report lists."""
MOST = 8
"""Properties of one resource; the rest, such as every graph of a dashboard, is counted."""


def said(environment: EnvironmentEntry) -> dict[str, Any]:
    """All that matters; a part of which nothing is said is left out."""
    parts: dict[str, Any] = {
        "verdict": [each.text for each in environment.verdict],
        "stacks": {each.name: each.effect.value for each in environment.stacks},
        "resources": _resources(environment),
        "properties": [line for each in environment.resources for line in _properties(each)],
        "traffic": {
            each.endpoint: {"touched": each.touched, "update": each.update, "sentences": list(each.sentences)}
            for each in environment.traffic
        },
        "permissions": list(_permissions(environment.permissions)),
        "openings": [f"{each.kind}: {each.stack}/{each.name} {each.sentence}" for each in environment.openings],
        "models": [each.sentence for each in environment.models],
        "engines": [each.sentence for each in environment.engines],
        "cost": [*environment.cost.sentences, *(line for each in environment.costs for line in each.sentences)],
        "cost beside endpoints": list(_beside(environment.cost_table)),
        "findings": [f"{each.change}: {each.stack}/{each.path}: {each.rule}" for each in environment.findings],
    }
    return {name: part for name, part in parts.items() if part}


def _beside(table: CostTableEntry) -> Iterator[str]:
    """The rows that change, but for the endpoints' own, which the sentences of their cost tell."""
    changed = {each.name for each in table.rows if each.changed and not each.name.startswith("endpoint ")}
    for name, quantity, idle, *_ in cost_rows(table):
        if name in changed:
            yield f"{name}: {quantity}; {idle}"


def _permissions(entries: Sequence[PermissionEntry]) -> Iterator[str]:
    """What changes for roles and resources on both sides; of those that come or go whole, how much that is."""
    whole: Counter[str] = Counter()
    for each in entries:
        if each.statement.startswith(("new", "gone")):
            whole[f"{each.kind}, {each.statement.partition(':')[0]}"] += 1
            continue
        line = f"{each.kind}: {each.stack}/{each.principal} {each.statement}"
        broad = f" (broad: {len(each.wildcards)})" if each.wildcards else ""
        foreign = f" of {', '.join(each.other_accounts)}" if each.other_accounts else ""
        yield (line if len(line) <= LONGEST_STATEMENT else f"{line[: LONGEST_STATEMENT - 1]}…") + broad + foreign
    yield from (f"{kind}: {count}" for kind, count in whole.items())


def _resources(environment: EnvironmentEntry) -> dict[str, dict[str, list[str]]]:
    """Stack → effect → construct paths; stacks that come or go whole are told by their effect alone."""
    whole = {each.name for each in environment.stacks if each.effect.value != "changed in place"}
    found: dict[str, dict[str, list[str]]] = {}
    for each in environment.resources:
        if each.stack not in whole:
            found.setdefault(each.stack, {}).setdefault(each.effect.value, []).append(each.path)
    return {stack: {effect: sorted(paths) for effect, paths in effects.items()} for stack, effects in found.items()}


def _properties(resource: ResourceEntry) -> Iterator[str]:
    """The properties whose text changes, of a resource on both sides, but for tags; and what else is said of it."""
    where = f"{resource.stack}/{resource.path}"
    if not resource.tags_only and resource.effect.value not in ONE_SIDED:
        lines = [line for each in resource.properties if (line := _property(each)) is not None]
        yield from (f"{where} {line}" for line in lines[:MOST])
        if len(lines) > MOST:
            yield f"{where} and {len(lines) - MOST} more"
    yield from (f"{where}: {each}" for each in resource.sentences if "Its function is called" not in each)


def _property(entry: PropertyEntry) -> str | None:
    if entry.follows is not None:
        return None
    values = [_short(each) for each in (entry.before, entry.after)]
    replaces = {"yes": ", replaces it", "maybe": ", may replace it", "no": ""}[entry.replaces]
    return f"{entry.name}: {values[0]} → {values[1]}{replaces}"


def _short(value: str | None) -> str:
    if value is None:
        return "(absent)"
    return value if len(value) <= LONGEST else "(long)"
