"""Entries of a report in words and in lines of differences, the same in every form of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import Literal

from tritonstack.review.change import Effect, Update
from tritonstack.review.costs.amounts import HOURS_A_MONTH
from tritonstack.review.costs.cost_table import LIST_PRICES
from tritonstack.review.document import (
    AmountEntry,
    CostRowEntry,
    CostTableEntry,
    EnvironmentEntry,
    FilesEntry,
    PermissionEntry,
    PropertyEntry,
    ResourceEntry,
    ReviewDocument,
    SettingEntry,
)

MOST_FILES = 6
MOST_LINES = 6
"""Lines of a part that are shown; of more, the others are folded."""
MOST_CHARACTERS = 60
"""Of a setting's value."""
MOST_MATCHES = 3
"""Of a word of the policy in one environment: a new environment has dozens of new permissions."""
FOLLOWING = "by following others"
UNTRIED = "What a single setting does is found by synthesis without it, and is unknown here."
STACKS, TRAFFIC = "Stacks as a whole", "Traffic"
"""Parts that are never cut, by their titles."""
COST_COLUMNS = ("USD/hour", "how many", "idle", "at most")
HURT = (Effect.REFUSED, Effect.REPLACED, Effect.MAY_BE_REPLACED, Effect.REMOVED, Effect.RETAINED)
"""Effects whose resources are named outside what is folded."""
_LOOKED_AT = {"new", "gone"}
"""Kinds of policy findings that are shown; permissions have the reasons of what is accepted."""
_NOTES = {"yes": "replaces it", "maybe": "may replace it", "no": ""}


@dataclass(frozen=True, kw_only=True)
class MatchGroup:
    """Matches of one word of ``--fail-on`` in one environment. ``first`` is always shown, ``rest`` folded."""

    policy: str
    environment: str
    first: tuple[str, ...]
    rest: tuple[str, ...]


def match_groups(document: ReviewDocument) -> Iterator[MatchGroup]:
    """Matches of the policy, in the report's order."""
    for (policy, environment), matches in groupby(document.matches, key=lambda each: (each.policy, each.environment)):
        sentences = tuple(each.sentence for each in matches)
        # A line "1 more" is as long as the line that it would replace.
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


def setting_effect(entry: SettingEntry) -> str:
    """The effect of a changed setting, in a line."""
    if entry.effect is None:
        return ""
    text = "; ".join(each.text for each in entry.effect) or "nothing in any template"
    return f"with {', '.join(entry.together)}: {text}" if entry.together else text


def setting_value(value: str | None) -> str:
    """The value of a setting, shortened: a map may be a whole endpoint."""
    text = "not set" if value is None else " ".join(value.split())
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"


def resource_groups(environment: EnvironmentEntry) -> list[tuple[Effect, list[ResourceEntry]]]:
    """The resources by effect, in the report's order; those that only follow others last."""
    return [
        (effect, sorted(group, key=lambda each: each.only_follows))
        for effect, group in groupby(environment.resources, key=lambda each: each.effect)
    ]


def resource_counts(environment: EnvironmentEntry) -> str:
    """``2 replaced, 9 changed in place (5 of them by following others)``."""
    texts = []
    for effect, group in resource_groups(environment):
        following = sum(each.only_follows for each in group)
        texts.append(f"{len(group)} {effect.value}{f' ({following} of them {FOLLOWING})' if following else ''}")
    return ", ".join(texts)


def hurt_lines(environment: EnvironmentEntry) -> Iterator[tuple[Effect, tuple[ResourceEntry, ...], str]]:
    """Effect, resources and reason of what can hurt: resources without a reason are listed together."""
    for effect, group in resource_groups(environment):
        if effect in HURT:
            plain = tuple(each for each in group if not each.sentences)
            if plain:
                yield effect, plain, ""
            yield from ((effect, (each,), " ".join(each.sentences)) for each in group if each.sentences)


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of an environment's report."""

    title: str
    shown: tuple[str, ...]
    folded: tuple[str, ...] = ()  # shown on demand
    fold: str = ""  # what is folded: ``2 narrower``
    rows: tuple[tuple[str, ...], ...] = ()  # cells of ``COST_COLUMNS``, above what is shown
    folded_rows: tuple[tuple[str, ...], ...] = ()  # likewise, above what is folded


