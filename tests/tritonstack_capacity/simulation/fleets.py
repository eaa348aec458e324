"""Small fleets for tests; settings that a test does not give have no effect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tritonstack.config.scaling import Scaling
from tritonstack_capacity.simulation.fleet import SimulatedFleet
from tritonstack_capacity.simulation.instance import EVICTION, HIT, LOAD, Happening, Machine
from tritonstack_capacity.simulation.scenario import Autoscaling, Routing
from tritonstack_capacity.simulation.trace import Floats, ModelKind, ModelTable, Trace, draw_models

UNLIMITED = 10**15
KIND = ModelKind(
    name="model",
    memory=1,
    disk=1,
    download_seconds=0.0,
    load_seconds=0.0,
    fixed=0.001,
    per_item=0.0,
    exponential=False,
    max_batch=1,
    delay=0.0,
    copies=1,
)
"""Loaded in no time, executed in a millisecond."""
MACHINE = Machine(
    memory=UNLIMITED,
    disk=UNLIMITED,
    most_models=None,
    executions=1,
    unload_seconds=0.0,
    parallel_loads=2,
    patience=2.0,
    keep_on_disk=True,
)


def table(*kinds: ModelKind, popularity: Floats | None = None) -> ModelTable:
    """A model of each kind, with equal request rates by default."""
    count = len(kinds)
    return ModelTable(
        kinds=kinds,
        kind_of=np.arange(count),
        popularity=np.full(count, 1 / count) if popularity is None else popularity,
        names=tuple(f"m{number}" for number in range(count)),
    )


def equal_models(count: int, *, kind: ModelKind = KIND, zipf: float = 0.0) -> ModelTable:
    """Models of one kind, called by Zipf's law."""
    weights = np.arange(1, count + 1, dtype=np.float64) ** -zipf
    return ModelTable(
        kinds=(kind,),
        kind_of=np.zeros(count, dtype=np.int64),
        popularity=weights / weights.sum(),
        names=tuple(f"m{number}" for number in range(count)),
    )


def fleet(
    *,
    count: int = 1,
    routing: Routing = "random",
    scaling: Scaling | None = None,
    speed: Autoscaling | None = None,
    spill_calls: int = 8,
    **machine: Any,
) -> SimulatedFleet:
    """``MACHINE`` with some of its fields changed."""
    changed = replace(MACHINE, **machine)
    return SimulatedFleet(
        machine=changed,
        count=count,
        routing=routing,
        spill_calls=spill_calls,
        scaling=scaling,
        speed=speed or Autoscaling(),
    )


def calls(*pairs: tuple[float, int], seconds: float | None = None) -> Trace:
    """Calls at given seconds, of given models."""
    times = np.array([time for time, _ in pairs], dtype=np.float64)
    end = float(times[-1]) + 1.0 if seconds is None else seconds
    return Trace(times=times, models=np.array([model for _, model in pairs], dtype=np.int64), seconds=end)


def one_by_one(models: Sequence[int], *, apart: float = 1.0) -> Trace:
    """Calls that never meet each other."""
    return calls(*((apart * (place + 1), model) for place, model in enumerate(models)))


def drawn(models: ModelTable, *, count: int, apart: float, seed: int) -> Trace:
    """Independent calls of models by their popularity, at equal distances."""
    numbers = draw_models(count, popularity=models.popularity, random=np.random.default_rng(seed))
    times: Floats = apart * np.arange(1, count + 1, dtype=np.float64)
    return Trace(times=times, models=numbers, seconds=apart * (count + 1))


def poisson(*, rate: float, count: int, seed: int) -> Trace:
    """Calls of model 0 at independent moments, ``rate`` a second."""
    times: Floats = np.cumsum(np.random.default_rng(seed).standard_exponential(count) / rate)
    return Trace(times=times, models=np.zeros(count, dtype=np.int64), seconds=float(times[-1]) + 1.0)


def hits(happening: Happening) -> list[bool]:
    """Whether each call met a loaded model."""
    return [bool(each == HIT) for each in happening.calls.outcomes]


def evicted(happening: Happening) -> list[int]:
    """Models in the order in which they were evicted."""
    found: list[int] = happening.events.of_kind(EVICTION)[1].tolist()
    return found


def loaded(happening: Happening) -> list[int]:
    """Models in the order of the calls that began their loads."""
    found: list[int] = happening.events.of_kind(LOAD)[1].tolist()
    return found
