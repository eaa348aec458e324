"""The processes that the emulator started (MiniStack's Lambda workers), ended when it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

_GRACE_SECONDS = 2.0


def end_descendants() -> None:
    """SIGTERM to every descendant of this process, and SIGKILL to those that stay."""
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
