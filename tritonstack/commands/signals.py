"""SIGTERM handled like Ctrl-C, for commands that have work elsewhere to end."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Raise KeyboardInterrupt in the main thread at the first of the signals; further ones do not disturb its end."""

    def end(_number: int, _frame: Any) -> None:
        for number in _ENDING:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
