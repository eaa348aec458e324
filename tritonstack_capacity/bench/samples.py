"""What was measured of each call, kept in a few bytes."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Choice = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call. Seconds of one monotonic clock.

    Attributes:
        due: when it should have begun; of a closed loop, when it began.
        sent: when it began.
        ended: when it was answered, or given up.
        failure: why it has no right answer; None where it has one.
    """

    due: float
    sent: float
    ended: float
    failure: str | None


@dataclass(kw_only=True)
class Samples:
    """Calls in the order in which they ended."""

    due: array[float] = field(default_factory=lambda: array("d"))
    sent: array[float] = field(default_factory=lambda: array("d"))
    ended: array[float] = field(default_factory=lambda: array("d"))
    failed: array[int] = field(default_factory=lambda: array("b"))
    failures: Counter[str] = field(default_factory=Counter)

    def add(self, call: Call) -> None:
        """Keep a call."""
        self.due.append(call.due)
        self.sent.append(call.sent)
        self.ended.append(call.ended)
        self.failed.append(call.failure is not None)
        if call.failure is not None:
            self.failures[call.failure] += 1

    def __len__(self) -> int:
        """How many calls have ended."""
        return len(self.ended)

    def part(self, first: int = 0) -> Part:
        """The calls that ended as the ``first``-th and later."""
        chosen = slice(first, None)
        return Part(
            due=_numbers(self.due[chosen]),
            sent=_numbers(self.sent[chosen]),
            ended=_numbers(self.ended[chosen]),
            failed=np.array(self.failed[chosen], dtype=bool),
        )


@dataclass(frozen=True, kw_only=True)
class Part:
    """Some calls as arrays of seconds."""

    due: Numbers
    sent: Numbers
    ended: Numbers
    failed: Choice

    def where(self, chosen: Choice) -> Part:
        """Those for which ``chosen`` is true."""
        return Part(due=self.due[chosen], sent=self.sent[chosen], ended=self.ended[chosen], failed=self.failed[chosen])

    @property
    def latencies_ms(self) -> Numbers:
        """Of the right answers, from when the call was due: a call that had to wait for its turn was that late."""
        return (self.ended - self.due)[~self.failed] * 1000

    @property
    def lateness_ms(self) -> Numbers:
        """How much later than due each call began."""
        return (self.sent - self.due) * 1000


def _numbers(values: Any) -> Numbers:
    return np.array(values, dtype=np.float64)