def sections(environment: EnvironmentEntry) -> Iterator[Section]:
    """Every part that is not empty."""
    parts = (
        Section(title=STACKS, shown=_stacks(environment)),
        _traffic(environment),
        Section(title="Key of the artifacts", shown=tuple(f"{each}." for each in environment.lost_keys)),
        _permissions(environment),
        _openings(environment),
        _cut("Models", tuple(each.sentence for each in environment.models)),
        _cut("Engines", tuple(each.sentence for each in environment.engines)),
        Section(title="Known vulnerabilities", shown=tuple(f"{each}." for each in environment.vulnerable_releases)),
        _cost(environment),
        _findings(environment),
    )
    yield from (each for each in parts if each.shown or each.folded or each.rows)


def _cut(title: str, lines: Sequence[str], folded: Sequence[str] = (), fold: str = "") -> Section:
    """The first lines; the others are folded, above those that are folded anyhow."""
    first = _first(lines)
    words = [f"{len(lines) - first} more"] * (first < len(lines)) + [f"{len(folded)} {fold}"] * bool(folded)
    return Section(title=title, shown=tuple(lines[:first]), folded=(*lines[first:], *folded), fold=", ".join(words))


def _first(lines: Sequence[str]) -> int:
    """Number of lines to show; never all but one, as "1 more" would take a line, too."""
    return MOST_LINES if len(lines) > MOST_LINES + 1 else len(lines)


def _stacks(environment: EnvironmentEntry) -> tuple[str, ...]:
    return tuple(f"{stack.stack_name}: {each}" for stack in environment.stacks for each in stack.sentences)


def _traffic(environment: EnvironmentEntry) -> Section:
    """The endpoints of the stacks that change, the touched ones first."""
    order = {True: 0, None: 1, False: 2}
    still: list[str] = []
    moved: list[str] = []
    for each in sorted(environment.traffic, key=lambda each: order[each.touched]):
        of = still if each.touched is False and each.update == Update.NONE else moved
        sentences = " ".join(each.sentences)
        of.append(sentences if sentences.startswith(f"{each.endpoint} ") else f"{each.endpoint}: {sentences}")
    # A fold of one line takes more room than the line.
    return _cut(TRAFFIC, [*moved, *still] if len(still) == 1 else moved, still if len(still) > 1 else (), "not updated")


def _permissions(environment: EnvironmentEntry) -> Section:
    """Widening by a wildcard without a reason first; narrowing, and reasons of wildcards, are folded."""
    order = {"wider": 1, "other": 2}
    wider = [each for each in environment.permissions if each.kind in order]
    wider.sort(key=lambda each: 0 if each.unreasoned else order[each.kind])
    brief = [permission_words(each, brief=True) for each in wider]
    first = _first(brief)
    whole = [permission_words(each) for each in wider]
    rest = [line for number, line in enumerate(whole) if number >= first or line != brief[number]]
    narrower = [permission_words(each) for each in environment.permissions if each.kind == "narrower"]
    more = f"{len(brief) - first} more, " if first < len(brief) else ""
    words = [f"{more}the reasons of wildcards"] * bool(rest) + [f"{len(narrower)} narrower"] * bool(narrower)
    return Section(title="Permissions", shown=tuple(brief[:first]), folded=(*rest, *narrower), fold=", ".join(words))


