"""Figures of a simulation: shares, percentiles, loads and instances, in total and over time."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass

import numpy as np

from tritonstack_capacity.simulation.events import DOWNLOADED, EVICTION, FROM_DISK, HIT, LOAD, WAITED, Happening
from tritonstack_capacity.simulation.trace import MINUTE, Floats, Integers, Trace

PERCENTILES = (50, 90, 95, 99)
PATIENCE_OF_SAGEMAKER = 60.0
"""Seconds after which a call fails: in the container, and for a model that is loading (developer guide,
invoke-multi-model-endpoint)."""


@dataclass(frozen=True, kw_only=True)
class Latencies:
    """Milliseconds. ``percentiles``: (50, 90, 95, 99) → value; empty where there are no calls."""

    count: int
    mean: float | None
    percentiles: dict[int, float]
    greatest: float | None


@dataclass(frozen=True, kw_only=True)
class CallFigures:
    """Calls after the warm-up, by what they met; ``late`` took longer than SageMaker waits."""

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
        """Share of calls that met a loaded model; None without calls."""
        return self.hits / self.calls if self.calls else None

    @property
    def cold_starts(self) -> int:
        """Calls that began a load."""
        return self.from_disk + self.downloaded


@dataclass(frozen=True, kw_only=True)
class LoadFigures:
    """Loads after the warm-up.

    Attributes:
        loads, evictions: how many.
        loads_per_minute, peak_loads_per_minute: on average, and in the busiest minute.
        again: loads of a model that the same instance had evicted within ``thrash_seconds`` before.
    """

    loads: int
    evictions: int
    loads_per_minute: float
    peak_loads_per_minute: int
    again: int
    thrash_seconds: float


def call_figures(happening: Happening, trace: Trace, *, after: float) -> CallFigures:
    """Of the calls that came at ``after`` seconds or later."""
    counted = trace.times >= after
    latencies, outcomes = happening.calls.latencies[counted], happening.calls.outcomes[counted]
    met = np.bincount(outcomes, minlength=4)
    return CallFigures(
        calls=len(outcomes),
        hits=int(met[HIT]),
        waited=int(met[WAITED]),
        from_disk=int(met[FROM_DISK]),
        downloaded=int(met[DOWNLOADED]),
        late=int((latencies > PATIENCE_OF_SAGEMAKER).sum()),
        everyone=_latencies(latencies),
        warm=_latencies(latencies[outcomes == HIT]),
    )


def load_figures(happening: Happening, *, after: float, thrash: Floats, thrash_seconds: float) -> LoadFigures:
    """Of the loads and evictions at ``after`` seconds or later, while calls came. ``thrash``: see ``thrash_times``."""
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
    """When models were loaded that the same instance had evicted at most so many seconds before."""
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
    # The least value that so large a share of the calls keeps: a measured one, never between two.
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
    """A value for each period.

    Attributes:
        period: seconds.
        calls, loads: a minute.
        thrash: the loads among them of models that were evicted shortly before.
        hit_ratio: percent.
        median, p95, warm_p95: latency in milliseconds.
        serving, paid: instances, as steps.
        held: models on an instance, on average.
    """

    period: float
    calls: Points
    loads: Points
    thrash: Points
    hit_ratio: Points
    median: Points
    p95: Points
    warm_p95: Points
    serving: Points
    paid: Points
    held: Points


def series(happening: Happening, trace: Trace, *, thrash: Floats) -> Series:
    """The simulation's course while calls came. ``thrash``: see ``thrash_times``."""
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
    fleet = [*happening.fleet]
    ends = [min(each.seconds, seconds) for each in fleet[1:]] + [seconds]
    return Series(
        period=period,
        calls=_points(middles, calls * MINUTE / period),
        loads=a_minute(happening.events.of_kind(LOAD)[0]),
        thrash=a_minute(thrash),
        hit_ratio=[(float(t), 100 * float(h) / float(n)) for t, h, n in zip(middles, hits, calls, strict=True) if n],
        median=_percentile(happening.calls.latencies, edges, middles, 50),
        p95=_percentile(happening.calls.latencies, edges, middles, 95),
        warm_p95=_percentile(np.where(warm, happening.calls.latencies, np.nan), edges, middles, 95),
        serving=_steps([(each.seconds, end, each.serving) for each, end in zip(fleet, ends, strict=True)]),
        paid=_steps([(each.seconds, end, each.paid) for each, end in zip(fleet, ends, strict=True)]),
        held=[(now, loaded / serving) for now, loaded, _, serving in happening.loaded if now <= seconds],
    )


def _points(times: Floats, values: Floats) -> Points:
    return [(float(time), float(value)) for time, value in zip(times, values, strict=True)]


def _steps(lasting: list[tuple[float, float, int]]) -> Points:
    """Of (start, end, value)."""
    return [(at, float(value)) for start, end, value in lasting if end > start for at in (start, end)]


def _percentile(latencies: Floats, edges: Integers, middles: Floats, percent: int) -> Points:
    found = []
    for place, middle in enumerate(middles):
        inside = latencies[int(edges[place]) : int(edges[place + 1])]
        inside = inside[~np.isnan(inside)]
        if len(inside):
            found.append((float(middle), float(np.percentile(inside, percent, method="inverted_cdf")) * 1000))
    return found
