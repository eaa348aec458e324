"""The simulation: calls in the order of time, over instances that come and go."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from tritonstack.settings.scaling import Scaling
from tritonstack_capacity.simulation.autoscaler import FINEST, Autoscaler
from tritonstack_capacity.simulation.clock import Clock
from tritonstack_capacity.simulation.happening import Calls, FleetChange, Happening, ModelEvents, view
from tritonstack_capacity.simulation.instance import Instance, Machine, World
from tritonstack_capacity.simulation.model_table import Floats, ModelTable
from tritonstack_capacity.simulation.routing import Choose, Router
from tritonstack_capacity.simulation.scenario import SPILL_CALLS, Autoscaling, Routing
from tritonstack_capacity.simulation.schedule import LimitChange
from tritonstack_capacity.simulation.trace import MINUTE, Trace

CHUNK = 65_536
"""Calls and random numbers are turned into Python's numbers by the chunk: single values of arrays are slow."""


@dataclass(frozen=True, kw_only=True)
class FleetPlan:
    """An endpoint: its machines, how many, and how calls spread over them. ``scaling`` None: always ``count``.

    ``spill_calls`` is the scenario's. ``changes``: what schedules of ``scaling`` come to, in the order of time.
    """

    machine: Machine
    count: int
    routing: Routing
    spill_calls: int = SPILL_CALLS
    scaling: Scaling | None = None
    speed: Autoscaling = field(default_factory=Autoscaling)
    changes: tuple[LimitChange, ...] = ()


def simulate(plan: FleetPlan, models: ModelTable, trace: Trace, *, seed: int) -> Happening:
    """Every call of ``trace``, until the last one is answered. The same bits for the same arguments."""
    return _Simulation(plan, models, trace, seed=seed).run()


class _Simulation:
    def __init__(self, plan: FleetPlan, models: ModelTable, trace: Trace, *, seed: int) -> None:
        routing_seed, service_seed = np.random.SeedSequence(seed).spawn(2)
        self._plan, self._models, self._trace = plan, models, trace
        self._clock = Clock()
        self._happening = Happening(calls=Calls(len(trace)), events=ModelEvents(), seconds=trace.seconds)
        exponential = np.random.default_rng(service_seed)
        uniform = np.random.default_rng(routing_seed)
        self._world = World(
            clock=self._clock,
            kinds=[models.kinds[number] for number in models.kind_of.tolist()],
            arrived=view(trace.times),
            calls=self._happening.calls,
            events=self._happening.events,
            exponential=_stream(exponential.standard_exponential),
        )
        self._router = Router(
            plan.routing, spill_calls=plan.spill_calls, models=models, uniform=_stream(uniform.random)
        )
        self._instances = [self._new(number) for number in range(plan.count)]
        self._born = plan.count
        self._starting = 0
        self._draining: list[Instance] = []
        self._choose: Choose = self._router.changed(self._instances)
        self._scaler = (
            None
            if plan.scaling is None
            else Autoscaler(plan.scaling, plan.speed, wanted=plan.count, changes=plan.changes)
        )

    def run(self) -> Happening:
        """All calls, then what is still under way."""
        self._note_fleet(0.0)
        self._clock.at(MINUTE, self._sample, None)
        if self._scaler is not None:
            self._clock.at(FINEST, self._look, self._scaler)
        trace, events, run_until = self._trace, self._clock.events, self._clock.run_until
        call = 0
        for start in range(0, len(trace), CHUNK):
            times, models = (each[start : start + CHUNK].tolist() for each in (trace.times, trace.models))
            for now, model in zip(times, models, strict=True):
                if events and events[0][0] <= now:
                    run_until(now)
                self._choose(model).take(call, model, now)
                call += 1
        run_until(math.inf)
        return self._happening

    def _new(self, number: int) -> Instance:
        return Instance(number, self._plan.machine, self._world)

    def _sample(self, _: None, now: float) -> None:
        serving = self._instances
        used = sum(each.machine.memory - each.memory_left for each in serving)
        self._happening.loaded.append((now, sum(each.loaded for each in serving), used, len(serving)))
        if now < self._trace.seconds:
            self._clock.at(now + MINUTE, self._sample, None)

    # Instances come and go ------------------------------------------------------------------------------------------

    def _look(self, scaler: Autoscaler, now: float) -> None:
        """Follow the scaling. Looking ends with the calls."""
        wanted = scaler.look(now, self._instances, starting=self._starting)
        there = len(self._instances) + self._starting
        for _ in range(wanted - there):
            self._starting += 1
            self._clock.at(now + self._plan.speed.startup_seconds, self._started, scaler)
        if wanted < there:
            self._remove(there - wanted, now)
        if wanted != there:
            self._note_fleet(now)
        if self._draining:
            self._end_drained(now)
        if now < self._trace.seconds:
            self._clock.at(now + FINEST, self._look, scaler)

    def _started(self, scaler: Autoscaler, now: float) -> None:
        scaler.started(now)
        self._starting -= 1
        self._instances = [*self._instances, self._new(self._born)]
        self._born += 1
        self._choose = self._router.changed(self._instances)
        self._note_fleet(now)

    def _remove(self, count: int, now: float) -> None:
        """The youngest go: which ones SageMaker takes is not published. Those that still start stay."""
        count = min(count, len(self._instances) - 1)
        if count <= 0:
            return
        self._draining += self._instances[-count:]
        self._instances = self._instances[:-count]
        self._choose = self._router.changed(self._instances)
        self._end_drained(now)

    def _end_drained(self, now: float) -> None:
        left = [each for each in self._draining if each.in_flight]
        if len(left) != len(self._draining):
            self._draining = left
            self._note_fleet(now)

    def _note_fleet(self, now: float) -> None:
        serving = len(self._instances)
        self._happening.fleet.append(FleetChange(now, serving, serving + self._starting + len(self._draining)))


def _stream(draw: Callable[[int], Floats]) -> Callable[[], float]:
    """One number after the other."""
    numbers: Iterator[float] = iter(())

    def following() -> float:
        nonlocal numbers
        number = next(numbers, None)
        if number is None:
            numbers = iter(draw(CHUNK).tolist())
            number = next(numbers)
        return number

    return following