def permission_words(entry: PermissionEntry, *, brief: bool = False) -> str:
    """A statement with its wildcards. ``brief``: without those that a written reason accepts."""
    wildcards = entry.wildcards if entry.kind != "narrower" else ()
    if brief and not entry.unreasoned:
        wildcards = ()
    broad = f" Wildcards: {'; '.join(one.rstrip('.') for one in wildcards)}." if wildcards else ""
    foreign = f" Of other accounts: {', '.join(entry.other_accounts)}." if entry.other_accounts else ""
    return f"{entry.stack}/{entry.principal} {entry.statement}.{broad}{foreign}"


def _openings(environment: EnvironmentEntry) -> Section:
    def lines(*kinds: str) -> list[str]:
        found = [each for kind in kinds for each in environment.openings if each.kind == kind]
        return [f"{each.stack}/{each.name} {each.sentence}." for each in found]

    return _cut("What opens and closes", lines("opened", "other"), lines("closed"), "that close")


def _cost(environment: EnvironmentEntry) -> Section:
    """The rows that change, with the sums; the others are folded, all of them where none changes."""
    table = environment.cost_table
    rows = tuple(cost_cells(table)) if table.changed else ()
    same = tuple(_row_cells(each) for each in table.rows if not each.changed)
    fold = "no amount changes"
    if table.changed:
        fold = f"{len(same)} rows of the same cost" if same else "about prices"
    return Section(
        title="Cost",
        shown=(*environment.cost_notes, *unknown_prices(table)),
        folded=(LIST_PRICES,) if table.rows else (),
        fold=fold,
        rows=rows,
        folded_rows=same if table.changed else tuple(cost_cells(table, whole=True)),
    )


def _findings(environment: EnvironmentEntry) -> Section:
    """Policy findings that come and go. What is accepted, or no longer, is folded."""
    shown: list[str] = []
    folded: list[str] = []
    if not environment.findings_known and environment.effect == "changed in place":
        shown.append("Unknown: one side was synthesised without validation.")
    for each in environment.findings:
        why = each.reason or each.description
        line = f"{each.change}: {each.stack}/{each.path}: {each.rule}{f': {why}' if why else ''}"
        (shown if each.change in _LOOKED_AT else folded).append(line)
    kinds = Counter(each.change for each in environment.findings if each.change not in _LOOKED_AT)
    fold = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    return Section(title="Policy findings", shown=tuple(shown), folded=tuple(folded), fold=fold)


def unknown_prices(table: CostTableEntry) -> Iterator[str]:
    """A note on unknown prices; none where all are known."""
    if table.unknown:
        yield f"Unknown: {', '.join(table.unknown)}. `prices:` in the environment's file sets prices by these names."


def cost_cells(table: CostTableEntry, *, whole: bool = False) -> Iterator[tuple[str, ...]]:
    """The cells of ``COST_COLUMNS``: the rows that change, and the sums. ``whole``: all rows."""
    yield from (_row_cells(each) for each in table.rows if whole or each.changed)
    sides = ((table.idle_before, table.idle_after), (table.most_before, table.most_after))
    yield "all", "", *(_moved(_usd(old), _usd(new)) for old, new in sides)
    yield "USD/month", f"{HOURS_A_MONTH} hours", *(_moved(_monthly(old), _monthly(new)) for old, new in sides)


def _row_cells(row: CostRowEntry) -> tuple[str, ...]:
    return (
        row.name,
        _moved(row.quantity_before or "none", row.quantity_after or "none"),
        _moved(_usd(row.idle_before), _usd(row.idle_after)),
        _moved(_usd(row.most_before), _usd(row.most_after)),
    )


def _usd(amount: AmountEntry | None) -> str:
    """Without the unit, which is in the table's corner."""
    return "nothing" if amount is None else amount.text.replace(" USD/hour", "")


def _monthly(amount: AmountEntry) -> str:
    known = f"{amount.at_least * HOURS_A_MONTH:,.0f}"
    if not amount.unknown:
        return known
    return f"at least {known}" if amount.at_least else "unknown"


def _moved(old: str, new: str) -> str:
    return new if old == new else f"{old} → {new}"


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
