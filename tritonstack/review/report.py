"""The report of a change, environment by environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tritonstack.review.access.openings import opening_changes
from tritonstack.review.access.permissions import PermissionChange, permission_changes
from tritonstack.review.change import ABSENT, Effect, EnvironmentChange, PropertyChange, ResourceChange, StackChange
from tritonstack.review.compare import compare
from tritonstack.review.costs.cost_table import CostRow, CostTotals, amount_entry, cost_rows, table_entry
from tritonstack.review.costs.price_book import Prices, prices_of
from tritonstack.review.document import (
    VERSION,
    BaseEntry,
    CostEntry,
    DocumentEntry,
    EnvironmentEntry,
    PermissionEntry,
    PhraseEntry,
    PropertyEntry,
    ResourceEntry,
    ReviewDocument,
    SettingEntry,
    StackEntry,
    closest,
)
from tritonstack.review.intrinsics import Names, texts_of
from tritonstack.review.keys import lost_keys
from tritonstack.review.model_changes.earlier_releases import committed_releases
from tritonstack.review.model_changes.engine_changes import engine_builds
from tritonstack.review.model_changes.models import EarlierReleases, ModelFolders, model_changes, served_sets
from tritonstack.review.model_changes.vulnerable_releases import vulnerable_releases
from tritonstack.review.snapshot import NO_ENVIRONMENT, EnvironmentSnapshot, Snapshots
from tritonstack.review.verdict import effect_of_setting, verdict


@dataclass(frozen=True, kw_only=True)
class Known:
    """Facts besides the templates; callables take the environment's name."""

    prices: Callable[[str], Prices] = lambda _environment: Prices()  # at the base and now
    earlier: Callable[[str], EarlierReleases] = lambda _environment: lambda *_: None  # releases before
    folders: Callable[[str], ModelFolders] = lambda _environment: ModelFolders()  # of its models
    settings: Mapping[str, tuple[SettingEntry, ...]] = field(default_factory=dict)  # environment → those that change

    @classmethod
    def of_project(cls, project: Path, *, base: str) -> Known:
        """From a project's files and commits. ``base``: the commit that the change is compared with."""
        return cls(
            prices=lambda environment: prices_of(environment, base=base, project=project),
            earlier=lambda environment: committed_releases(environment, base=base, repository=project),
            folders=lambda environment: ModelFolders.of(environment, project=project),
        )


def document_of(
    before: Snapshots, after: Snapshots, *, base: BaseEntry, known: Known | None = None, notes: tuple[str, ...] = ()
) -> ReviewDocument:
    """The report of a change: every environment of either side, the unchanged ones included, by name.

    ``known``: facts besides the templates; None without any. ``notes``: remarks on the comparison.
    """
    environments = []
    for change in compare(before, after):
        sides = (each.environments.get(change.name, NO_ENVIRONMENT) for each in (before, after))
        entry, costs = _environment(*sides, change=change, known=known or Known())
        phrases = verdict(entry, costs)
        environments.append(entry.model_copy(update={"verdict": phrases, "level": closest(phrases)}))
    return ReviewDocument(version=VERSION, base=base, notes=notes, environments=tuple(environments), matches=())


def phrases_between(
    before: EnvironmentSnapshot, after: EnvironmentSnapshot, *, known: Known
) -> tuple[PhraseEntry, ...]:
    """Phrases on a deployment of ``after`` over ``before``, the most important first; none without changes."""
    sides = [Snapshots(environments={each.name: each}) for each in (before, after)]
    [change] = compare(*sides)
    return effect_of_setting(*_environment(before, after, change=change, known=known))


