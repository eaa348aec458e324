"""One instance: its GPU, its disk, the models that it holds, how it loads and evicts them, and the events of it."""

from __future__ import annotations

from array import array
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, cast

import numpy as np

from tritonstack.aws.sagemaker_rules import ModelState, model_to_evict, model_to_retire, unloads_when_idle
from tritonstack_capacity.simulation.trace import Floats, Integers, ModelKind

Event = tuple[float, int, Callable[[Any, float], None], Any]


class Clock:
    """Schedules events. Times are seconds from the beginning of the simulation.

    ``events`` is a heap that the simulation's inner loop reads itself: a method's call for each event costs too much.
    """

    __slots__ = ("_scheduled", "events")

    def __init__(self) -> None:
        """No event is scheduled."""
        self.events: list[Event] = []
        self._scheduled = 0

    def at(self, moment: float, do: Callable[[Any, float], None], subject: Any) -> None:
        """Call ``do(subject, moment)`` when it is ``moment``."""
        self._scheduled += 1
        heappush(self.events, (moment, self._scheduled, do, subject))

    def run_until(self, moment: float) -> None:
        """Run every event that is scheduled up to and at ``moment``."""
        events = self.events
        while events and events[0][0] <= moment:
            now, _, do, subject = heappop(events)
            do(subject, now)


HIT, WAITED, FROM_DISK, DOWNLOADED = range(4)
"""State of a request's model: loaded; being loaded or unloaded; not loaded, with its files on the disk, or to be
downloaded first. Only the first is a hit, as SageMaker counts ModelCacheHit."""
LOAD, EVICTION = range(2)


def view(numbers: Floats) -> memoryview[float]:
    """The numbers of an array, one by one."""
    return cast("memoryview[float]", numbers.data)


class Calls:
    """Of each request, by its number in the trace: latency in seconds, and what it met. Written through memory views,
    which are faster for single values than arrays are."""

    def __init__(self, count: int) -> None:
        """No request is done yet."""
        self.latencies: Floats = np.full(count, np.nan)
        self.outcomes = np.zeros(count, dtype=np.uint8)
        self.latency_view = view(self.latencies)
        self.outcome_view = self.outcomes.data


class ModelEvents:
    """Loads (when their request came) and evictions, in the order of time."""

    def __init__(self) -> None:
        """Nothing happened yet."""
        self.seconds = array("d")
        self.kinds = array("b")
        self.models = array("q")
        self.instances = array("q")

    def note(self, now: float, kind: int, *, model: int, instance: int) -> None:
        """One more."""
        self.seconds.append(now)
        self.kinds.append(kind)
        self.models.append(model)
        self.instances.append(instance)

    def of_kind(self, kind: int) -> tuple[Floats, Integers, Integers]:
        """Seconds, models and instances of the events of a kind."""
        chosen = np.frombuffer(self.kinds, dtype=np.int8) == kind if self.kinds else np.zeros(0, dtype=bool)
        return (
            np.array(self.seconds, dtype=np.float64)[chosen],
            np.array(self.models, dtype=np.int64)[chosen],
            np.array(self.instances, dtype=np.int64)[chosen],
        )


@dataclass(frozen=True)
class FleetChange:
    """The fleet from a moment on: instances that take requests, and paid ones (also starting and draining)."""

    seconds: float
    serving: int
    paid: int


@dataclass(kw_only=True)
class Happening:
    """All of it."""

    # see their classes; ``fleet`` begins at 0
    calls: Calls
    events: ModelEvents
    fleet: list[FleetChange] = field(default_factory=list)
    # (seconds, models loaded, instances serving) once a minute
    loaded: list[tuple[float, int, int]] = field(default_factory=list)
    seconds: float = 0.0  # when requests stopped coming; what was under way then was still finished

    def lasting(self) -> list[tuple[float, float, FleetChange]]:
        """(start, end, fleet) until requests stopped coming, each longer than nothing."""
        ends = [change.seconds for change in self.fleet[1:]] + [self.seconds]
        found = [(change.seconds, min(end, self.seconds), change) for change, end in zip(self.fleet, ends, strict=True)]
        return [each for each in found if each[1] > each[0]]


