"""Everything that a review reports of a change, and its verdict: one line that says what to look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from tritonstack.review.change import Effect, EnvironmentChange, StackChange, TrafficChange, Update
from tritonstack.review.changes import compare
from tritonstack.review.cost import grows_by_more, moved_text, total
from tritonstack.review.engines import Need
from tritonstack.review.models import ModelKind
from tritonstack.review.opening_facts import OpeningKind
from tritonstack.review.parts import Known, Parts, parts_of
from tritonstack.review.permission_change import Direction, PermissionChange
from tritonstack.review.pipeline_side import PIPELINE
from tritonstack.review.snapshot import Snapshots

BY_WEIGHT = (
    Effect.REFUSED,
    Effect.REPLACED,
    Effect.MAY_BE_REPLACED,
    Effect.REMOVED,
    Effect.RETAINED,
    Effect.NEW,
    Effect.RENAMED,
    Effect.CHANGED,
    Effect.MAY_CHANGE,
    Effect.TEMPLATE_ONLY,
)
"""Effects as a report orders them: what can hurt comes first."""
LEAST_BESIDE = Decimal("0.01")
"""USD an hour: a change of what stands beside endpoints is told from here on; an alarm more costs a hundredth of it."""
_WORDS = {Direction.NARROWER: "narrower", Direction.OTHER: "changed otherwise"}
ACCEPTED = " — accepted: "
"""How a wildcard goes on in ``PermissionChange.wildcards`` where a written reason accepts it."""


class Level(StrEnum):
    """How closely a change is to be looked at."""

    NOTHING = "nothing changes"
    PLAIN = "plain"
    LOOK = "look at it"
    CLOSE = "look closely"


@dataclass(frozen=True)
class Phrase:
    """One thing that a verdict says, and how closely to look at it."""

    level: Level
    text: str


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What one line says.

    Attributes:
        level: how closely to look: the closest of its phrases.
        phrases: what happens.
    """

    level: Level
    phrases: tuple[Phrase, ...]

    @property
    def sentence(self) -> str:
        """The phrases, parted by semicolons."""
        return "; ".join(each.text for each in self.phrases)


def standing(stacks: Iterable[StackChange]) -> tuple[StackChange, ...]:
    """The stacks that the app still has.

    A deployment touches nothing of one that it lost: its resources and its endpoints stay, and are no changes to list.
    """
    return tuple(each for each in stacks if each.effect is not Effect.REMOVED)


def verdict_of(changes: EnvironmentChange, parts: Parts) -> Verdict:
    """The verdict on one environment."""
    if changes.effect is None and not any(each.changed for each in parts.costs):
        return Verdict(level=Level.NOTHING, phrases=(Phrase(Level.NOTHING, "every template is as it was"),))
    said = tuple(_phrases(changes, parts)) or (Phrase(Level.PLAIN, "only what is said of policy findings changes"),)
    return Verdict(level=max((each.level for each in said), key=list(Level).index), phrases=said)


def _phrases(changes: EnvironmentChange, parts: Parts) -> Iterator[Phrase]:
    if changes.effect is Effect.NEW:
        what = "pipeline" if changes.name == PIPELINE else "environment"
        yield Phrase(Level.LOOK, f"a new {what} of {_count(len(changes.stacks), 'stack')}")
    elif changes.effect is Effect.REMOVED:
        stacks = _count(len(changes.stacks), "stack")
        yield Phrase(Level.CLOSE, f"the app no longer has it: no deployment removes its {stacks}")
        return
    yield from _resources(changes)
    yield from _traffic([each for stack in standing(changes.stacks) for each in stack.traffic])
    yield from _permissions(parts)
    yield from _openings(parts)
    yield from _models(parts)
    yield from _cost(parts)
    if changes.findings.new:
        yield Phrase(Level.CLOSE, _count(len(changes.findings.new), "new policy finding"))


def _resources(changes: EnvironmentChange) -> Iterator[Phrase]:
    gone = [each.stack_name for each in changes.stacks if each.effect is Effect.REMOVED]
    if gone:
        yield Phrase(Level.CLOSE, f"the app no longer has {', '.join(gone)}, which no deployment removes")
    moved = [each.stack_name_before for each in changes.stacks if each.effect is Effect.REPLACED]
    if moved:
        yield Phrase(Level.CLOSE, f"another stack takes the place of {', '.join(moved)}")
    resources = [each for stack in standing(changes.stacks) for each in stack.resources]
    counts = Counter(each.effect for each in resources)
    levels = {
        Effect.REFUSED: Level.CLOSE,
        Effect.REPLACED: Level.LOOK,
        Effect.MAY_BE_REPLACED: Level.LOOK,
        Effect.REMOVED: Level.LOOK,
        Effect.RETAINED: Level.LOOK,
    }
    for effect in BY_WEIGHT:
        if counts[effect]:
            yield Phrase(levels.get(effect, Level.PLAIN), f"{counts[effect]} {effect.value}")
    # When it is deleted, which is worse, or else only when it is replaced.
    unkept = Counter(
        min(each.no_longer_kept, default="") for stack in standing(changes.stacks) for each in stack.resources
    )
    for when in ("deleted", "replaced"):
        if unkept[when]:
            yield Phrase(Level.LOOK, f"{_count(unkept[when], 'resource')} no longer kept when {when}")


