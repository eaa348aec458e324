"""The most that a run may take, so that it ends whatever happens."""

from __future__ import annotations

from collections.abc import Callable


class Budget:
    """Calls and time that are left to a run."""

    def __init__(self, *, calls: int, seconds: float, now: Callable[[], float]) -> None:
        """``now``: seconds of a monotonic clock."""
        self._calls = calls
        self._most = calls
        self._seconds = seconds
        self._now = now
        self._end = now() + seconds

    def take(self, calls: int = 1) -> bool:
        """Take so many calls; False, and none taken, where no call or no time is left."""
        if self.spent:
            return False
        self._calls -= calls
        return True

    def count(self, calls: int) -> None:
        """Count calls that were made already, whatever is left."""
        self._calls -= calls

    @property
    def calls(self) -> int:
        """How many calls are left; below 0 where more were made."""
        return self._calls

    @property
    def seconds(self) -> float:
        """How much time is left; below 0 where it is over."""
        return self._end - self._now()

    @property
    def spent(self) -> bool:
        """Whether nothing is left."""
        return self.calls <= 0 or self.seconds <= 0

    @property
    def why(self) -> str:
        """Which of the two is spent, in words; empty while both last."""
        if self.calls <= 0:
            return f"all {self._most} calls were made (--max-calls)"
        return f"{self._seconds:g} s were over (--max-seconds)" if self.seconds <= 0 else ""
