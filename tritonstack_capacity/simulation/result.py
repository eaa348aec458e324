"""The result of a simulation: requests, latencies, loads, instances and cost, in total and over time."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tritonstack_capacity.simulation.fleet import ROUTING_ASSUMPTIONS, SimulatedFleet, simulate
from tritonstack_capacity.simulation.hit_ratio import SteadyState, steady_state
from tritonstack_capacity.simulation.instance import DOWNLOADED, EVICTION, FROM_DISK, HIT, LOAD, WAITED, Happening
from tritonstack_capacity.simulation.scenario import Scenario
from tritonstack_capacity.simulation.scenario_file import PreparedScenario
from tritonstack_capacity.simulation.split import SplitAdvice, estimated_splits, simulated_split
from tritonstack_capacity.simulation.trace import MINUTE, Floats, Integers, ModelTable, Trace

HOUR = 3600.0
MILLION = 1_000_000


@dataclass(frozen=True, kw_only=True)
class FleetCost:
    """USD; every figure None where the price is unknown."""

    usd_per_hour: float | None  # of one instance
    source: str  # of the price, or why it is unknown
    instance_hours: float  # paid, from an instance's start until it has drained, while requests came
    hours: float
    calls: int

    @property
    def total(self) -> float | None:
        """Cost of the whole time."""
        return None if self.usd_per_hour is None else self.usd_per_hour * self.instance_hours

    @property
    def mean_per_hour(self) -> float | None:
        """Cost of an hour, on average."""
        return None if self.total is None else self.total / self.hours

    @property
    def per_million(self) -> float | None:
        """Cost of a million requests."""
        return None if self.total is None or not self.calls else self.total * MILLION / self.calls


PERCENTILES = (50, 90, 95, 99)
INVOKE_TIMEOUT_SECONDS = 60.0
"""Seconds after which a request fails: in the container, and for a model that is loading (developer guide,
invoke-multi-model-endpoint)."""


@dataclass(frozen=True, kw_only=True)
class Latencies:
    """Milliseconds. ``percentiles``: (50, 90, 95, 99) → value; empty where there are no requests."""

    count: int
    mean: float | None
    percentiles: dict[int, float]
    greatest: float | None


@dataclass(frozen=True, kw_only=True)
class CallFigures:
    """Requests after the warm-up, by their outcome; ``late`` took longer than SageMaker waits."""

    calls: int
    hits: int
    waited: int
    from_disk: int
    downloaded: int
    late: int
    everyone: Latencies
    warm: Latencies

    @property
    def hit_ratio(self) -> float | None:
        """Share of requests that met a loaded model; None without requests."""
        return self.hits / self.calls if self.calls else None

    @property
    def cold_starts(self) -> int:
        """Requests that began a load."""
        return self.from_disk + self.downloaded


@dataclass(frozen=True, kw_only=True)
class LoadFigures:
    """Loads after the warm-up."""

    # how many
    loads: int
    evictions: int
    # on average, and in the busiest minute
    loads_per_minute: float
    peak_loads_per_minute: int
    again: int  # loads of a model that the same instance had evicted within ``thrash_seconds`` before
    thrash_seconds: float


def call_figures(happening: Happening, trace: Trace, *, after: float) -> CallFigures:
    """Figures of requests that arrived at ``after`` seconds or later."""
    counted = trace.times >= after
    latencies, outcomes = happening.calls.latencies[counted], happening.calls.outcomes[counted]
    met = np.bincount(outcomes, minlength=4)
    return CallFigures(
        calls=len(outcomes),
        hits=int(met[HIT]),
        waited=int(met[WAITED]),
        from_disk=int(met[FROM_DISK]),
        downloaded=int(met[DOWNLOADED]),
        late=int((latencies > INVOKE_TIMEOUT_SECONDS).sum()),
        everyone=_latencies(latencies),
        warm=_latencies(latencies[outcomes == HIT]),
    )


def load_figures(happening: Happening, *, after: float, thrash: Floats, thrash_seconds: float) -> LoadFigures:
    """Figures of loads and evictions at ``after`` seconds or later, with requests. ``thrash``: see ``thrash_times``."""
    seconds, _, _ = happening.events.of_kind(LOAD)
    kept = seconds[(seconds >= after) & (seconds < happening.seconds)]
    evicted, _, _ = happening.events.of_kind(EVICTION)
    minutes = (happening.seconds - after) / MINUTE
    per_minute = np.bincount(((kept - after) // MINUTE).astype(np.int64)) if len(kept) else np.zeros(1, dtype=np.int64)
    return LoadFigures(
        loads=len(kept),
        evictions=int(((evicted >= after) & (evicted < happening.seconds)).sum()),
        loads_per_minute=len(kept) / minutes,
        peak_loads_per_minute=int(per_minute.max()),
        again=int(((thrash >= after) & (thrash < happening.seconds)).sum()),
        thrash_seconds=thrash_seconds,
    )


def thrash_times(happening: Happening, *, within: float) -> Floats:
    """Times of loads of models that the same instance had evicted shortly before."""
    events = happening.events
    gone: dict[tuple[int, int], float] = {}
    found = array("d")
    for now, kind, model, instance in zip(events.seconds, events.kinds, events.models, events.instances, strict=True):
        if kind == EVICTION:
            gone[instance, model] = now
        elif now - gone.get((instance, model), -math.inf) <= within:
            found.append(now)
    return np.array(found)


def _latencies(seconds: Floats) -> Latencies:
    if not len(seconds):
        return Latencies(count=0, mean=None, percentiles={}, greatest=None)
    # The least value that so large a share of the requests keeps: a measured one, never between two.
    values = np.percentile(seconds, PERCENTILES, method="inverted_cdf") * 1000
    return Latencies(
        count=len(seconds),
        mean=float(seconds.mean() * 1000),
        percentiles={each: float(value) for each, value in zip(PERCENTILES, values, strict=True)},
        greatest=float(seconds.max() * 1000),
    )


MOST_PERIODS = 240
"""About one for each pixel and a half of a plot."""
Points = list[tuple[float, float]]
"""Seconds (the middle of the period) and value; a period without a value is left out."""


@dataclass(frozen=True, kw_only=True)
class Series:
    """A value for each period."""

    period_seconds: float
    calls_per_minute: Points
    hit_percent: Points
    loads_per_minute: Points
    loads_again_per_minute: Points  # those of models that were evicted shortly before
    p50_ms: Points
    p95_ms: Points
    warm_p95_ms: Points
    models_held: Points  # on an instance, on average
    # instances, as steps
    serving: Points
    paid: Points


def series(happening: Happening, trace: Trace, *, thrash: Floats) -> Series:
    """The simulation's course while requests came. ``thrash``: see ``thrash_times``."""
    seconds = happening.seconds
    period = max(MINUTE * np.ceil(seconds / MINUTE / MOST_PERIODS), 1.0) if seconds >= 10 * MINUTE else seconds / 20
    count = max(1, int(np.ceil(seconds / period)))
    middles = (np.arange(count) + 0.5) * period
    place = np.minimum((trace.times // period).astype(np.int64), count - 1)
    calls = np.bincount(place, minlength=count)
    hits = np.bincount(place[happening.calls.outcomes == HIT], minlength=count)

    def a_minute(moments: Floats) -> Points:
        counted = np.bincount((moments[moments < seconds] // period).astype(np.int64), minlength=count)[:count]
        return _points(middles, counted * MINUTE / period)

    edges = np.searchsorted(place, np.arange(count + 1))
    warm = happening.calls.outcomes == HIT
    lasting = happening.lasting()
    return Series(
        period_seconds=period,
        calls_per_minute=_points(middles, calls * MINUTE / period),
        loads_per_minute=a_minute(happening.events.of_kind(LOAD)[0]),
        loads_again_per_minute=a_minute(thrash),
        hit_percent=[(float(t), 100 * float(h) / float(n)) for t, h, n in zip(middles, hits, calls, strict=True) if n],
        p50_ms=_percentile(happening.calls.latencies, edges, middles, 50),
        p95_ms=_percentile(happening.calls.latencies, edges, middles, 95),
        warm_p95_ms=_percentile(np.where(warm, happening.calls.latencies, np.nan), edges, middles, 95),
        serving=[(at, float(each.serving)) for start, end, each in lasting for at in (start, end)],
        paid=[(at, float(each.paid)) for start, end, each in lasting for at in (start, end)],
        models_held=[(now, loaded / serving) for now, loaded, serving in happening.loaded if now <= seconds],
    )


def _points(times: Floats, values: Floats) -> Points:
    return [(float(time), float(value)) for time, value in zip(times, values, strict=True)]


def _percentile(latencies: Floats, edges: Integers, middles: Floats, percent: int) -> Points:
    found = []
    for place, middle in enumerate(middles):
        inside = latencies[int(edges[place]) : int(edges[place + 1])]
        inside = inside[~np.isnan(inside)]
        if len(inside):
            found.append((float(middle), float(np.percentile(inside, percent, method="inverted_cdf")) * 1000))
    return found


ESTIMATE_ERROR = 0.01
"""Of Che's hit ratio where its assumptions hold (tests/tritonstack_capacity/simulation/test_hit_ratio.py)."""
ENOUGH_TO_COMPARE = 10_000
"""Requests from which on a simulated hit ratio is as exact, but for one time in twenty (two standard errors)."""


@dataclass(frozen=True, kw_only=True)
class SimulationResult:
    """Predicted behaviour of a fleet."""

    scenario: Scenario
    models: ModelTable
    trace: Trace
    happening: Happening  # the simulation itself
    seed: int
    calls: CallFigures
    loads: LoadFigures
    course: Series  # figures over time
    cost: FleetCost
    instances: tuple[int, float, int]  # (least, mean, greatest) that took requests
    # models loaded on an instance after the warm-up, on average and at most; None below a minute
    held: tuple[float, float] | None
    # share of what the GPUs can execute that the requests of the busiest minute take, with the mean number of instances
    busiest: float
    # estimate of an instance in the long run, with the mean number of instances; None without a model cache
    steady: SteadyState | None
    split: SplitAdvice | None  # one endpoint or two; None without a model cache, and below two requested models
    assumptions: tuple[str, ...]  # sentences

    @property
    def keeps_limit(self) -> bool | None:
        """Whether the 95th percentile of all latencies is within the limit; None without a limit or requests."""
        limit = self.scenario.latency_limit_ms
        return None if limit is None or not self.calls.calls else self.calls.everyone.percentiles[95] <= limit

    @property
    def estimate_agrees(self) -> bool | None:
        """Whether the estimated hit ratio is the simulated one; None without an estimate or with too few requests."""
        if self.steady is None or self.calls.hit_ratio is None or self.calls.calls < ENOUGH_TO_COMPARE:
            return None
        return abs(self.steady.hit_ratio - self.calls.hit_ratio) <= ESTIMATE_ERROR


def simulation_result(prepared: PreparedScenario, *, seed: int) -> SimulationResult:
    """Simulate, and sum up."""
    scenario, models, trace, fleet = prepared.scenario, prepared.models, prepared.trace, prepared.fleet
    happening = simulate(fleet, models, trace, seed=seed)
    after = scenario.warm_up_minutes * MINUTE
    instances = _instances(happening)
    thrash = thrash_times(happening, within=scenario.thrash_seconds)
    counts = np.bincount((trace.times // MINUTE).astype(np.int64))
    executions = float((models.popularity * models.of_each("least_seconds_each")).sum())
    (usd, source), peak_rate = prepared.price, float(counts.max()) / min(MINUTE, trace.seconds)
    held = [loaded / serving for now, loaded, serving in happening.loaded if after <= now <= happening.seconds]
    steady, split = None, None
    if fleet.machine.cached:
        typical = replace(fleet, count=max(1, round(instances[1])))
        steady = steady_state(typical, models)
        split = estimated_splits(typical, models, peak_rate=peak_rate)
        split = None if split is None else simulated_split(split, prepared, after=after, seed=seed)
    return SimulationResult(
        scenario=scenario,
        models=models,
        trace=trace,
        happening=happening,
        seed=seed,
        calls=call_figures(happening, trace, after=after),
        loads=load_figures(happening, after=after, thrash=thrash, thrash_seconds=scenario.thrash_seconds),
        course=series(happening, trace, thrash=thrash),
        cost=FleetCost(
            usd_per_hour=usd,
            source=source,
            instance_hours=sum((end - start) * each.paid for start, end, each in happening.lasting()) / HOUR,
            hours=trace.seconds / HOUR,
            calls=len(trace),
        ),
        instances=instances,
        held=(sum(held) / len(held), max(held)) if held else None,
        busiest=executions * peak_rate / (fleet.machine.executions * instances[1]),
        steady=steady,
        split=split,
        assumptions=tuple(_assumptions(scenario, fleet, split=split is not None)),
    )


def _instances(happening: Happening) -> tuple[int, float, int]:
    lasting = happening.lasting()
    total = sum(end - start for start, end, _ in lasting)
    mean = sum((end - start) * each.serving for start, end, each in lasting) / total
    return min(each.serving for *_, each in lasting), mean, max(each.serving for *_, each in lasting)


def _assumptions(scenario: Scenario, fleet: SimulatedFleet, *, split: bool) -> Iterator[str]:
    """``split``: whether two endpoints are compared with one, which has several instances then."""
    machine, cold = fleet.machine, scenario.cold_start
    if split or fleet.count > 1 or (fleet.scaling is not None and fleet.scaling.maximum > 1):
        how = ROUTING_ASSUMPTIONS[fleet.routing].format(spill_calls=fleet.spill_calls)
        yield f"routing (SageMaker does not publish it in full): {how}"
    executions = "one execution" if machine.executions == 1 else f"{machine.executions} executions"
    yield f"a GPU does {executions} at once, each as fast as alone; models whose instances are free take turns"
    if machine.cached:
        yield "the least recently used idle model is evicted; SageMaker says only that it unloads unused models"
        files = "stay on the disk while there is room" if cold.keep_on_disk else "are deleted"
        yield f"evicted models' files {files}"
    else:
        yield "model_cache is disabled: a model is unloaded, its files deleted, as soon as no request of it is left"
        yield "requests that come meanwhile share a loaded model, as on the local runtime; SageMaker does not say"
    yield f"downloads at {cold.download_mib_per_second:g} MiB/s each, {cold.parallel_loads} loads at once"
    yield "no request fails or is tried again: those that take more than 60 s, where SageMaker gives up, are counted"
    if fleet.scaling is not None and fleet.scaling.schedules:
        yield "schedules of scaling are left out: its own minimum and maximum hold all the time"
    if fleet.scaling is not None and fleet.scaling.targets:
        speed = fleet.speed
        yield (
            f"metrics come {speed.metric_delay_seconds:g} s late; {speed.periods_out} periods above the target add "
            f"instances, {speed.periods_in} below 0.9 of it remove them, the youngest first; an instance takes "
            f"requests {speed.startup_seconds:g} s after the decision, cold, and is paid from the decision on"
        )
