"""Everything that a review reports of a change, environment by environment, with a verdict on each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import StrEnum
from pathlib import Path

from tritonstack.models.manifest import ManifestStore, Sizes
from tritonstack.review.access.openings import OpeningChange, OpeningKind, opening_changes
from tritonstack.review.access.permissions import Direction, PermissionChange, permission_changes
from tritonstack.review.change import Effect, EnvironmentChange, StackChange, TrafficChange, Update
from tritonstack.review.compare import compare
from tritonstack.review.cost import (
    CostChange,
    CostTotals,
    Prices,
    cost_changes,
    cost_totals,
    grows_by_more,
    moved_text,
    prices_of,
    total,
)
from tritonstack.review.cost_table import CostTable, cost_table
from tritonstack.review.engines import EngineBuild, dependencies_of, engine_builds
from tritonstack.review.intrinsics import Names
from tritonstack.review.models import (
    CommittedReleases,
    EarlierReleases,
    ModelChange,
    ModelKind,
    model_changes,
    served_sets,
    sets_of,
    unproven_models,
)
from tritonstack.review.resource_changes import repeats
from tritonstack.review.settings import Setting
from tritonstack.review.snapshot import PIPELINE, EnvironmentSnapshot, Snapshots
from tritonstack.review.traffic import ENDPOINT, endpoint_name

LEAST_BESIDE = Decimal("0.01")
"""USD an hour: a smaller change of the cost beside endpoints is in no verdict; an alarm costs a hundredth of it."""
ACCEPTED = " — accepted: "
"""In ``PermissionChange.wildcards``, before the reason that accepts a wildcard."""

MOST_ENDPOINTS = 3
"""Whose costs a verdict has one by one."""
MOST_NAMED = 4
"""Types of resources that a setting's verdict names."""
UNTOUCHED = "no endpoint's traffic is touched"


class Level(StrEnum):
    """How closely a change is to be looked at."""

    NOTHING = "nothing changes"
    PLAIN = "plain"
    LOOK = "look at it"
    CLOSE = "look closely"


@dataclass(frozen=True)
class Phrase:
    """One part of a verdict."""

    level: Level
    text: str


@dataclass(frozen=True, kw_only=True)
class SettingEffect:
    """A setting that changes, and what a deployment of this one change alone does."""

    setting: Setting
    phrases: tuple[Phrase, ...] | None = None  # as a verdict's; None where that is unknown
    together: tuple[str, ...] = ()  # paths of settings that it is valid only with: the phrases are those of all of them

    @property
    def level(self) -> Level | None:
        """How closely to look: the closest of its phrases."""
        return None if self.phrases is None else closest(self.phrases)


@dataclass(frozen=True, kw_only=True)
class Base:
    """What the change is compared with."""

    ref: str  # the branch, tag or commit
    commit: str  # the merge base of it and HEAD
    chosen: bool  # whether ``ref`` was given; if not, it is the default


@dataclass(frozen=True, kw_only=True)
class Known:
    """What is known besides the templates; callables take the environment's name."""

    prices: Callable[[str], Prices] = lambda _environment: Prices()  # at the base and now
    stores: tuple[ManifestStore, ...] = ()  # manifests of archives
    earlier: Callable[[str], EarlierReleases] = lambda _environment: lambda *_: None  # releases before
    dependencies: Callable[[str], Mapping[str, str]] = lambda _environment: {}  # model → what its archive depends on
    unproven: Callable[[str], Mapping[str, str]] = lambda _environment: {}  # model → why nothing proves its archive
    settings: Mapping[str, tuple[SettingEffect, ...]] = field(default_factory=dict)  # environment → those that change

    @classmethod
    def of_project(cls, project: Path, *, base: str, stores: tuple[ManifestStore, ...]) -> Known:
        """From a project's files and commits. ``base``: the commit that the change is compared with."""
        return cls(
            prices=lambda environment: prices_of(environment, base=base, project=project),
            stores=stores,
            earlier=lambda environment: CommittedReleases(environment=environment, base=base, repository=project),
            dependencies=lambda environment: dependencies_of(environment, project=project),
            unproven=lambda environment: unproven_models(environment, project=project),
        )


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What is reported of one environment besides its resources."""

    models: tuple[ModelChange, ...] = ()  # those that change
    engines: tuple[EngineBuild, ...] = ()  # those that are to be built
    costs: tuple[CostChange, ...] = ()  # of every endpoint
    # what the whole environment costs, before and after
    tables: tuple[CostTable, CostTable] = (CostTable(), CostTable())
    permissions: tuple[PermissionChange, ...] = ()  # those that change
    openings: tuple[OpeningChange, ...] = ()  # of networks, data and programs
    releases: tuple[str, ...] = ()  # sentences on Triton releases that add known vulnerabilities
    settings: tuple[SettingEffect, ...] = ()  # those that change
    names: Names = field(default_factory=Names)  # of what its templates refer to

    @property
    def cost(self) -> CostTotals:
        """Of all endpoints together."""
        return cost_totals(self.costs)


@dataclass(frozen=True, kw_only=True)
class EnvironmentReport:
    """One environment: its changes, its other parts, and what happens in phrases."""

    changes: EnvironmentChange
    parts: Parts
    phrases: tuple[Phrase, ...]

    @property
    def name(self) -> str:
        """``dev``."""
        return self.changes.name

    @property
    def level(self) -> Level:
        """How closely to look: the closest of its phrases."""
        return closest(self.phrases)

    @property
    def verdict(self) -> str:
        """The phrases on one line."""
        return "; ".join(each.text for each in self.phrases)


@dataclass(frozen=True, kw_only=True)
class Report:
    """Every environment of either side, the unchanged ones included, by name.

    ``notes``: what a reader must know about the comparison itself.
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
        parts = _parts(*sides, change=change, known=known or Known())
        reports.append(EnvironmentReport(changes=change, parts=parts, phrases=tuple(_verdict(change, parts))))
    return Report(base=base, environments=tuple(reports), notes=notes)


