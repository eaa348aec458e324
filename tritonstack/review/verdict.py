"""Verdicts: what happens to an environment, in phrases, each with how closely to look at it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal

from tritonstack.review.access.openings import OpeningKind
from tritonstack.review.access.permissions import Direction
from tritonstack.review.change import Effect, Level, Update
from tritonstack.review.costs.amounts import moved_text
from tritonstack.review.costs.cost_table import CostRow, CostTotals
from tritonstack.review.document import EnvironmentEntry, PhraseEntry
from tritonstack.review.model_changes.models import ModelChangeKind
from tritonstack.review.snapshot import PIPELINE

LEAST_BESIDE = Decimal("0.01")
"""USD an hour: a smaller change of the cost besides endpoints is in no verdict; an alarm costs a hundredth of it."""
MOST_ENDPOINTS = 3
"""Whose costs a verdict has one by one."""
MOST_NAMED = 4
"""Types of resources that a setting's verdict names."""
UNTOUCHED = "no endpoint's traffic is touched"
_LEVELS = {
    Effect.REFUSED: Level.CLOSE,
    Effect.REPLACED: Level.LOOK,
    Effect.MAY_BE_REPLACED: Level.LOOK,
    Effect.REMOVED: Level.LOOK,
    Effect.RETAINED: Level.LOOK,
}
Phrases = Iterator[PhraseEntry]


def verdict(environment: EnvironmentEntry, costs: Sequence[CostRow]) -> tuple[PhraseEntry, ...]:
    """The verdict on an environment's change. ``costs``: its rows, with exact amounts."""
    if not _moves(environment, costs):
        return (_phrase(Level.NOTHING, "every template is as it was"),)
    phrases = tuple(_phrases(environment, costs))
    return phrases or (_phrase(Level.PLAIN, "only the acceptance of policy findings changes"),)


def effect_of_setting(environment: EnvironmentEntry, costs: Sequence[CostRow]) -> tuple[PhraseEntry, ...]:
    """The same of one setting, the closest first, with types of resources where they are few; empty for nothing."""
    if not _moves(environment, costs):
        return ()
    phrases = [each for each in _phrases(environment, costs, named=True) if each.text != UNTOUCHED]
    return tuple(sorted(phrases, key=lambda each: -list(Level).index(each.level)))


def _moves(environment: EnvironmentEntry, costs: Sequence[CostRow]) -> bool:
    return environment.effect is not None or any(each.changed for each in costs if each.endpoint)


def _phrase(level: Level, text: str) -> PhraseEntry:
    return PhraseEntry(level=level, text=text)


def _phrases(environment: EnvironmentEntry, costs: Sequence[CostRow], *, named: bool = False) -> Phrases:
    """``named``: whether types of resources are named where they are few, and traffic comes first."""
    stacks = _count(len(environment.stacks), "stack")
    if environment.effect is Effect.NEW:
        what = "pipeline" if environment.name == PIPELINE else "environment"
        yield _phrase(Level.LOOK, f"a new {what} of {stacks}")
    elif environment.effect is Effect.REMOVED:
        yield _phrase(Level.CLOSE, f"the app no longer has it: no deployment removes its {stacks}")
        return
    parts = [_resources(environment, named=named), _traffic(environment)]
    for part in reversed(parts) if named else parts:
        yield from part
    yield from _keys(environment)
    yield from _access(environment)
    yield from _models(environment)
    yield from _cost(costs)
    new = sum(each.change == "new" for each in environment.findings)
    if new:
        yield _phrase(Level.CLOSE, _count(new, "new policy finding"))


def _keys(environment: EnvironmentEntry) -> Phrases:
    for _ in environment.lost_keys[:1]:
        yield _phrase(Level.CLOSE, "a key that archives may be encrypted with can no longer be used")


