"""Che's approximation: hit ratios of an LRU cache without a replay, and what an instance holds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tritonstack_capacity.simulation.fleet import homes, name_marks
from tritonstack_capacity.simulation.instance import Machine
from tritonstack_capacity.simulation.scenario import Routing
from tritonstack_capacity.simulation.trace import Floats, Integers, ModelTable

# Each model stays for the same time T after its last call ("characteristic time"), so that it is there with
# probability 1 - exp(-rate * T), and T is what fills the cache: the sum of size * (1 - exp(-rate * T)) is the capacity
# (Che, Tung and Wang, "Hierarchical Web Caching Systems", IEEE JSAC 20(7), 2002; why it is so near: Fricker, Robert
# and Roberts, "A versatile and accurate approximation for LRU cache performance", ITC 24, 2012). It holds for
# independent calls.
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


SIZES = (0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0, 8.0)


@dataclass(frozen=True, kw_only=True)
class Holding:
    """One instance in its steady state.

    Attributes:
        bound: what limits it: ``GPU memory``, ``disk``, ``max_loaded_models``, or ``nothing`` where all models fit.
        models: held on average, over time and instances.
        hit_ratio: of all calls.
        at_most: whether that is an upper bound: see ``Caches``.
        by_memory: share of the memory (and disk, and places) that it has → hit ratio with that.
    """

    bound: str
    models: float
    hit_ratio: float
    at_most: bool
    by_memory: tuple[tuple[float, float], ...]


class Caches:
    """The caches of any number of instances, by Che's approximation.

    With sticky routing each instance is a cache of the models that belong to it, as the simulation assigns them. With
    random and least_outstanding each is a cache of all models, and all are alike. With loaded they are one cache of all
    their memory: an upper bound, as if no model were loaded twice, and any model had a place wherever there is one.
    """

    def __init__(self, models: ModelTable, machine: Machine, *, routing: Routing) -> None:
        """Caches of ``machine`` each."""
        self._models, self._routing = models, routing
        self._limits = _limits(models, machine)
        self._marks = name_marks(models.names) if routing == "sticky" else None
        self._homes: dict[int, Integers] = {}

    def sharing(self, count: int) -> int:
        """How many of ``count`` instances share the models among them; otherwise each sees calls of all."""
        return count if self._routing in ("loaded", "sticky") else 1

    def homes(self, count: int) -> Integers | None:
        """Of each model the one of ``count`` instances that it belongs to; None where it belongs to none, or to any."""
        if self._marks is None or count == 1:
            return None
        if count not in self._homes:
            self._homes[count] = homes(self._marks, range(count))
        return self._homes[count]

    def estimate(self, count: int, *, chosen: Integers | None = None, scale: float = 1.0) -> CheEstimate:
        """Of ``count`` instances, each ``scale`` times as large; ``chosen``: models that are called (1) or not (0)."""
        return self._che(self._limits, count, chosen=chosen, scale=scale)

    def holding(self, count: int) -> Holding:
        """What one of ``count`` instances holds."""
        found = self.estimate(count)
        return Holding(
            bound=self._bound(count),
            models=found.models_held / self.sharing(count),
            hit_ratio=found.hit_ratio,
            at_most=self._routing == "loaded" and count > 1,
            by_memory=tuple((scale, self.estimate(count, scale=scale).hit_ratio) for scale in SIZES),
        )

    def _che(
        self, limits: dict[str, tuple[Floats, float]], count: int, *, chosen: Integers | None = None, scale: float = 1.0
    ) -> CheEstimate:
        rates = self._models.popularity if chosen is None else self._models.popularity * chosen
        where = self.homes(count)
        size = scale * (self.sharing(count) if where is None else 1)
        rooms = tuple((sizes, room * size) for sizes, room in limits.values())
        return che(rates, limits=rooms, homes=where, caches=1 if where is None else count)

    def _bound(self, count: int) -> str:
        times = {name: self._che({name: limit}, count).seconds for name, limit in self._limits.items()}
        name = min(times, key=lambda each: times[each])
        return "nothing" if np.isinf(times[name]) else name


def _limits(models: ModelTable, machine: Machine) -> dict[str, tuple[Floats, float]]:
    limits = {
        "GPU memory": (models.of_each("memory"), float(machine.memory)),
        "disk": (models.of_each("disk"), float(machine.disk)),
    }
    if machine.most_models is not None:
        limits["max_loaded_models"] = (np.ones(len(models)), float(machine.most_models))
    return limits
