"""The events that are to come, in the order of time; equal times in the order in which they were planned."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

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
