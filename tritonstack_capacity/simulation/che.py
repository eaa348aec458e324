"""Che's approximation: hit ratios of an LRU cache without a replay, at any size.

Each model stays for the same time T after its last call ("characteristic time"), so that it is there with probability
1 - exp(-rate * T), and T is what fills the cache: the sum of size * (1 - exp(-rate * T)) is the capacity (Che, Tung and
Wang, "Hierarchical Web Caching Systems", IEEE JSAC 20(7), 2002; why it is so near: Fricker, Robert and Roberts, "A
versatile and accurate approximation for LRU cache performance", ITC 24, 2012). It holds for independent calls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tritonstack_capacity.simulation.model_table import Floats, Integers

NEAR = 1e-9
"""How near the characteristic time is found, relative to itself."""


@dataclass(frozen=True, kw_only=True)
class CheEstimate:
    """An LRU cache in its steady state, or several.

    Attributes:
        seconds: the characteristic time, of several caches the least; infinite where all models fit.
        hit_ratio: of all calls.
        held: each model's probability to be there.
    """

    seconds: float
    hit_ratio: float
    held: Floats

    @property
    def models_held(self) -> float:
        """How many models are there, on average."""
        return float(self.held.sum())


def che(
    rates: Floats, *, limits: tuple[tuple[Floats, float], ...], homes: Integers | None = None, caches: int = 1
) -> CheEstimate:
    """The cache at ``rates`` (calls a second of each model, zero or more, some above).

    ``limits``: pairs of the models' sizes and the capacity for them, in one unit each (bytes of GPU memory; ones and
    the greatest number of models). The limit that is reached first decides. ``homes``: of each model, which of so many
    ``caches`` it belongs to, each of that capacity; None: all to one.
    """
    where = np.zeros(len(rates), dtype=np.int64) if homes is None else homes
    seconds = np.full(caches, math.inf)
    for sizes, room in limits:
        seconds = np.minimum(seconds, _characteristic_times(rates, sizes, room, where=where, caches=caches))
    called = rates > 0
    held = np.zeros(len(rates))
    held[called] = -np.expm1(-rates[called] * seconds[where[called]])
    return CheEstimate(seconds=float(seconds.min()), hit_ratio=float((rates * held).sum() / rates.sum()), held=held)


def _characteristic_times(rates: Floats, sizes: Floats, capacity: float, *, where: Integers, caches: int) -> Floats:
    """Of each cache; infinite where all of its models fit."""
    times = np.full(caches, math.inf)
    called = rates > 0
    full = np.bincount(where, weights=sizes * called, minlength=caches) > capacity
    if not full.any():
        return times
    chosen = called & full[where]
    place = (np.cumsum(full) - 1)[where[chosen]]
    rates, sizes, count = rates[chosen], sizes[chosen], int(full.sum())

    def filled(seconds: Floats) -> Floats:
        there = -np.expm1(-rates * seconds[place])
        return np.bincount(place, weights=sizes * there, minlength=count).astype(np.float64)

    low, high = np.zeros(count), np.full(count, 1.0 / float(rates.max()))
    while (short := filled(high) < capacity).any():
        low, high = np.where(short, high, low), np.where(short, 2 * high, high)
    while (high - low > NEAR * high).any():
        middle = (low + high) / 2
        short = filled(middle) < capacity
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    times[full] = (low + high) / 2
    return times
