"""One endpoint, or two: the models that are called often on one, the others on another."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tritonstack_capacity.simulation.che import Caches
from tritonstack_capacity.simulation.figures import call_figures
from tritonstack_capacity.simulation.fleet import simulate
from tritonstack_capacity.simulation.instance import Machine
from tritonstack_capacity.simulation.scenario_file import PreparedScenario
from tritonstack_capacity.simulation.trace import Integers, ModelTable, Trace

# Both are compared with the same number of instances, at the same price, by Che's approximation; calls are enough to
# keep the instances of each endpoint at most so busy (``BUSIEST``).
BUSIEST = 0.8
"""Share of an instance's executions that the calls of the busiest minute may take."""
CUTS = 16
COUNTS = 8
WORTH_WHILE = 0.01
"""A hit ratio that much higher is worth a second endpoint; less is within the approximation's error."""


@dataclass(frozen=True, kw_only=True)
class Split:
    """Two endpoints.

    Attributes:
        hot: 1 for each model on the first, 0 for those on the second; hot is what is called most for its size.
        hot_models: how many those are.
        hot_instances, cold_instances: of each.
        hit_ratio: of all calls, on both together.
    """

    hot: Integers
    hot_models: int
    hot_instances: int
    cold_instances: int
    hit_ratio: float

    @property
    def instances(self) -> int:
        """Of both together."""
        return self.hot_instances + self.cold_instances


@dataclass(frozen=True, kw_only=True)
class SplitAdvice:
    """One endpoint against the best split of it.

    Attributes:
        instances: of both sides; at least 2, since two endpoints have one each.
        one: hit ratio of one endpoint with that many.
        best: the split with the highest hit ratio; None where no split has instances enough for its calls.
        fewer: the smallest split that keeps ``one``, of fewer instances; None where none needs fewer.
        by_cut: number of hot models → the highest hit ratio with it; of numbers that have instances enough.
    """

    instances: int
    one: float
    best: Split | None
    fewer: Split | None
    by_cut: tuple[tuple[int, float], ...]


def split_advice(
    models: ModelTable, machine: Machine, *, count: int, caches: Caches, peak_rate: float
) -> SplitAdvice | None:
    """How to split an endpoint of ``count`` instances; ``peak_rate``: calls a second in the busiest minute.

    None where fewer than two models are called. By Che's approximation alone: see ``verdict``.
    """
    called = int((models.popularity > 0).sum())
    if called < 2:
        return None
    search = _Search(models, machine, caches=caches, peak_rate=peak_rate)
    instances = max(2, count)
    one = caches.estimate(instances).hit_ratio
    splits = search.splits(instances)
    best = max(splits, key=lambda split: split.hit_ratio, default=None)
    fewer = None
    for total in range(2, instances):
        # One endpoint of that size is the fairer rival: fewer instances may do without a split as well.
        if caches.estimate(total).hit_ratio < one:
            fewer = max(search.splits(total), key=lambda split: split.hit_ratio, default=None)
            if fewer is not None and fewer.hit_ratio >= one:
                break
            fewer = None
    by_cut = tuple((split.hot_models, split.hit_ratio) for split in splits)
    return SplitAdvice(instances=instances, one=one, best=best, fewer=fewer, by_cut=by_cut)


