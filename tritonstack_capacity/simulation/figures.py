"""What a simulation comes to: shares, percentiles, loads, instances."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass

import numpy as np

from tritonstack_capacity.simulation.happening import DOWNLOADED, EVICTION, FROM_DISK, HIT, LOAD, WAITED, Happening
from tritonstack_capacity.simulation.model_table import Floats
from tritonstack_capacity.simulation.trace import MINUTE, Trace

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
