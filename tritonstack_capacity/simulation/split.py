"""One endpoint or two: frequently requested models on one, the others on another, at the same cost."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tritonstack_capacity.simulation.fleet import SimulatedFleet, simulate
from tritonstack_capacity.simulation.hit_ratio import estimated_cache
from tritonstack_capacity.simulation.instance import HIT
from tritonstack_capacity.simulation.scenario_file import PreparedScenario
from tritonstack_capacity.simulation.trace import Integers, ModelTable, Trace

BUSIEST = 0.8
"""Share of an endpoint's executions that the requests of the busiest minute may take."""
CUTS, COUNTS = 16, 8
"""Numbers of hot models to try, and divisions of the instances for each."""
WORTH_WHILE = 0.01
"""Gain in hit ratio that is worth a second endpoint; less is within the approximation's error."""
MOST_SIMULATED = 300_000
"""Requests up to which the best split is simulated, and not only estimated."""


@dataclass(frozen=True, kw_only=True)
class Split:
    """Two endpoints. ``hot``: of each model, 1 on the first endpoint, 0 on the second. ``hit_ratio``: estimated."""

    hot: Integers
    hot_instances: int
    cold_instances: int
    hit_ratio: float

    @property
    def hot_models(self) -> int:
        """Number of models on the first endpoint."""
        return int(self.hot.sum())


@dataclass(frozen=True, kw_only=True)
class SplitAdvice:
    """One endpoint against two with as many instances together."""

    instances: int  # of each side, at least 2: two endpoints have one each
    one: float  # estimated hit ratio of one endpoint
    # the best division of the instances for each number of hot models; without those that have too few
    splits: tuple[Split, ...]
    # hit ratios after the warm-up of one endpoint and of the best split; None where not simulated
    simulated: tuple[float, float] | None = None

    @property
    def best(self) -> Split | None:
        """The split with the highest estimated hit ratio; None where each would leave an endpoint too busy."""
        return max(self.splits, key=lambda split: split.hit_ratio, default=None)

    @property
    def worth_while(self) -> bool:
        """Whether to split; by the simulation where there is one, since it includes load times and copies of models."""
        if self.best is None:
            return False
        one, split = self.simulated or (self.one, self.best.hit_ratio)
        return split - one > WORTH_WHILE


def estimated_splits(fleet: SimulatedFleet, models: ModelTable, *, peak_rate: float) -> SplitAdvice | None:
    """Estimate splits of the fleet's instances by Che's approximation.

    Models in the order of requests for memory are cut at some places; the ones before the cut are hot.

    ``fleet`` is the one endpoint, of at least 2 instances.

    Returns:
        None where fewer than two models are requested.
    """
    requested = int((models.popularity > 0).sum())
    if requested < 2:
        return None
    fleet = replace(fleet, count=max(2, fleet.count))
    order = np.argsort(-models.popularity / models.of_each("memory"), kind="stable")
    splits = []
    for cut in sorted({int(each) for each in np.geomspace(1, requested - 1, CUTS)}):
        hot = np.zeros(len(models), dtype=np.int64)
        hot[order[:cut]] = 1
        divisions = _divisions(fleet, models, hot, peak_rate=peak_rate)
        splits += [max(divisions, key=lambda split: split.hit_ratio)] if divisions else []
    return SplitAdvice(instances=fleet.count, one=estimated_cache(fleet, models).hit_ratio, splits=tuple(splits))


def _divisions(fleet: SimulatedFleet, models: ModelTable, hot: Integers, *, peak_rate: float) -> list[Split]:
    """The fleet's instances divided in several ways, with enough of them on both sides."""
    busy = models.popularity * models.of_each("least_seconds_each") * peak_rate / fleet.machine.executions
    hot_busy, share = float(busy[hot == 1].sum()), float(models.popularity[hot == 1].sum())
    cold_busy = float(busy[hot == 0].sum())
    hot_side = replace(models, popularity=models.popularity * hot)
    cold_side = replace(models, popularity=models.popularity * (1 - hot))
    found = []
    for count in sorted({int(each) for each in np.linspace(1, fleet.count - 1, COUNTS)}):
        others = fleet.count - count
        if hot_busy <= BUSIEST * count and cold_busy <= BUSIEST * others:
            hits = share * estimated_cache(replace(fleet, count=count), hot_side).hit_ratio
            hits += (1 - share) * estimated_cache(replace(fleet, count=others), cold_side).hit_ratio
            found.append(Split(hot=hot, hot_instances=count, cold_instances=others, hit_ratio=hits))
    return found


def simulated_split(advice: SplitAdvice, prepared: PreparedScenario, *, after: float, seed: int) -> SplitAdvice:
    """Simulate one endpoint and the best split, instances fixed; the same advice where that is not possible.

    Hits count from ``after`` seconds on. Not possible: no split, more requests than ``MOST_SIMULATED``, none counted.
    """
    best, trace = advice.best, prepared.trace
    counted = int((trace.times >= after).sum())
    if best is None or len(trace) > MOST_SIMULATED or not counted:
        return advice

    def hits(requests: Trace, count: int) -> int:
        fleet = replace(prepared.fleet, count=count, scaling=None)
        outcomes = simulate(fleet, prepared.models, requests, seed=seed).calls.outcomes
        return int((outcomes[requests.times >= after] == HIT).sum())

    one = hits(trace, advice.instances)
    both = hits(trace.only(best.hot), best.hot_instances) + hits(trace.only(1 - best.hot), best.cold_instances)
    return replace(advice, simulated=(one / counted, both / counted))