def _environment(
    before: EnvironmentSnapshot, after: EnvironmentSnapshot, *, change: EnvironmentChange, known: Known
) -> tuple[EnvironmentEntry, tuple[CostRow, ...]]:
    """An environment without its verdict, and its costs with exact amounts."""
    name = change.name
    # A stack that the app lost stays deployed, so it counts on both sides.
    deployed = replace(after, stacks=dict(sorted({**before.stacks, **after.stacks}.items())))
    prices = known.prices(name)
    if change.effect is Effect.REMOVED:
        prices = replace(prices, after=prices.before)
    # Settings and recipes are read only where a release set changes.
    is_same = served_sets(before) == served_sets(deployed)
    folders = ModelFolders() if is_same else known.folders(name)
    models = model_changes(before, deployed, earlier=known.earlier(name), folders=folders)
    names = Names.of(before, deployed)
    traffic = {(each.stack, each.logical_id): each for stack in change.stacks for each in stack.traffic}
    costs = cost_rows(before, deployed, prices=prices, traffic=traffic)
    permissions = permission_changes(before, deployed)
    # A deployment touches nothing of a stack that the app lost: its resources stay.
    standing = [each for each in change.stacks if each.effect is not Effect.REMOVED]
    entry = EnvironmentEntry(
        name=name,
        effect=change.effect,
        level=closest(()),
        verdict=(),
        settings=known.settings.get(name, ()),
        traffic=tuple(each for stack in standing for each in stack.traffic),
        resources=_resources(standing, names),
        stacks=tuple(_stack(each, names) for each in change.stacks),
        permissions=tuple(_permission(each, names) for each in permissions),
        openings=tuple(
            each.model_copy(update={"sentence": names.in_text(each.stack, each.sentence)})
            for each in opening_changes(before, deployed, permissions=permissions)
        ),
        models=models,
        engines=engine_builds(before, deployed, dependencies=folders.dependencies) if models else (),
        cost=_total([each for each in costs if each.endpoint]),
        cost_notes=tuple(sentence for each in costs for sentence in each.sentences),
        cost_table=table_entry(costs),
        vulnerable_releases=vulnerable_releases(before, deployed),
        lost_keys=lost_keys(before, deployed),
        findings_known=change.findings_known,
        findings=change.findings,
    )
    return entry, costs


def _permission(change: PermissionChange, names: Names) -> PermissionEntry:
    def named(text: str) -> str:
        return names.in_text(change.stack, text)

    return PermissionEntry.model_validate(
        {
            **vars(change),
            "statement": named(change.statement),
            "wildcards": tuple(map(named, change.wildcards)),
            "conditions": tuple(map(named, change.conditions)),
        }
    )


def _resources(stacks: Sequence[StackChange], names: Names) -> tuple[ResourceEntry, ...]:
    """The resources of some stacks by effect."""
    found = [_resource(stack.name, each, names=names) for stack in stacks for each in stack.resources]
    return tuple(sorted(found, key=lambda each: list(Effect).index(each.effect)))


def _resource(stack: str, change: ResourceChange, *, names: Names) -> ResourceEntry:
    properties = [*change.properties, *change.attributes]
    if change.before is None or change.after is None:
        # A new or removed resource: the comparison does not list its properties.
        given = {} if change.before is None else change.before.properties
        taken = {} if change.after is None else change.after.properties
        properties = [
            PropertyChange(path=(name,), before=given.get(name, ABSENT), after=taken.get(name, ABSENT))
            for name in sorted(given.keys() | taken.keys())
        ] + properties
    stays = ("The old one stays in the account.",) if change.old_one_stays else ()
    members = {
        "stack": stack,
        "sentences": (*change.reasons, *stays),
        "tags_only": change.tags_only,
        "only_follows": change.only_follows,
        "properties": tuple(_property(each, stack, names) for each in properties),
    }
    return ResourceEntry.model_validate({**vars(change), **members})


def _property(change: PropertyChange, stack: str, names: Names) -> PropertyEntry:
    """One property, with resource names in place of logical ids."""
    texts = texts_of(change.before, change.after)
    name = names.of_resource if change.path[0] == "DependsOn" else names.in_text
    named = [each and name(stack, each) for each in texts]
    # A resource under another logical id has the same name: then the ids alone show what changes.
    before, after = texts if named[0] == named[1] and texts[0] != texts[1] else named
    follows = change.follows and names.of_resource(stack, change.follows)
    return PropertyEntry.model_validate(
        {**vars(change), "name": change.name, "before": before, "after": after, "follows": follows}
    )


def _stack(change: StackChange, names: Names) -> StackEntry:
    return StackEntry(
        name=change.name,
        stack_name=change.stack_name,
        effect=change.effect,
        sentences=change.reasons,
        template=tuple(_property(each, change.name, names) for each in change.template),
        files=change.assets,
        documents=tuple(
            DocumentEntry(path=path, members=tuple(_property(each, change.name, names) for each in members))
            for path, members in change.documents.items()
        ),
    )


def _total(endpoints: Sequence[CostRow]) -> CostEntry:
    totals = CostTotals.of(endpoints)
    return CostEntry(
        minimum_before=amount_entry(totals.idle[0]),
        minimum_after=amount_entry(totals.idle[1]),
        maximum_before=amount_entry(totals.most[0]),
        maximum_after=amount_entry(totals.most[1]),
        sentence=totals.sentence,
    )
