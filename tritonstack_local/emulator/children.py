"""The processes that the emulator started (MiniStack's Lambda workers, builds, jobs), ended when it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

_GRACE_SECONDS = 2.0
_ENDERS: list[Callable[[], None]] = []


def before_the_end(end: Callable[[], None]) -> None:
    """Have ``end`` called first, for those who know more of their processes than who descends from whom."""
    _ENDERS.append(end)


def end_descendants() -> None:
    """Whatever was registered, then SIGTERM to every descendant of this process, and SIGKILL to those that stay."""
    for end in _ENDERS:
        end()
    for number, seconds in ((signal.SIGTERM, _GRACE_SECONDS), (signal.SIGKILL, _GRACE_SECONDS)):
        pids = _descendants(os.getpid())
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        until = time.monotonic() + seconds
        while pids and time.monotonic() < until:
            _reap(pids)
            pids = [pid for pid in pids if _alive(pid)]
            time.sleep(0.01)
        if not pids:
            return


def _descendants(pid: int) -> list[int]:
    """Children, their children, and so on, from /proc."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for child in task.read_text().split():
                found += [int(child), *_descendants(int(child))]
    return found


def _reap(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
