"""The clock of the local AWS, which a test can move: a wait of two hours then takes no time.

Every time-out that the emulator keeps is a ``Deadline`` of this clock. Moving it wakes every waiter.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

MOST_SECONDS = 366 * 86400
"""The most that one move takes the clock forward: schedules go through every moment that is passed."""
MOST_AHEAD_SECONDS = 100 * MOST_SECONDS
"""The most that it is ahead of the system's time: far beyond, times cannot be written as dates."""


@dataclass(frozen=True, kw_only=True)
class Deadline:
    """A moment of ``clock``, in seconds since the epoch."""

    clock: Clock
    at: float

    @property
    def remaining(self) -> float:
        """Seconds until then, never negative."""
        return max(0.0, self.at - self.clock.now())

    @property
    def passed(self) -> bool:
        """Whether the moment has come."""
        return self.clock.now() >= self.at


class Clock:
    """The system's time, and seconds that tests add to it. Thread-safe.

    Attributes:
        condition: notified when the clock is moved, and by ``wake``.
    """

    def __init__(self) -> None:
        """Start at the system's time."""
        self.condition = threading.Condition(threading.RLock())
        self._ahead = time.time() - time.monotonic()  # the system's time may jump, ours must not
        self._moved_by = 0.0  # apart: a difference of times since the epoch loses its last digits
        self._moved: list[Callable[[], None]] = []

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.monotonic() + self._ahead

    def advance(self, seconds: float) -> float:
        """Move the clock forward, wake all waiters, return the new time. Raises ValueError for a wrong number."""
        if isinstance(seconds, bool) or not 0 <= seconds <= MOST_SECONDS:  # which nan is not
            raise ValueError(f"{seconds} s: the clock moves forward by 0 to {MOST_SECONDS} s at a time")
        with self.condition:
            if self._moved_by + seconds > MOST_AHEAD_SECONDS:
                raise ValueError(f"{seconds} s: the clock would be more than {MOST_AHEAD_SECONDS} s ahead")
            self._ahead += seconds
            self._moved_by += seconds
            self.condition.notify_all()
        for call in list(self._moved):
            call()
        return self.now()

    def wake(self) -> None:
        """Have waiters look again, after a change that they may wait for."""
        with self.condition:
            self.condition.notify_all()

    def deadline(self, seconds: float) -> Deadline:
        """``seconds`` from now."""
        return Deadline(clock=self, at=self.now() + seconds)

    def wait_for(self, happened: Callable[[], bool], deadline: Deadline) -> bool:
        """Wait until ``happened()`` or the deadline; return its last value.

        It is called again whenever ``condition`` is notified, with its lock held.
        """
        with self.condition:
            while not (result := happened()) and not deadline.passed:
                self.condition.wait(timeout=deadline.remaining)
            return result

    def on_advance(self, call: Callable[[], None]) -> None:
        """Have ``call`` called whenever the clock is moved: for waits on another condition than ``condition``."""
        self._moved.append(call)


clock = Clock()
"""The one clock of this process."""
