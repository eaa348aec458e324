"""The result of a simulation, with the estimate of the long run beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tritonstack_capacity.simulation.che import Caches, Holding
from tritonstack_capacity.simulation.events import Happening
from tritonstack_capacity.simulation.figures import (
    CallFigures,
    LoadFigures,
    Series,
    call_figures,
    load_figures,
    series,
    thrash_times,
)
from tritonstack_capacity.simulation.fleet import ASSUMPTIONS, FleetPlan, simulate
from tritonstack_capacity.simulation.instance import Machine
from tritonstack_capacity.simulation.scenario import Scenario
from tritonstack_capacity.simulation.scenario_file import PreparedScenario
from tritonstack_capacity.simulation.sources import FleetCost, Source, fleet_cost
from tritonstack_capacity.simulation.split import (
    Replayed,
    SplitAdvice,
    SplitVerdict,
    replayed_split,
    split_advice,
    verdict,
)
from tritonstack_capacity.simulation.trace import MINUTE, ModelTable, Trace

NEAR = 0.01
"""The approximation's error where what it assumes is given (tests/tritonstack_capacity/simulation/test_che.py)."""
ENOUGH = 10_000
"""Calls from which on a simulated hit ratio is nearer than that, but for one time in twenty (two standard errors)."""
MANY = 0.001
"""Share of the calls above which it is worth telling that they waited."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Calls with warm caches, and the estimate.

    Attributes:
        calls: how many: those after the warm-up; in a scenario without one, those of the second half of the time.
        simulated, estimated: hit ratios.
        waited: share of the calls that came during a load or an unload of their model, and so are no hits.
    """

    calls: int
    simulated: float
    estimated: float
    waited: float

    @property
    def agrees(self) -> bool:
        """Whether the two are as near as the approximation is at best."""
        return abs(self.simulated - self.estimated) <= NEAR


def comparison(happening: Happening, trace: Trace, *, warm_up: float, estimated: float) -> Comparison | None:
    """None where too few calls came for one. ``warm_up``: seconds; 0: none was said."""
    warm = call_figures(happening, trace, after=warm_up or trace.seconds / 2)
    if warm.calls < ENOUGH:
        return None
    return Comparison(
        calls=warm.calls, simulated=warm.hits / warm.calls, estimated=estimated, waited=warm.waited / warm.calls
    )


def difference_sentence(found: Comparison, *, copies: bool, changing: bool) -> str:
    """What the two say, and what may make the difference.

    ``copies``: whether a model may be loaded on several instances though the estimate counts it once. ``changing``:
    whether instances came or went.
    """
    return (
        f"Che's approximation is off here: of {found.calls:,} simulated calls {100 * found.simulated:.2f} % meet a "
        f"loaded model, where it says {100 * found.estimated:.2f} %. It takes "
        f"{', '.join(_taken_for(found, copies=copies, changing=changing))}"
    )


