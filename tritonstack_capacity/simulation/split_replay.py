"""One endpoint against two, simulated with the same calls; and what follows from that, or from the estimate alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tritonstack_capacity.simulation.figures import call_figures
from tritonstack_capacity.simulation.fleet import simulate
from tritonstack_capacity.simulation.scenario_file import PreparedScenario
from tritonstack_capacity.simulation.split import WORTH_WHILE, Split, SplitAdvice
from tritonstack_capacity.simulation.trace import Trace

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
