"""The parts of a report beside resources: models, engines, cost, permissions, openings, vulnerable releases."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tritonstack.models.manifest import ManifestStore, Sizes
from tritonstack.review.change import EnvironmentChange
from tritonstack.review.cost import CostChange, CostTotals, Prices, cost_changes, cost_totals, prices_of
from tritonstack.review.cost_table import CostTable, cost_table
from tritonstack.review.engines import EngineBuildNotice, EngineTimes, dependencies_of, engine_builds
from tritonstack.review.fleets import ENDPOINT, name_of
from tritonstack.review.models import EndpointSizes, ModelChange, endpoint_sizes, model_changes
from tritonstack.review.opening_facts import OpeningChange
from tritonstack.review.openings import opening_changes
from tritonstack.review.permission_change import PermissionChange
from tritonstack.review.permissions import permission_changes
from tritonstack.review.served import CommittedReleases, EarlierReleases, NoHistory, served_sets, sets_of
from tritonstack.review.snapshot import EnvironmentSnapshot, StackSnapshot

_TAG = re.compile(r":(\d{2}\.(?:0[1-9]|1[0-2]))(?:-|$)")
"""The release in an image's tag: ``…/sagemaker-tritonserver:24.09-py3``."""


@dataclass(frozen=True, kw_only=True)
class VulnerableRelease:
    """One endpoint on a release with known vulnerabilities that later releases fix.

    Attributes:
        stack: its stack's name in the environment.
        endpoint: its SageMaker name.
        before: the release that it ran, or None for a new endpoint.
        after: the release that it runs.
        added: how many vulnerabilities it has that it had not.
        total: how many it has.
        gravest: of those added, or of all where none is; with its score and the release that fixes it.
    """

    stack: str
    endpoint: str
    before: str | None
    after: str
    added: int
    total: int
    gravest: str

    @property
    def sentence(self) -> str:
        """What a reader is told."""
        if self.before is None:
            runs = f"is new on release {self.after}, which has {self.total} known vulnerabilities"
        elif self.added:
            runs = f"runs release {self.after} instead of {self.before}: {self.added} more known vulnerabilities"
        elif self.before == self.after:
            runs = f"stays on release {self.after}, which has {self.total} known vulnerabilities"
        else:
            runs = f"runs release {self.after} instead of {self.before}, with {self.total} known vulnerabilities"
        return f"{self.stack}: {self.endpoint} {runs}, the gravest {self.gravest}"


def vulnerable_releases(
    before: EnvironmentSnapshot | None, after: EnvironmentSnapshot | None
) -> tuple[VulnerableRelease, ...]:
    """Every endpoint after the change whose release has some, by stack and name."""
    from tritonstack.catalogue import load_catalogue  # noqa: PLC0415 - its data files, which most need not

    known, had, found = load_catalogue().vulnerabilities, dict(_releases(before)), []
    for (stack, endpoint), release in _releases(after):
        then = had.get((stack, endpoint))
        all_now = known(release)
        earlier = set() if then is None else {each.id for each in known(then)}
        added = [each for each in all_now if each.id not in earlier]
        if not all_now:
            continue
        worst = (added or all_now)[0]
        score = "" if worst.score is None else f"CVSS {worst.score}, "
        found.append(
            VulnerableRelease(
                stack=stack,
                endpoint=endpoint,
                before=then,
                after=release,
                added=len(added),
                total=len(all_now),
                gravest=f"{worst.id} ({score}fixed in {worst.fixed_in})",
            )
        )
    return tuple(found)


def _releases(environment: EnvironmentSnapshot | None) -> Iterator[tuple[tuple[str, str], str]]:
    """Stack and endpoint, and the release: the release set's, else the one that the image's tag names."""
    stacks = {} if environment is None else environment.stacks
    for _, stack in sorted(stacks.items()):
        sets = {each.logical_id: each.platform.release for each in sets_of(stack)}
        for endpoint in stack.of_type(ENDPOINT):
            release = sets.get(endpoint.logical_id) or _release_of_image(stack)
            if release is not None:
                yield (stack.name, name_of(endpoint)), release