def _taken_for(found: Comparison, *, copies: bool, changing: bool) -> Iterator[str]:
    if found.waited > MANY:
        yield f"loads for done at once ({100 * found.waited:.2f} % of the calls came during a load or unload)"
    if copies:
        yield "each model for loaded once, on any instance that has room"
    if changing:
        yield "the number of instances for fixed"
    yield "caches for full and calls for independent of each other"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a fleet would do.

    Attributes:
        happening: the simulation itself.
        calls, loads, cost: see their classes.
        course: the same over time.
        holding: what an instance holds; None without a model cache.
        compared: that estimate against the simulation; None without a model cache, and for too few calls.
        instances: (least, mean, greatest) that took calls.
        held: models loaded on an instance, on average over the time after the warm-up, and at most; None where that
            is shorter than a minute.
        busiest: share of what the GPUs can execute that the calls of the busiest minute take, with the mean number of
            instances.
        loading: the same of what the containers can load, in the steady state of Che's approximation; with sticky
            routing of the container that has most to load.
        split: what two endpoints would do; None where fewer than two models are called, or without a model cache.
        replayed: the same, simulated; None where it was not.
        verdict: whether they are better; None where ``split`` is.
        assumptions: what the answer rests on, in sentences.
        sources: where its figures come from.
    """

    scenario: Scenario
    models: ModelTable
    trace: Trace
    happening: Happening
    seed: int
    calls: CallFigures
    loads: LoadFigures
    course: Series
    cost: FleetCost
    holding: Holding | None
    compared: Comparison | None
    instances: tuple[int, float, int]
    held: tuple[float, float] | None
    busiest: float
    loading: float
    split: SplitAdvice | None
    replayed: Replayed | None
    verdict: SplitVerdict | None
    assumptions: tuple[str, ...]
    sources: tuple[Source, ...]

    @property
    def keeps_limit(self) -> bool | None:
        """Whether the 95th percentile of all calls is within the limit; None without a limit, or without calls."""
        limit = self.scenario.latency_limit_ms
        return None if limit is None or not self.calls.calls else self.calls.everyone.percentiles[95] <= limit


def answer(prepared: PreparedScenario, *, seed: int) -> Answer:
    """Simulate, and sum up."""
    scenario, models, trace, plan = prepared.scenario, prepared.models, prepared.trace, prepared.plan
    happening = simulate(plan, models, trace, seed=seed)
    after = scenario.warm_up_minutes * MINUTE
    instances = _instances(happening)
    typical = max(1, round(instances[1]))
    peak = peak_rate(trace)
    each = models.of_each("least_seconds_each")
    thrash = thrash_times(happening, within=scenario.thrash_seconds)
    caches = Caches(models, plan.machine, routing=plan.routing)
    advice, held, compared = None, None, None
    if plan.machine.cached:
        advice = split_advice(models, plan.machine, count=typical, caches=caches, peak_rate=peak)
        held = caches.holding(typical)
        compared = comparison(happening, trace, warm_up=after, estimated=held.hit_ratio)
    replayed = replayed_split(advice, prepared, after=after, seed=seed)
    return Answer(
        scenario=scenario,
        models=models,
        trace=trace,
        happening=happening,
        seed=seed,
        calls=call_figures(happening, trace, after=after),
        loads=load_figures(happening, after=after, thrash=thrash, thrash_seconds=scenario.thrash_seconds),
        course=series(happening, trace, thrash=thrash),
        cost=fleet_cost(
            prepared.price,
            instance_seconds=happening.instance_seconds(),
            seconds=trace.seconds,
            calls=len(trace),
        ),
        holding=held,
        compared=compared,
        instances=instances,
        held=_held(happening, after=after),
        busiest=float((models.popularity * each).sum() * peak / (plan.machine.executions * instances[1])),
        loading=loading_share(models, plan, caches, count=instances[1], rate=peak),
        split=advice,
        replayed=replayed,
        verdict=None if advice is None else verdict(advice, replayed),
        assumptions=tuple(_assumptions(scenario, plan, compared=advice is not None)),
        sources=prepared.sources,
    )


def loading_share(models: ModelTable, plan: FleetPlan, caches: Caches, *, count: float, rate: float) -> float:
    """Loading time that ``rate`` calls a second ask for, of the time for loads that ``count`` instances have.

    Above 1 loads pile up; a model that is loaded is then evicted at once for the next one. Where models belong to
    instances, of the one with the most.
    """
    calls = rate * models.popularity
    seconds = models.of_each("load_seconds")
    typical = max(1, round(count))
    if plan.machine.cached:
        loads = calls * (1 - caches.estimate(typical).held)
    else:  # one load serves the calls that come until the model is idle again
        each = calls * caches.sharing(typical) / typical
        loads = calls / (1 + each * (models.of_each("download_seconds") + seconds))
    homes = caches.homes(typical)
    if homes is None:
        wanted = float((loads * seconds).sum()) / count
    else:
        wanted = float(np.bincount(homes, weights=loads * seconds).max()) * typical / count
    return wanted / plan.machine.parallel_loads


def peak_rate(trace: Trace) -> float:
    """Calls a second in the minute that has the most."""
    span = min(MINUTE, trace.seconds)
    return float(np.bincount((trace.times // MINUTE).astype(np.int64)).max()) / span


def _instances(happening: Happening) -> tuple[int, float, int]:
    ends = [change.seconds for change in happening.fleet[1:]] + [happening.seconds]
    lasting = [
        (min(end, happening.seconds) - each.seconds, each) for each, end in zip(happening.fleet, ends, strict=True)
    ]
    counted = [(weight, each) for weight, each in lasting if weight > 0]
    total = sum(weight for weight, _ in counted)
    mean = sum(weight * each.serving for weight, each in counted) / total
    return min(each.serving for _, each in counted), mean, max(each.serving for _, each in counted)


def _held(happening: Happening, *, after: float) -> tuple[float, float] | None:
    counts = [loaded / serving for now, loaded, _, serving in happening.loaded if after <= now <= happening.seconds]
    return (sum(counts) / len(counts), max(counts)) if counts else None


def _assumptions(scenario: Scenario, plan: FleetPlan, *, compared: bool) -> list[str]:
    """``compared``: with a split, and so with an endpoint of two instances at least."""
    machine, cold = plan.machine, scenario.cold_start
    executions = "one execution" if machine.executions == 1 else f"{machine.executions} executions"
    several = compared or plan.count > 1 or (plan.scaling is not None and plan.scaling.maximum > 1)
    found = []
    if several:
        how = ASSUMPTIONS[plan.routing].format(spill_calls=plan.spill_calls)
        found.append(f"routing (SageMaker does not publish it in full): {how}")
    found += [
        f"a GPU does {executions} at once, each as fast as alone; models whose instances are free take turns",
        *_of_the_cache(machine, cold.keep_on_disk),
        f"downloads at {cold.download_mib_per_second:g} MiB/s each, {cold.parallel_loads} loads at once",
        "no call fails or is tried again: one that takes more than 60 s, where SageMaker would give up, is counted",
    ]
    if plan.changes:
        times = "once" if len(plan.changes) == 1 else f"{len(plan.changes)} times"
        found.append(f"schedules change the limits {times}; instances outside of them come or go without a cooldown")
    if plan.scaling is not None and plan.scaling.targets:
        speed = plan.speed
        found.append(
            f"metrics come {speed.metric_delay_seconds:g} s late; {speed.periods_out} periods above the target add "
            f"instances, {speed.periods_in} below 0.9 of it remove them, the youngest first; an instance takes calls "
            f"{speed.startup_seconds:g} s after the decision, cold, and is paid from the decision on"
        )
    return found


def _of_the_cache(machine: Machine, keep_on_disk: bool) -> Iterator[str]:
    if not machine.cached:
        yield "model_cache is disabled: a model is unloaded and its files are deleted as soon as no call of it is left"
        yield "calls that come meanwhile share a loaded model, as on the local runtime; SageMaker does not say"
        return
    yield "the least recently used idle model is evicted, as by the local runtime; SageMaker says only: unused models"
    yield "evicted models' files stay on the disk while there is room" if keep_on_disk else "eviction deletes files"