def closest(phrases: Iterable[Phrase]) -> Level:
    """The closest level of some phrases."""
    return max((each.level for each in phrases), key=list(Level).index, default=Level.NOTHING)


def phrases_between(before: EnvironmentSnapshot, after: EnvironmentSnapshot, *, known: Known) -> tuple[Phrase, ...]:
    """What a deployment of ``after`` over ``before`` does, the closest first; none where it does nothing."""
    [change] = compare(
        Snapshots(environments={before.name: before}), Snapshots(environments={after.name: after})
    ).environments
    parts = _parts(before, after, change=change, known=known)
    if change.effect is None and not any(each.changed for each in parts.costs):
        return ()
    phrases = [each for each in _phrases(change, parts, named=True) if each.text != UNTOUCHED]
    return tuple(sorted(phrases, key=lambda each: -list(Level).index(each.level)))


def standing(stacks: Iterable[StackChange]) -> tuple[StackChange, ...]:
    """The stacks that the app still has. A deployment touches nothing of one that it lost: its resources stay."""
    return tuple(each for each in stacks if each.effect is not Effect.REMOVED)


def _parts(
    before: EnvironmentSnapshot | None, after: EnvironmentSnapshot | None, *, change: EnvironmentChange, known: Known
) -> Parts:
    """The parts of one environment. A stack that the app lost stays deployed, so it counts on both sides."""
    name = change.name
    deployed = after or before
    if before is not None and after is not None:
        deployed = replace(after, stacks=dict(sorted({**before.stacks, **after.stacks}.items())))
    prices = known.prices(name)
    if after is None:
        prices = replace(prices, after=prices.before)
    # Settings and recipes are read only where a release set changes.
    is_same = served_sets(before) == served_sets(deployed)
    dependencies = {} if is_same else known.dependencies(name)
    models = model_changes(
        before,
        deployed,
        sizes=Sizes(known.stores),
        earlier=known.earlier(name),
        dependencies=dependencies,
        unproven={} if is_same else known.unproven(name),
    )
    costs = cost_changes(before, deployed, prices=prices, change=change)
    old = [(each.endpoint, each.before) for each in costs if each.before is not None]
    new = [(each.endpoint, each.after) for each in costs if each.after is not None]
    permissions = permission_changes(before, deployed)
    names = Names.of(before, deployed)
    return Parts(
        models=models,
        engines=engine_builds(before, deployed, stores=known.stores, dependencies=dependencies) if models else (),
        costs=costs,
        tables=(
            cost_table(before, book=prices.before, endpoints=old),
            cost_table(deployed, book=prices.after, endpoints=new),
        ),
        permissions=tuple(
            replace(
                each,
                statement=names.in_text(each.stack, each.statement),
                wildcards=tuple(names.in_text(each.stack, one) for one in each.wildcards),
                conditions=tuple(names.in_text(each.stack, one) for one in each.conditions),
            )
            for each in permissions
        ),
        openings=tuple(
            replace(each, sentence=names.in_text(each.stack, each.sentence))
            for each in opening_changes(before, deployed, permissions=permissions)
        ),
        releases=vulnerable_releases(before, deployed),
        settings=known.settings.get(name, ()),
        names=names,
    )


# Triton releases with known vulnerabilities.
_TAG = re.compile(r":(\d{2}\.(?:0[1-9]|1[0-2]))(?:-|$)")
"""The release in an image's tag: ``…/sagemaker-tritonserver:24.09-py3``."""


