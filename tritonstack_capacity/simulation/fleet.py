"""The simulation: requests in order of time, routed to instances that are added and removed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from tritonstack.config.scaling import Scaling
from tritonstack_capacity.simulation.autoscaler import FINEST, Autoscaler
from tritonstack_capacity.simulation.instance import (
    Calls,
    Clock,
    FleetChange,
    Happening,
    Instance,
    Machine,
    ModelEvents,
    World,
    view,
)
from tritonstack_capacity.simulation.scenario import SPILL_CALLS, Autoscaling, Routing
from tritonstack_capacity.simulation.trace import MINUTE, Floats, ModelTable, Trace

Choose = Callable[[int], Instance]

ROUTING_ASSUMPTIONS: dict[Routing, str] = {
    "loaded": "a model's requests go to an instance that has it loaded, or that loads it where none has; while "
    "{spill_calls} of them that met it loaded are in progress on each of those, one goes to another instance, which "
    "loads it, too: one at a time. The developer guide (How Multi-Model Endpoints Work) says only "
    "that many requests for a model may go to another instance",
    "least_outstanding": "each request goes to the instance with the fewest requests in progress, whatever its model",
    "random": "each request goes to any instance with equal probability, whatever its model",
}
"""Routing → its assumption, in the output."""


class Router:
    """Chooses among the instances that take requests now."""

    def __init__(self, routing: Routing, *, spill_calls: int, uniform: Callable[[], float]) -> None:
        """``uniform`` gives the next number in [0, 1)."""
        self.serving: Sequence[Instance] = ()
        self._uniform = uniform
        self._spill_calls = spill_calls
        by: dict[Routing, Choose] = {
            "loaded": self._holder,
            "least_outstanding": lambda _: self._idlest_of(self.serving),
            "random": lambda _: self.serving[int(self._uniform() * len(self.serving))],
        }
        self._choose = by[routing]

    def changed(self, serving: Sequence[Instance]) -> Choose:
        """These instances take requests from now on; what chooses among them."""
        self.serving = serving
        if len(serving) == 1:
            only = serving[0]
            return lambda _: only
        return self._choose

    def _idlest_of(self, instances: Sequence[Instance]) -> Instance:
        fewest = min(each.in_flight for each in instances)
        equal = [each for each in instances if each.in_flight == fewest]
        return equal[0] if len(equal) == 1 else equal[int(self._uniform() * len(equal))]

    def _holder(self, model: int) -> Instance:
        """What waits for a load is no reason for a second one, or each cold start of seconds would make copies."""
        calls = {each: counts for each in self.serving if (counts := each.calls_of(model)) is not None}
        loading = next((each for each in self.serving if each.is_loading(model)), None)
        if not calls:
            return loading or self._idlest_of(self.serving)
        many = all(met_loaded >= self._spill_calls for _, met_loaded in calls.values())
        if not many or loading is not None or len(calls) == len(self.serving):
            return min(calls, key=lambda each: calls[each][0])
        return self._idlest_of([each for each in self.serving if each not in calls])


CHUNK = 65_536
"""Requests and random numbers are turned into Python's numbers by the chunk: single values of arrays are slow."""


@dataclass(frozen=True, kw_only=True)
class SimulatedFleet:
    """An endpoint: its machines, how many, and how requests spread over them. ``scaling`` None: always ``count``.

    ``spill_calls`` is the scenario's. Schedules of ``scaling`` are not simulated.
    """

    machine: Machine
    count: int
    routing: Routing
    spill_calls: int = SPILL_CALLS
    scaling: Scaling | None = None
    speed: Autoscaling = field(default_factory=Autoscaling)


def simulate(fleet: SimulatedFleet, models: ModelTable, trace: Trace, *, seed: int) -> Happening:
    """Every request of ``trace``, until the last one is done. The same bits for the same arguments."""
    return _Simulation(fleet, models, trace, seed=seed).run()


class _Simulation:
    def __init__(self, fleet: SimulatedFleet, models: ModelTable, trace: Trace, *, seed: int) -> None:
        routing_seed, service_seed = np.random.SeedSequence(seed).spawn(2)
        self._fleet, self._models, self._trace = fleet, models, trace
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
        self._router = Router(fleet.routing, spill_calls=fleet.spill_calls, uniform=_stream(uniform.random))
        self._instances = [self._new(number) for number in range(fleet.count)]
        self._born = fleet.count
        self._starting = 0
        self._draining: list[Instance] = []
        self._choose: Choose = self._router.changed(self._instances)
        self._scaler = None if fleet.scaling is None else Autoscaler(fleet.scaling, fleet.speed, wanted=fleet.count)

    def run(self) -> Happening:
        """Process all requests, then those still under way."""
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
        return Instance(number, self._fleet.machine, self._world)

    def _sample(self, _: None, now: float) -> None:
        serving = self._instances
        self._happening.loaded.append((now, sum(each.loaded for each in serving), len(serving)))
        if now < self._trace.seconds:
            self._clock.at(now + MINUTE, self._sample, None)

    # Instances come and go ------------------------------------------------------------------------------------------

    def _look(self, scaler: Autoscaler, now: float) -> None:
        """Follow the scaling. It ends with the last request."""
        wanted = scaler.look(now, self._instances, starting=self._starting)
        there = len(self._instances) + self._starting
        for _ in range(wanted - there):
            self._starting += 1
            self._clock.at(now + self._fleet.speed.startup_seconds, self._started, scaler)
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