def _release_of_image(stack: StackSnapshot) -> str | None:
    """The release of the stack's containers, where their images' tags name one and the same."""
    models = [each.properties.get("PrimaryContainer", {}) for each in stack.of_type("AWS::SageMaker::Model")]
    found = {match[1] for each in models if (match := _TAG.search(str(each.get("Image", ""))))}
    return found.pop() if len(found) == 1 else None


@dataclass(frozen=True, kw_only=True)
class Known:
    """What is known beside the templates; each by the environment's name.

    Attributes:
        prices: of instances, at the base and now.
        stores: where manifests of archives are looked up.
        earlier: which releases were before.
        dependencies: model → what its archive depends on.
    """

    prices: Callable[[str], Prices] = lambda _environment: Prices()
    stores: tuple[ManifestStore, ...] = ()
    earlier: Callable[[str], EarlierReleases] = lambda _environment: NoHistory()
    dependencies: Callable[[str], Mapping[str, str]] = field(default=lambda _environment: {})

    @classmethod
    def of_project(cls, project: Path, *, base: str, stores: tuple[ManifestStore, ...]) -> Known:
        """What a project's files and commits tell. ``base``: the commit that the change is compared with."""
        return cls(
            prices=lambda environment: prices_of(environment, base=base, project=project),
            stores=stores,
            earlier=lambda environment: CommittedReleases(environment=environment, base=base, repository=project),
            dependencies=lambda environment: dependencies_of(environment, project=project),
        )


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What is said of one environment beside its resources.

    Attributes:
        models: those that change.
        archives: what all archives of each endpoint come to whose models change.
        engines: those that are to be built.
        costs: of every endpoint.
        tables: what all of the environment costs, before and after.
        permissions: those that widen, narrow or are others.
        openings: of networks, data and programs.
        releases: endpoints whose Triton release has known vulnerabilities.
    """

    models: tuple[ModelChange, ...] = ()
    archives: tuple[EndpointSizes, ...] = ()
    engines: tuple[EngineBuildNotice, ...] = ()
    costs: tuple[CostChange, ...] = ()
    tables: tuple[CostTable, CostTable] = (CostTable(), CostTable())
    permissions: tuple[PermissionChange, ...] = ()
    openings: tuple[OpeningChange, ...] = ()
    releases: tuple[VulnerableRelease, ...] = ()

    @property
    def cost(self) -> CostTotals:
        """Of all endpoints together."""
        return cost_totals(self.costs)


def parts_of(
    before: EnvironmentSnapshot | None, after: EnvironmentSnapshot | None, *, change: EnvironmentChange, known: Known
) -> Parts:
    """The parts of one environment.

    A stack that the app lost stays deployed, with all that it may and costs: it counts on both sides.
    """
    name = change.name
    deployed = _deployed(before, after)
    prices = known.prices(name)
    if after is None:
        prices = replace(prices, after=prices.before)
    # Settings and recipes are read only where a release set is another one: elsewhere nobody asks for them.
    same = served_sets(before) == served_sets(deployed)
    dependencies = {} if same else known.dependencies(name)
    sizes = Sizes(known.stores)
    models = model_changes(before, deployed, sizes=sizes, earlier=known.earlier(name), dependencies=dependencies)
    touched = {(each.stack, each.endpoint) for each in models}
    costs = cost_changes(before, deployed, prices=prices, change=change)
    old = [(each.endpoint, each.before) for each in costs if each.before is not None]
    new = [(each.endpoint, each.after) for each in costs if each.after is not None]
    return Parts(
        models=models,
        archives=tuple(
            each for each in endpoint_sizes(before, deployed, sizes=sizes) if (each.stack, each.endpoint) in touched
        )
        if models
        else (),
        engines=engine_builds(before, deployed, history=EngineTimes(known.stores), dependencies=dependencies)
        if models
        else (),
        costs=costs,
        tables=(
            cost_table(before, book=prices.before, endpoints=old),
            cost_table(deployed, book=prices.after, endpoints=new),
        ),
        permissions=permission_changes(before, deployed),
        openings=opening_changes(before, deployed),
        releases=vulnerable_releases(before, deployed),
    )


def _deployed(before: EnvironmentSnapshot | None, after: EnvironmentSnapshot | None) -> EnvironmentSnapshot | None:
    """What is deployed after the change, the stacks that the app lost included."""
    if before is None or after is None:
        return after or before
    return replace(after, stacks=dict(sorted({**before.stacks, **after.stacks}.items())))