class _Search:
    """Splits at a number of places in the order of calls for size, and between a number of counts."""

    def __init__(self, models: ModelTable, machine: Machine, *, caches: Caches, peak_rate: float) -> None:
        self._models, self._caches = models, caches
        self._order = np.argsort(-models.popularity / models.of_each("memory"), kind="stable")
        busy = models.popularity * models.of_each("least_seconds_each") * peak_rate / machine.executions
        self._busy = np.cumsum(busy[self._order])
        called = int((models.popularity > 0).sum())
        self._cuts = sorted({int(cut) for cut in np.geomspace(1, called - 1, CUTS)})
        self._known: dict[tuple[int, bool, int], float] = {}

    def splits(self, instances: int) -> list[Split]:
        """The best division of so many instances for each number of hot models that has instances enough."""
        counts = sorted({int(each) for each in np.linspace(1, instances - 1, COUNTS)})
        found = []
        for cut in self._cuts:
            possible = [split for hot in counts if (split := self._split(cut, hot, instances - hot)) is not None]
            if possible:
                found.append(max(possible, key=lambda split: split.hit_ratio))
        return found

    def _split(self, cut: int, hot_instances: int, cold_instances: int) -> Split | None:
        hot_busy = float(self._busy[cut - 1])
        cold_busy = float(self._busy[-1]) - hot_busy
        if hot_busy > BUSIEST * hot_instances or cold_busy > BUSIEST * cold_instances:
            return None
        hot = np.zeros(len(self._models), dtype=np.int64)
        hot[self._order[:cut]] = 1
        share = float(self._models.popularity[hot == 1].sum())
        hits = share * self._hit_ratio(cut, hot, count=hot_instances, of_hot=True)
        hits += (1 - share) * self._hit_ratio(cut, 1 - hot, count=cold_instances, of_hot=False)
        return Split(
            hot=hot, hot_models=cut, hot_instances=hot_instances, cold_instances=cold_instances, hit_ratio=hits
        )

    def _hit_ratio(self, cut: int, chosen: Integers, *, count: int, of_hot: bool) -> float:
        key = (cut, of_hot, self._caches.sharing(count))
        if key not in self._known:
            self._known[key] = self._caches.estimate(count, chosen=chosen).hit_ratio
        return self._known[key]


MOST_REPLAYED = 300_000
"""Calls up to which a split is simulated, too, and not only estimated."""


@dataclass(frozen=True, kw_only=True)
class Replayed:
    """Hit ratios after the warm-up, of instances whose number is fixed.

    Attributes:
        one, split: of one endpoint and of the best split, both with the same instances.
        fewer_one, fewer: the same of the split that needs fewer instances, and of one endpoint with so few; None where
            no such split was found.
    """

    one: float
    split: float
    fewer_one: float | None
    fewer: float | None


@dataclass(frozen=True, kw_only=True)
class SplitVerdict:
    """Whether to split.

    Attributes:
        simulated: whether the simulation decides; else the estimate, since there are more than ``MOST_REPLAYED`` calls.
        worth_while: a higher hit ratio at the same cost, or the same for fewer instances.
        fewer: the split with fewer instances that hits as often; None where there is none.
    """

    simulated: bool
    worth_while: bool
    fewer: Split | None


def replayed_split(
    advice: SplitAdvice | None, prepared: PreparedScenario, *, after: float, seed: int
) -> Replayed | None:
    """Both, with the calls of the scenario; None without a split, for too many calls, or none after ``after``."""
    trace = prepared.trace
    calls = int((trace.times >= after).sum())
    if advice is None or advice.best is None or len(trace) > MOST_REPLAYED or not calls:
        return None

    def one(count: int) -> float:
        return _hits(prepared, trace, count=count, after=after, seed=seed) / calls

    def both(split: Split) -> float:
        sides = ((split.hot, split.hot_instances), (1 - split.hot, split.cold_instances))
        hits = (_hits(prepared, trace.only(side), count=count, after=after, seed=seed) for side, count in sides)
        return sum(hits) / calls

    fewer = advice.fewer
    return Replayed(
        one=one(advice.instances),
        split=both(advice.best),
        fewer_one=None if fewer is None else one(fewer.instances),
        fewer=None if fewer is None else both(fewer),
    )


def verdict(advice: SplitAdvice, replayed: Replayed | None) -> SplitVerdict:
    """By the simulation where there is one: the estimate knows neither loading times nor copies of a model."""
    if replayed is None:
        gain = 0.0 if advice.best is None else advice.best.hit_ratio - advice.one
        fewer = advice.fewer
    else:
        gain, fewer = replayed.split - replayed.one, None
        # One endpoint of that size is the fairer rival: fewer instances may do without a split as well.
        if replayed.fewer is not None and replayed.fewer_one is not None:
            keeps = replayed.fewer >= replayed.one > replayed.fewer_one
            fewer = advice.fewer if keeps else None
    worth_while = gain > WORTH_WHILE or fewer is not None
    return SplitVerdict(simulated=replayed is not None, worth_while=worth_while, fewer=fewer)


def _hits(prepared: PreparedScenario, trace: Trace, *, count: int, after: float, seed: int) -> int:
    plan = replace(prepared.plan, count=count, scaling=None)
    return call_figures(simulate(plan, prepared.models, trace, seed=seed), trace, after=after).hits