def vulnerable_releases(before: EnvironmentSnapshot | None, after: EnvironmentSnapshot | None) -> tuple[str, ...]:
    """A sentence for every endpoint that gets vulnerabilities which it did not have, by stack and name."""
    from tritonstack.catalogue import load_catalogue  # noqa: PLC0415 - its data files, rarely needed

    known, had, found = load_catalogue().vulnerabilities, dict(_releases(before)), []
    for (stack, endpoint), release in _releases(after):
        then = had.get((stack, endpoint))
        earlier = set() if then is None else {each.id for each in known(then)}
        added = [each for each in known(release) if each.id not in earlier]
        if not added:
            continue
        runs = f"runs release {release} instead of {then}: {len(added)} more known vulnerabilities"
        if then is None:
            runs = f"is new on release {release}, which has {len(added)} known vulnerabilities"
        score = "" if added[0].score is None else f"CVSS {added[0].score}, "
        found.append(f"{stack}: {endpoint} {runs}, the gravest {added[0].id} ({score}fixed in {added[0].fixed_in})")
    return tuple(found)


def _releases(environment: EnvironmentSnapshot | None) -> Iterator[tuple[tuple[str, str], str]]:
    """Stack and endpoint, and the release: the release set's, else the one in the image's tag."""
    stacks = {} if environment is None else environment.stacks
    for _, stack in sorted(stacks.items()):
        sets = {each.logical_id: each.platform.release for each in sets_of(stack)}
        models = [each.properties.get("PrimaryContainer", {}) for each in stack.of_type("AWS::SageMaker::Model")]
        tagged = {match[1] for each in models if (match := _TAG.search(str(each.get("Image", ""))))}
        of_image = tagged.pop() if len(tagged) == 1 else None
        for endpoint in stack.of_type(ENDPOINT):
            release = sets.get(endpoint.logical_id) or of_image
            if release is not None:
                yield (stack.name, endpoint_name(endpoint)), release


# Verdicts.
_LEVELS = {
    Effect.REFUSED: Level.CLOSE,
    Effect.REPLACED: Level.LOOK,
    Effect.MAY_BE_REPLACED: Level.LOOK,
    Effect.REMOVED: Level.LOOK,
    Effect.RETAINED: Level.LOOK,
}


def _verdict(changes: EnvironmentChange, parts: Parts) -> Iterator[Phrase]:
    if changes.effect is None and not any(each.changed for each in parts.costs):
        yield Phrase(Level.NOTHING, "every template is as it was")
        return
    phrases = list(_phrases(changes, parts))
    yield from phrases or [Phrase(Level.PLAIN, "only the acceptance of policy findings changes")]


def _phrases(changes: EnvironmentChange, parts: Parts, *, named: bool = False) -> Iterator[Phrase]:
    """``named``: whether types of resources are named where they are few, and traffic comes first."""
    if changes.effect is Effect.NEW:
        what = "pipeline" if changes.name == PIPELINE else "environment"
        yield Phrase(Level.LOOK, f"a new {what} of {_count(len(changes.stacks), 'stack')}")
    elif changes.effect is Effect.REMOVED:
        stacks = _count(len(changes.stacks), "stack")
        yield Phrase(Level.CLOSE, f"the app no longer has it: no deployment removes its {stacks}")
        return
    resources = _resources(changes, named=named)
    traffic = _traffic([each for stack in standing(changes.stacks) for each in stack.traffic])
    yield from (*traffic, *resources) if named else (*resources, *traffic)
    yield from _permissions(parts)
    yield from _models(parts)
    yield from _cost(parts)
    if changes.findings.new:
        yield Phrase(Level.CLOSE, _count(len(changes.findings.new), "new policy finding"))


def _resources(changes: EnvironmentChange, *, named: bool) -> Iterator[Phrase]:
    gone = [each.stack_name for each in changes.stacks if each.effect is Effect.REMOVED]
    if gone:
        yield Phrase(Level.CLOSE, f"the app no longer has {', '.join(gone)}, which no deployment removes")
    moved = [each.stack_name_before for each in changes.stacks if each.effect is Effect.REPLACED]
    if moved:
        yield Phrase(Level.CLOSE, f"another stack takes the place of {', '.join(moved)}")
    resources = [each for stack in standing(changes.stacks) for each in stack.resources]
    counts = Counter(each.effect for each in resources)
    own = _own(changes.stacks) if named else {}
    for effect in Effect:
        if counts[effect]:
            names = own.get(effect, [])
            of = f" ({', '.join(names)})" if 0 < len(names) <= MOST_NAMED else ""
            yield Phrase(_LEVELS.get(effect, Level.PLAIN), f"{counts[effect]} {effect.value}{of}")
    # "deleted" is worse than "replaced", and comes first.
    unkept = Counter(each.no_longer_kept[0] for each in resources if each.no_longer_kept)
    for when in ("deleted", "replaced"):
        if unkept[when]:
            yield Phrase(Level.LOOK, f"{_count(unkept[when], 'resource')} no longer kept when {when}")


