"""Hit ratio at any instance size, and how many models an instance holds, without a replay (Che's approximation)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tritonstack_capacity.simulation.fleet import SimulatedFleet
from tritonstack_capacity.simulation.trace import Floats, ModelTable

PRECISION = 1e-9
"""Of the characteristic time, relative to itself."""
SIZES = (0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0, 8.0)
"""Instance sizes to estimate, as multiples of the scenario's."""


@dataclass(frozen=True, kw_only=True)
class CacheEstimate:
    """An LRU cache in its steady state."""

    hit_ratio: float  # share of all requests
    models: float  # mean number of models in the cache
    # ``GPU memory``, ``disk`` or ``max_loaded_models``, which is reached first; None where all requested models fit
    limited_by: str | None


def che(rates: Floats, *, limits: Mapping[str, tuple[Floats, float]]) -> CacheEstimate:
    """Estimate an LRU cache of independent requests whose loads take no time.

    Each model stays for the same time T after its last request (the characteristic time), so that a request meets it
    with probability 1 - exp(-rate * T), and T is what fills the cache: the sum of size * (1 - exp(-rate * T)) is the
    room (Che, Tung and Wang, "Hierarchical Web Caching Systems", IEEE JSAC 20(7), 2002; why it is so near: Fricker,
    Robert and Roberts, "A versatile and accurate approximation for LRU cache performance", ITC 24, 2012).

    Args:
        rates: of each model, requests in any unit of time; zero or more, at least one above zero.
        limits: name → size of each model and room for all of them, in one unit. The limit that is reached first counts.
    """
    requested = rates > 0
    rates = rates[requested]
    times = {name: _characteristic_time(rates, sizes[requested], room) for name, (sizes, room) in limits.items()}
    first = min(times, key=lambda name: times[name])
    held = -np.expm1(-rates * times[first])
    return CacheEstimate(
        hit_ratio=float((rates * held).sum() / rates.sum()),
        models=float(held.sum()),
        limited_by=None if math.isinf(times[first]) else first,
    )


def _characteristic_time(rates: Floats, sizes: Floats, room: float) -> float:
    """The characteristic time, by bisection; infinite where all models fit."""
    if sizes.sum() <= room:
        return math.inf

    def filled(time: float) -> float:
        return float((sizes * -np.expm1(-rates * time)).sum())

    low, high = 0.0, 1.0 / float(rates.max())
    while filled(high) < room:
        low, high = high, 2 * high
    while high - low > PRECISION * high:
        middle = (low + high) / 2
        low, high = (middle, high) if filled(middle) < room else (low, middle)
    return (low + high) / 2


def estimated_cache(fleet: SimulatedFleet, models: ModelTable, *, size: float = 1.0) -> CacheEstimate:
    """Estimate what requests meet on the fleet's instances, each ``size`` times as large (GPU memory, disk, places).

    With ``random`` and ``least_outstanding`` each instance is a cache of all models, and all are alike: this is one of
    them. With ``loaded`` it is one cache of all their memory, as if no model were loaded twice and any had a place
    wherever there is room: an upper bound where there are several instances.
    """
    machine, room = fleet.machine, size * _pooled(fleet)
    limits = {
        "GPU memory": (models.of_each("memory"), room * machine.memory),
        "disk": (models.of_each("disk"), room * machine.disk),
    }
    if machine.most_models is not None:
        limits["max_loaded_models"] = (np.ones(len(models)), room * machine.most_models)
    return che(models.popularity, limits=limits)


def _pooled(fleet: SimulatedFleet) -> int:
    """Instances that share the models among them."""
    return fleet.count if fleet.routing == "loaded" else 1


@dataclass(frozen=True, kw_only=True)
class SteadyState(CacheEstimate):
    """One instance of a fleet in the long run, by Che's approximation."""

    is_upper_bound: bool  # see ``estimated_cache``
    by_size: tuple[tuple[float, float], ...]  # (multiple of the instance's size, hit ratio with it)


def steady_state(fleet: SimulatedFleet, models: ModelTable) -> SteadyState:
    """Estimate what each of the fleet's instances holds."""
    found = estimated_cache(fleet, models)
    return SteadyState(
        models=found.models / _pooled(fleet),
        hit_ratio=found.hit_ratio,
        is_upper_bound=_pooled(fleet) > 1,
        limited_by=found.limited_by,
        by_size=tuple((size, estimated_cache(fleet, models, size=size).hit_ratio) for size in SIZES),
    )