def _traffic(traffic: list[TrafficChange]) -> Iterator[Phrase]:
    for each in traffic:
        if each.update is Update.REMOVED:
            yield Phrase(Level.CLOSE, f"{each.endpoint} is removed: its callers fail")
        elif each.update is Update.REPLACED:
            yield Phrase(Level.CLOSE, f"{each.endpoint} is replaced: callers of the old one fail")
        elif each.update is Update.CREATED:
            yield Phrase(Level.PLAIN, f"{each.endpoint} is created")
        elif each.touched:
            yield Phrase(Level.LOOK, f"calls to {each.endpoint} move ({each.update.value})")
        elif each.touched is None:
            yield Phrase(Level.LOOK, f"calls to {each.endpoint} may move ({each.update.value})")
    if traffic and all(each.touched is False and each.update is Update.NONE for each in traffic):
        yield Phrase(Level.PLAIN, "no endpoint's calls are touched")


def _permissions(parts: Parts) -> Iterator[Phrase]:
    wider = [each for each in parts.permissions if each.kind is Direction.WIDER]
    broad = sum(map(broad_without_reason, wider))
    if wider:
        told = f"{_count(len(wider), 'permission')} wider{f', {broad} by wildcards' if broad else ''}"
        yield Phrase(Level.CLOSE if broad else Level.LOOK, told)
    other = Counter(each.kind for each in parts.permissions if each.kind is not Direction.WIDER)
    for kind, number in sorted(other.items()):
        level = Level.PLAIN if kind is Direction.NARROWER else Level.LOOK
        yield Phrase(level, f"{_count(number, 'permission')} {_WORDS[kind]}")


def _openings(parts: Parts) -> Iterator[Phrase]:
    levels = {OpeningKind.OPENED: Level.CLOSE, OpeningKind.OTHER: Level.LOOK, OpeningKind.CLOSED: Level.PLAIN}
    words = {OpeningKind.OPENED: "opened", OpeningKind.OTHER: "open otherwise", OpeningKind.CLOSED: "closed"}
    counts = Counter(each.kind for each in parts.openings)
    for kind, level in levels.items():
        if counts[kind]:
            yield Phrase(level, f"{_count(counts[kind], 'way')} in or out {words[kind]}")


def broad_without_reason(change: PermissionChange) -> bool:
    """Whether a permission has a wildcard that no written reason accepts."""
    return any(ACCEPTED not in each for each in change.wildcards)


def _models(parts: Parts) -> Iterator[Phrase]:
    counts = Counter(each.kind for each in parts.models)
    for kind in ModelKind:
        if counts[kind]:
            level = Level.LOOK if kind in {ModelKind.REMOVED, ModelKind.ROLLED_BACK} else Level.PLAIN
            yield Phrase(level, f"{_count(counts[kind], 'model')} {kind.value}")
    sure = sum(each.need is Need.YES for each in parts.engines)
    if sure:
        yield Phrase(Level.LOOK, f"{_count(sure, 'engine')} to build")
    if len(parts.engines) > sure:
        yield Phrase(Level.LOOK, f"{_count(len(parts.engines) - sure, 'engine')} perhaps to build")


def _cost(parts: Parts) -> Iterator[Phrase]:
    """The cost of an environment, where it changes, and where what it becomes is not known."""
    totals = parts.cost
    if any(each.changed for each in parts.costs):
        less = totals.grow_by_more(Decimal(0)) is False
        yield Phrase(Level.PLAIN if less else Level.LOOK, f"cost {totals.sentence}")
    old, new = (total(each.idle for each in table.beside if each.idle is not None) for table in parts.tables)
    if abs(new.known - old.known) >= LEAST_BESIDE or new.unknown.keys() - old.unknown.keys():
        less = grows_by_more(old, new, percent=Decimal(0)) is False
        yield Phrase(Level.PLAIN if less else Level.LOOK, f"cost beside endpoints {moved_text(old, new)}")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


__all__ = ["Base", "EnvironmentReport", "Report", "report_of", "standing"]


@dataclass(frozen=True, kw_only=True)
class Base:
    """What the change is compared with.

    Attributes:
        ref: the branch, tag or commit that was asked for.
        commit: the merge base of it and HEAD.
        chosen: whether a person named ``ref``; if not, it is the default.
    """

    ref: str
    commit: str
    chosen: bool


@dataclass(frozen=True, kw_only=True)
class EnvironmentReport:
    """One environment.

    Attributes:
        changes: of its resources, traffic and policy findings.
        parts: models, engines, cost, permissions, openings.
        verdict: in one line.
    """

    changes: EnvironmentChange
    parts: Parts
    verdict: Verdict

    @property
    def name(self) -> str:
        """``dev``."""
        return self.changes.name


@dataclass(frozen=True, kw_only=True)
class Report:
    """Every environment of either side, by name.

    Attributes:
        base: what the change is compared with.
        environments: the unchanged ones included.
        notes: what a reader must know of the comparison itself.
    """

    base: Base
    environments: tuple[EnvironmentReport, ...]
    notes: tuple[str, ...] = ()


def report_of(
    before: Snapshots, after: Snapshots, *, base: Base, known: Known | None = None, notes: tuple[str, ...] = ()
) -> Report:
    """The report of a change. ``known``: None where nothing is known but the templates."""
    reports = []
    for change in compare(before, after).environments:
        sides = before.environments.get(change.name), after.environments.get(change.name)
        parts = parts_of(*sides, change=change, known=known or Known())
        reports.append(EnvironmentReport(changes=change, parts=parts, verdict=verdict_of(change, parts)))
    return Report(base=base, environments=tuple(reports), notes=notes)