def _own(stacks: Iterable[StackChange]) -> dict[Effect, list[str]]:
    """Effect → types of the resources that do not only repeat another, without the service."""
    stacks = standing(stacks)
    echoes, found = repeats(stacks), dict[Effect, list[str]]()
    for stack in stacks:
        for each in stack.resources:
            kind = each.type.rpartition("::")[2]
            if (stack.name, each.logical_id) not in echoes and kind not in found.setdefault(each.effect, []):
                found[each.effect].append(kind)
    return found


def _traffic(traffic: list[TrafficChange]) -> Iterator[Phrase]:
    for each in traffic:
        if each.update is Update.REMOVED:
            yield Phrase(Level.CLOSE, f"{each.endpoint} is removed: requests to it fail")
        elif each.update is Update.REPLACED:
            yield Phrase(Level.CLOSE, f"{each.endpoint} is replaced: requests to the old one fail")
        elif each.update is Update.CREATED:
            yield Phrase(Level.PLAIN, f"{each.endpoint} is created")
        elif each.touched is not False:
            verb = "shifts" if each.touched else "may shift"
            yield Phrase(Level.LOOK, f"traffic of {each.endpoint} {verb} ({each.update.value})")
    if traffic and all(each.touched is False and each.update is Update.NONE for each in traffic):
        yield Phrase(Level.PLAIN, UNTOUCHED)


def _permissions(parts: Parts) -> Iterator[Phrase]:
    counts = Counter(each.kind for each in parts.permissions)
    wider = [each for each in parts.permissions if each.kind is Direction.WIDER]
    broad = sum(map(broad_without_reason, wider))
    if wider:
        text = f"{_count(len(wider), 'permission')} wider{f', {broad} by wildcards' if broad else ''}"
        yield Phrase(Level.CLOSE if broad else Level.LOOK, text)
    if counts[Direction.NARROWER]:
        yield Phrase(Level.PLAIN, f"{_count(counts[Direction.NARROWER], 'permission')} narrower")
    if counts[Direction.OTHER]:
        yield Phrase(Level.LOOK, f"{_count(counts[Direction.OTHER], 'permission')} changed otherwise")
    openings = Counter(each.kind for each in parts.openings)
    for kind, level, words in (
        (OpeningKind.OPENED, Level.CLOSE, "opened"),
        (OpeningKind.OTHER, Level.LOOK, "open otherwise"),
        (OpeningKind.CLOSED, Level.PLAIN, "closed"),
    ):
        if openings[kind]:
            yield Phrase(level, f"{_count(openings[kind], 'way')} in or out {words}")


def broad_without_reason(change: PermissionChange) -> bool:
    """Whether a permission has a wildcard that no written reason accepts."""
    return any(ACCEPTED not in each for each in change.wildcards)


def _models(parts: Parts) -> Iterator[Phrase]:
    counts = Counter(each.kind for each in parts.models)
    for kind in ModelKind:
        if counts[kind]:
            level = Level.LOOK if kind in {ModelKind.REMOVED, ModelKind.ROLLED_BACK} else Level.PLAIN
            yield Phrase(level, f"{_count(counts[kind], 'model')} {kind.value}")
    engines = Counter(each.certain for each in parts.engines)
    for certain, words in ((True, "to build"), (False, "perhaps to build")):
        if engines[certain]:
            yield Phrase(Level.LOOK, f"{_count(engines[certain], 'engine')} {words}")


def _cost(parts: Parts) -> Iterator[Phrase]:
    """The cost of an environment, where it changes, and where what it becomes is unknown."""
    changed = [each for each in parts.costs if each.changed]
    for totals, names in _by_endpoint(changed):
        less = totals.grow_by_more(Decimal(0)) is False
        yield Phrase(Level.PLAIN if less else Level.LOOK, f"cost of {names} {totals.moved}")
    old, new = (total(each.idle for each in table.beside if each.idle is not None) for table in parts.tables)
    if abs(new.known - old.known) >= LEAST_BESIDE or new.unknown.keys() - old.unknown.keys():
        less = grows_by_more(old, new, percent=Decimal(0)) is False
        yield Phrase(Level.PLAIN if less else Level.LOOK, f"cost beside endpoints {moved_text(old, new)}")


def _by_endpoint(changed: Sequence[CostChange]) -> Iterator[tuple[CostTotals, str]]:
    """The costs of a few endpoints one by one, of more together."""
    if len(changed) <= MOST_ENDPOINTS:
        yield from ((cost_totals([each]), each.endpoint) for each in changed)
    else:
        yield cost_totals(changed), f"{len(changed)} endpoints ({', '.join(each.endpoint for each in changed)})"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
