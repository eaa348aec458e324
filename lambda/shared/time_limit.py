"""A time after which a block of work is given up."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class OutOfTimeError(BaseException):
    """The time is over. No ``Exception``: clients take such for a lost connection, and try again."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise OutOfTimeError in the block when so many seconds are over, even out of a call that waits.

    In the main thread, where Lambda calls a function. An alarm that was set before is set again afterwards.
    """

    def over(*_: Any) -> None:
        raise OutOfTimeError(f"it was not done within the {seconds:.0f} seconds that this run had")

    handled_by = signal.signal(signal.SIGALRM, over)
    before = signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *before)
        signal.signal(signal.SIGALRM, handled_by)
