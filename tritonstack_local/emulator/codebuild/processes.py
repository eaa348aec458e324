"""The processes of a build, ended to the last one: those that left their group or their parent, too."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

_SECONDS = 5.0


def end_processes(leaders: Iterable[int], *, mark: str) -> None:
    """SIGKILL to whatever a build started, as if its container were removed.

    Args:
        leaders: process ids of groups, not reaped yet.
        mark: an entry of the environment that every process of the build, and no other, was started with.
    """
    _kill(_left(mark))  # before the leaders: whose parent is gone is nobody's descendant any more
    for leader in leaders:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)
    until = time.monotonic() + _SECONDS
    while (left := _left(mark)) and time.monotonic() < until:
        _kill(left)
        time.sleep(0.01)


def _kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _left(mark: str) -> set[int]:
    """Living processes that bear the mark, and their descendants."""
    found: set[int] = set()
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        pid = int(folder.name)
        with contextlib.suppress(OSError):
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            if state == "Z":
                continue
            parents[pid] = int(parent)
            if mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.add(pid)
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {os.getpid()}
