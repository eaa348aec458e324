"""What an instance holds, by Che's approximation: how many models, and what more or less memory would do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tritonstack.sizing.fleet.che import CheEstimate, che
from tritonstack.sizing.fleet.instance import Machine
from tritonstack.sizing.fleet.model_table import Floats, Integers, ModelTable
from tritonstack.sizing.fleet.scenario import Routing

SIZES = (0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0, 8.0)


@dataclass(frozen=True, kw_only=True)
class Holding:
    """One instance in its steady state.

    Attributes:
        bound: what limits it: ``GPU memory``, ``disk``, ``max_loaded_models``, or ``nothing`` where all models fit.
        models: held on average.
        hit_ratio: of all calls.
        by_memory: share of the memory (and disk, and places) that it has → hit ratio with that.
    """

    bound: str
    models: float
    hit_ratio: float
    by_memory: tuple[tuple[float, float], ...]


def caches_together(routing: Routing, count: int) -> int:
    """How many of ``count`` instances' caches are like one large one.

    Where each model has a home that is all of them; any other way each instance sees calls of every model, and all hold
    the same.
    """
    return count if routing in ("loaded", "sticky") else 1


def estimate(
    models: ModelTable,
    machine: Machine,
    *,
    count: int,
    routing: Routing,
    chosen: Integers | None = None,
    scale: float = 1.0,
) -> CheEstimate:
    """The caches of ``count`` instances together.

    ``chosen``: which models are called (1) and which are not (0).
    """
    rates = models.popularity if chosen is None else models.popularity * chosen
    size = scale * caches_together(routing, count)
    return che(rates, limits=tuple((sizes, room * size) for sizes, room in _limits(models, machine).values()))


def holding(models: ModelTable, machine: Machine, *, count: int, routing: Routing) -> Holding:
    """What one of ``count`` instances holds."""
    found = estimate(models, machine, count=count, routing=routing)
    homes = caches_together(routing, count)
    return Holding(
        bound=_bound(models, machine, homes=homes),
        models=found.models_held / homes,
        hit_ratio=found.hit_ratio,
        by_memory=tuple(
            (scale, estimate(models, machine, count=count, routing=routing, scale=scale).hit_ratio) for scale in SIZES
        ),
    )


def _limits(models: ModelTable, machine: Machine) -> dict[str, tuple[Floats, float]]:
    limits = {
        "GPU memory": (models.of_each("memory"), float(machine.memory)),
        "disk": (models.of_each("disk"), float(machine.disk)),
    }
    if machine.most_models is not None:
        limits["max_loaded_models"] = (np.ones(len(models)), float(machine.most_models))
    return limits


def _bound(models: ModelTable, machine: Machine, *, homes: int) -> str:
    times = {
        name: che(models.popularity, limits=((sizes, room * homes),)).seconds
        for name, (sizes, room) in _limits(models, machine).items()
    }
    name = min(times, key=lambda each: times[each])
    return "nothing" if np.isinf(times[name]) else name