def _resources(environment: EnvironmentEntry, *, named: bool) -> Phrases:
    gone = [each.stack_name for each in environment.stacks if each.effect is Effect.REMOVED]
    if gone:
        yield _phrase(Level.CLOSE, f"the app no longer has {', '.join(gone)}, which no deployment removes")
    moved = [each.stack_name_before for each in environment.stacks if each.effect is Effect.REPLACED]
    if moved:
        yield _phrase(Level.CLOSE, f"another stack takes the place of {', '.join(moved)}")
    for effect in Effect:
        resources = [each for each in environment.resources if each.effect is effect]
        # Types, without the service, of those that do not only follow another.
        types = dict.fromkeys(each.type.rpartition("::")[2] for each in resources if not each.only_follows)
        of = f" ({', '.join(types)})" if named and 0 < len(types) <= MOST_NAMED else ""
        if resources:
            yield _phrase(_LEVELS.get(effect, Level.PLAIN), f"{len(resources)} {effect.value}{of}")
    # "deleted" is worse than "replaced", and comes first.
    unkept = Counter(each.no_longer_kept[0] for each in environment.resources if each.no_longer_kept)
    for when in ("deleted", "replaced"):
        if unkept[when]:
            yield _phrase(Level.LOOK, f"{_count(unkept[when], 'resource')} no longer kept when {when}")


def _traffic(environment: EnvironmentEntry) -> Phrases:
    for each in environment.traffic:
        if each.update == Update.REMOVED:
            yield _phrase(Level.CLOSE, f"{each.endpoint} is removed: requests to it fail")
        elif each.update == Update.REPLACED:
            yield _phrase(Level.CLOSE, f"{each.endpoint} is replaced: requests to the old one fail")
        elif each.update == Update.CREATED:
            yield _phrase(Level.PLAIN, f"{each.endpoint} is created")
        elif each.touched is not False:
            verb = "shifts" if each.touched else "may shift"
            yield _phrase(Level.LOOK, f"traffic of {each.endpoint} {verb} ({each.update})")
    if environment.traffic and all(
        each.touched is False and each.update == Update.NONE for each in environment.traffic
    ):
        yield _phrase(Level.PLAIN, UNTOUCHED)


def _access(environment: EnvironmentEntry) -> Phrases:
    """Permissions and openings."""
    permissions = Counter(each.kind for each in environment.permissions)
    broad = sum(each.kind == Direction.WIDER and each.unreasoned for each in environment.permissions)
    openings = Counter(each.kind for each in environment.openings)
    close = Level.CLOSE if broad else Level.LOOK
    for count, level, noun, words in (
        (permissions[Direction.WIDER], close, "permission", f"wider{f', {broad} by wildcards' if broad else ''}"),
        (permissions[Direction.NARROWER], Level.PLAIN, "permission", "narrower"),
        (permissions[Direction.OTHER], Level.LOOK, "permission", "changed otherwise"),
        (openings[OpeningKind.OPENED], Level.CLOSE, "way", "in or out opened"),
        (openings[OpeningKind.OTHER], Level.LOOK, "way", "in or out open otherwise"),
        (openings[OpeningKind.CLOSED], Level.PLAIN, "way", "in or out closed"),
    ):
        if count:
            yield _phrase(level, f"{_count(count, noun)} {words}")


def _models(environment: EnvironmentEntry) -> Phrases:
    counts = Counter(each.kind for each in environment.models)
    for kind in ModelChangeKind:
        if counts[kind]:
            closely = {ModelChangeKind.REMOVED, ModelChangeKind.ROLLED_BACK, ModelChangeKind.ADDED_BESIDE}
            level = Level.LOOK if kind in closely else Level.PLAIN
            yield _phrase(level, f"{_count(counts[kind], 'model')} {kind.value}")
    if environment.engines:
        yield _phrase(Level.LOOK, f"{_count(len(environment.engines), 'engine')} to build")


def _cost(costs: Sequence[CostRow]) -> Phrases:
    """The cost of an environment, where it changes, or where its new value is unknown."""
    changed = [each for each in costs if each.endpoint and each.changed]
    groups = [([each], each.endpoint) for each in changed]
    if len(changed) > MOST_ENDPOINTS:
        groups = [(changed, f"{len(changed)} endpoints ({', '.join(each.endpoint for each in changed)})")]
    for rows, names in groups:
        totals = CostTotals.of(rows)
        yield _phrase(Level.PLAIN if totals.falls else Level.LOOK, f"cost of {names} {totals.moved}")
    beside = CostTotals.of([each for each in costs if not each.endpoint])
    old, new = beside.idle
    if abs(new.known - old.known) >= LEAST_BESIDE or new.unknown.keys() - old.unknown.keys():
        yield _phrase(Level.PLAIN if beside.falls else Level.LOOK, f"cost besides endpoints {moved_text(old, new)}")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