class Disk:
    """The models whose files are stored. Files are in use from ``claim`` or ``take`` until ``release``."""

    def __init__(self, size: int, kinds: Sequence[ModelKind]) -> None:
        """Empty; ``size`` in bytes, ``kinds`` by the models' numbers."""
        self._free = size
        self._kinds = kinds
        self._unused: OrderedDict[int, None] = OrderedDict()  # the least recently used first
        self._unused_bytes = 0

    def claim(self, model: int) -> bool:
        """Use the model's files. False: they are not there."""
        if model not in self._unused:
            return False
        del self._unused[model]
        self._unused_bytes -= self._kinds[model].disk
        return True

    def take(self, model: int) -> bool:
        """Make room for the model's files and use it. False: files in use leave too little, and nothing is deleted."""
        needed = self._kinds[model].disk
        if self._free + self._unused_bytes < needed:
            return False
        while self._free < needed:
            size = self._kinds[self._unused.popitem(last=False)[0]].disk
            self._unused_bytes -= size
            self._free += size
        self._free -= needed
        return True

    def release(self, model: int, *, keep: bool) -> None:
        """The files are no longer in use; without ``keep`` they are deleted."""
        size = self._kinds[model].disk
        if keep:
            self._unused[model] = None
            self._unused_bytes += size
        else:
            self._free += size


class HeldModel:
    """One model of one instance.

    Attributes:
        model, kind: which one.
        queue: requests that wait for an execution (numbers in the trace).
        late: requests that came while it was being unloaded; they make it load again.
        running: executions under way, at most ``kind.copies``.
        in_flight: requests in ``queue`` and under way.
        backlog: those of them that came before it was loaded; counted from the end of the load on.
        in_line: whether it waits for its turn on the GPU.
        timed: whether the end of its batching delay is scheduled.
    """

    __slots__ = ("backlog", "in_flight", "in_line", "kind", "late", "model", "queue", "running", "state", "timed")

    def __init__(self, model: int, kind: ModelKind) -> None:
        """It is about to be loaded."""
        self.model = model
        self.kind = kind
        self.state = ModelState.LOADING
        self.queue: deque[int] = deque()
        self.late: list[int] = []
        self.running = 0
        self.in_flight = 0
        self.backlog = 0
        self.in_line = False
        self.timed = False


