"""Events of a simulation: of each call, of each load, of each change of the fleet; the clock that orders them."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, cast

import numpy as np

from tritonstack_capacity.simulation.trace import Floats, Integers

Event = tuple[float, int, Callable[[Any, float], None], Any]


class Clock:
    """Plans events. Times are seconds from the beginning of the simulation.

    ``events`` is a heap that the simulation's inner loop reads itself: a method's call for each event costs too much.
    """

    __slots__ = ("_planned", "events")

    def __init__(self) -> None:
        """Nothing is planned."""
        self.events: list[Event] = []
        self._planned = 0

    def at(self, moment: float, do: Callable[[Any, float], None], subject: Any) -> None:
        """Call ``do(subject, moment)`` when it is ``moment``."""
        self._planned += 1
        heappush(self.events, (moment, self._planned, do, subject))

    def run_until(self, moment: float) -> None:
        """Everything that is planned up to and at ``moment``."""
        events = self.events
        while events and events[0][0] <= moment:
            now, _, do, subject = heappop(events)
            do(subject, now)


HIT, WAITED, FROM_DISK, DOWNLOADED = range(4)
"""What a call met: a loaded model; a load or unload under way; it began a load, of files on the disk, or of an archive
that was downloaded first. Only the first is a hit, as SageMaker counts ModelCacheHit."""
LOAD, EVICTION = range(2)


def view(numbers: Floats) -> memoryview[float]:
    """The numbers of an array, one by one."""
    return cast("memoryview[float]", numbers.data)


class Calls:
    """Of each call, by its number in the trace: latency in seconds, and what it met. Written through memory views,
    which are faster for single values than arrays are."""

    def __init__(self, count: int) -> None:
        """Nothing is answered yet."""
        self.latencies: Floats = np.full(count, np.nan)
        self.outcomes = np.zeros(count, dtype=np.uint8)
        self.latency_view = view(self.latencies)
        self.outcome_view = self.outcomes.data


class ModelEvents:
    """Loads (when their call came) and evictions, in the order of time."""

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
    """The fleet from a moment on: instances that take calls, and those that are paid (starting and draining, too)."""

    seconds: float
    serving: int
    paid: int


@dataclass(kw_only=True)
class Happening:
    """All of it.

    Attributes:
        calls, events, fleet: see their classes; ``fleet`` begins at 0.
        loaded: (seconds, models loaded, GPU memory bytes used, instances serving) once a minute.
        seconds: when calls stopped coming; what was under way then was still finished.
    """

    calls: Calls
    events: ModelEvents
    fleet: list[FleetChange] = field(default_factory=list)
    loaded: list[tuple[float, int, int, int]] = field(default_factory=list)
    seconds: float = 0.0

    def instance_seconds(self) -> float:
        """Paid time until calls stopped coming, of all instances."""
        ends = [change.seconds for change in self.fleet[1:]] + [self.seconds]
        lasting = (
            max(0.0, min(end, self.seconds) - change.seconds) for change, end in zip(self.fleet, ends, strict=True)
        )
        return sum(time * change.paid for time, change in zip(lasting, self.fleet, strict=True))
