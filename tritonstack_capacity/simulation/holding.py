"""What an instance holds, by Che's approximation: how many models, and what more or less memory would do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tritonstack_capacity.simulation.che import CheEstimate, che
from tritonstack_capacity.simulation.homes import homes, name_marks
from tritonstack_capacity.simulation.instance import Machine
from tritonstack_capacity.simulation.model_table import Floats, Integers, ModelTable
from tritonstack_capacity.simulation.scenario import Routing

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