# Loading follows the local runtime event by event, and both tritonstack.aws.sagemaker_rules: a request of a
# model that is not there downloads it, waits for its turn to load, takes a place (the least recently used idle model
# is evicted where there is none), and loads it.
Run = tuple[HeldModel, list[int]]


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Properties of instances. Sizes are bytes, times are seconds."""

    memory: int  # GPU memory for models
    disk: int  # for their files
    most_models: int | None  # at once; None: as many as fit
    executions: int  # at once on the GPU
    # see ``ColdStart`` of the scenario
    unload_seconds: float
    parallel_loads: int
    patience: float
    keep_on_disk: bool  # whether an unloaded model's files stay
    # whether an idle model stays loaded; without, it is unloaded as soon as its last request is done
    cached: bool = True


@dataclass(frozen=True, kw_only=True)
class World:
    """Objects that all instances share."""

    clock: Clock
    kinds: Sequence[ModelKind]  # of each model, by its number
    arrived: memoryview[float]  # when each request came (seconds), by its number
    calls: Calls
    events: ModelEvents
    exponential: Callable[[], float]  # the next exponential number of mean 1


class Instance:
    """A machine at work.

    Attributes:
        in_flight: requests that it has not finished.
        arrivals: requests that it was given.
        busy: seconds of executions that began, all together.
        held: models by number, loading and unloading ones too.
        memory_left: bytes of GPU memory that no model has.
    """

    def __init__(self, number: int, machine: Machine, world: World) -> None:
        """Cold: without a model."""
        self.number = number
        self.machine = machine
        self.in_flight = 0
        self.arrivals = 0
        self.busy = 0.0
        self.held: dict[int, HeldModel] = {}
        self.memory_left = machine.memory
        self._places_left = machine.most_models if machine.most_models is not None else len(world.kinds)
        self._world = world
        self._at = world.clock.at
        self._arrived = world.arrived
        self._latencies = world.calls.latency_view
        self._outcomes = world.calls.outcome_view
        self._disk = Disk(machine.disk, world.kinds)
        self._used: OrderedDict[int, HeldModel] = OrderedDict()  # loaded ones, the least recently used first
        self._free = machine.executions
        self._line: deque[HeldModel] = deque()
        self._disk_line: deque[HeldModel] = deque()  # loads that wait for disk
        self._loads: deque[HeldModel] = deque()  # those that wait for their turn in the container
        self._turns = machine.parallel_loads  # that are free
        self._memory_line: deque[HeldModel] = deque()  # those whose turn it is, and that wait for memory or a place
        self._patient = False  # whether the end of the patience is scheduled
        self._leaving = 0  # models that are being unloaded
        self._leaving_memory = 0  # and their GPU memory

    @property
    def loaded(self) -> int:
        """Number of loaded models that take requests."""
        return len(self._used)

    def is_loading(self, model: int) -> bool:
        """Whether a model is on its way in."""
        held = self.held.get(model)
        return held is not None and held.state is ModelState.LOADING

    def calls_of(self, model: int) -> tuple[int, int] | None:
        """Unfinished requests of a model, and how many of them met it loaded; None where it is not loaded."""
        held = self.held.get(model)
        if held is None or held.state is not ModelState.LOADED:
            return None
        return held.in_flight, held.in_flight - held.backlog

    # Calls ----------------------------------------------------------------------------------------------------------

    def take(self, call: int, model: int, now: float) -> None:
        """A request comes."""
        self.in_flight += 1
        self.arrivals += 1
        held = self.held.get(model)
        if held is None:
            self._begin(call, model, now)
            return
        state = held.state
        if state is ModelState.LOADED:
            held.in_flight += 1
            held.queue.append(call)
            if not held.in_line:
                self._offer(held, now)
        elif state is ModelState.LOADING:
            self._outcomes[call] = WAITED
            held.in_flight += 1
            held.queue.append(call)
        else:
            self._outcomes[call] = WAITED
            held.late.append(call)

    def _offer(self, held: HeldModel, now: float) -> None:
        """Let a model with waiting requests execute, as soon as an instance of it and the GPU are free."""
        kind = held.kind
        if held.running >= kind.copies:
            return
        if kind.delay and len(held.queue) < kind.max_batch:
            due = self._arrived[held.queue[0]] + kind.delay
            if now < due:
                if not held.timed:
                    held.timed = True
                    self._at(due, self._delay_over, held)
                return
        if self._free:
            self._execute(held, now)
        else:
            held.in_line = True
            self._line.append(held)

    def _delay_over(self, held: HeldModel, now: float) -> None:
        held.timed = False
        if held.queue and not held.in_line and held.state is not ModelState.LOADING:
            self._offer(held, now)

    def _execute(self, held: HeldModel, now: float) -> None:
        """One batch: as many of the waiting requests as it takes."""
        kind, queue = held.kind, held.queue
        if len(queue) == 1:
            batch = [queue.popleft()]
        else:
            batch = [queue.popleft() for _ in range(min(len(queue), kind.max_batch))]
        seconds = kind.fixed + kind.per_item * len(batch)
        if kind.exponential:
            seconds *= self._world.exponential()
        self._free -= 1
        held.running += 1
        self.busy += seconds
        self._at(now + seconds, self._executed, (held, batch))
        if queue:
            self._offer(held, now)

    def _executed(self, run: Run, now: float) -> None:
        held, batch = run
        latencies, arrived = self._latencies, self._arrived
        for call in batch:
            latencies[call] = now - arrived[call]
        count = len(batch)
        self.in_flight -= count
        held.in_flight -= count
        if held.backlog:
            outcomes = self._outcomes
            held.backlog -= sum(outcomes[call] != HIT for call in batch)
        held.running -= 1
        self._free += 1
        self._used.move_to_end(held.model)
        if self._line:
            self._next_in_line(now)
        if held.queue:
            if not held.in_line:
                self._offer(held, now)
        elif not held.in_flight:
            if unloads_when_idle(held, cache_enabled=self.machine.cached):
                self._unload(held, now)
                self._serve_room(now)
            elif self._memory_line or self._disk_line:
                self._serve_room(now)

    def _next_in_line(self, now: float) -> None:
        held = self._line.popleft()
        held.in_line = False
        self._execute(held, now)

    # Loading --------------------------------------------------------------------------------------------------------

    def _begin(self, call: int, model: int, now: float) -> None:
        held = HeldModel(model, self._world.kinds[model])
        held.in_flight = 1
        held.queue.append(call)
        self.held[model] = held
        self._world.events.note(now, LOAD, model=model, instance=self.number)
        if self._disk.claim(model):
            self._outcomes[call] = FROM_DISK
            self._downloaded(held, now)
        else:
            self._outcomes[call] = DOWNLOADED
            self._disk_line.append(held)
            self._serve_room(now)

    def _downloaded(self, held: HeldModel, now: float) -> None:
        """Queue the model for its turn; it takes room only then, so that a burst of loads does not empty the cache."""
        if self._turns:
            self._turns -= 1
            self._memory_line.append(held)
            self._serve_room(now)
        else:
            self._loads.append(held)

    def _serve_room(self, now: float) -> None:
        """Give loads room in order of arrival; idle models are evicted for them, the least recently used first."""
        self._grant(now)
        while self._lacks_room():
            victim = model_to_evict(self._used.values())
            if victim is None:
                break
            self._unload(victim, now)
            self._grant(now)
        if (self._memory_line or self._disk_line) and not self._patient:
            self._patient = True
            self._at(now + self.machine.patience, self._patience_over, None)

    def _grant(self, now: float) -> None:
        """Load the models for which there is room, or start their download."""
        line = self._memory_line
        while line and self._places_left > 0 and self.memory_left >= line[0].kind.memory:
            held = line.popleft()
            self.memory_left -= held.kind.memory
            self._places_left -= 1
            self._at(now + held.kind.load_seconds, self._loaded, held)
        line = self._disk_line
        while line and self._disk.take(line[0].model):
            held = line.popleft()
            self._at(now + held.kind.download_seconds, self._downloaded, held)

    def _lacks_room(self) -> bool:
        """Whether loads need more than is free, or becomes free by the unloads under way."""
        if self._disk_line and not self._leaving:
            return True
        line = self._memory_line
        if not line:
            return False
        free = self.memory_left + self._leaving_memory
        return len(line) > self._places_left + self._leaving or sum(held.kind.memory for held in line) > free

    def _loaded(self, held: HeldModel, now: float) -> None:
        if self._loads:
            self._memory_line.append(self._loads.popleft())
        else:
            self._turns += 1
        held.state = ModelState.LOADED
        held.backlog = held.in_flight
        self._used[held.model] = held
        self._offer(held, now)
        self._serve_room(now)

    # Evicting -------------------------------------------------------------------------------------------------------

    def _patience_over(self, _: None, __: float) -> None:
        """No model was idle for a while: the least recently used one takes no new requests from now on."""
        self._patient = False
        if self._leaving or not (self._memory_line or self._disk_line):
            return
        oldest = model_to_retire(self._used.values())
        if oldest is not None:
            oldest.state = ModelState.RETIRING

    def _unload(self, held: HeldModel, now: float) -> None:
        """An idle model is unloaded. Requests that came while it was retiring begin its load again."""
        held.state = ModelState.UNLOADING
        del self._used[held.model]
        self._leaving += 1
        self._leaving_memory += held.kind.memory
        self._world.events.note(now, EVICTION, model=held.model, instance=self.number)
        if self.machine.unload_seconds:
            self._at(now + self.machine.unload_seconds, self._unloaded, held)
        else:
            self._forget(held, now)

    def _unloaded(self, held: HeldModel, now: float) -> None:
        self._forget(held, now)
        self._serve_room(now)

    def _forget(self, held: HeldModel, now: float) -> None:
        self._leaving -= 1
        self._leaving_memory -= held.kind.memory
        del self.held[held.model]
        self.memory_left += held.kind.memory
        self._places_left += 1
        self._disk.release(held.model, keep=self.machine.keep_on_disk)
        if held.late:
            self._again(held, now)

    def _again(self, held: HeldModel, now: float) -> None:
        first, *others = held.late
        self._begin(first, held.model, now)
        again = self.held[held.model]
        again.queue.extend(others)
        again.in_flight += len(others)
