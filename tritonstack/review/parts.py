"""The parts of a report beside the comparison of resources: models, engines, cost; permissions, openings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tritonstack.archives.manifest_stores import ManifestStore, Sizes
from tritonstack.review.change import EnvironmentChange
from tritonstack.review.cost import CostChange, CostTotals, cost_changes, cost_totals
from tritonstack.review.cost_table import CostTable, cost_table
from tritonstack.review.endpoint_sizes import EndpointSizes, endpoint_sizes
from tritonstack.review.engine_times import EngineTimes
from tritonstack.review.engines import EngineBuildNotice, dependencies_of, engine_builds
from tritonstack.review.model_history import CommittedReleases, EarlierReleases, NoHistory
from tritonstack.review.models import ModelChange, model_changes
from tritonstack.review.opening_change import OpeningChange
from tritonstack.review.openings import opening_changes
from tritonstack.review.permission_change import PermissionChange
from tritonstack.review.permissions import permission_changes
from tritonstack.review.prices import Prices, prices_of
from tritonstack.review.served import served_sets
from tritonstack.review.snapshot import EnvironmentSnapshot
from tritonstack.review.vulnerable_releases import VulnerableRelease, vulnerable_releases


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
