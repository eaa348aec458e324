"""Processes of Python models in a running container: whether they ended or wait, and in which calls they are."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

_NAME = "triton_python_backend_stub"[:15]
"""Of the process, as far as Linux keeps it (proc(5), comm)."""
_DUMP_SECONDS = 1.0
"""So long a process may take to write its calls."""


def ended_processes(server: int) -> frozenset[int]:
    """Process ids of Python models that ended, and that the server, a process id, has not looked after since."""
    return frozenset(each.pid for each in _programs(server) if each.status() == psutil.STATUS_ZOMBIE)


def computed_seconds(server: int) -> float:
    """Processor time that a server and all that it started took, in seconds."""
    total = 0.0
    for each in _tree(server):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = each.cpu_times()
            total += times.user + times.system
    return total


def write_calls(server: int) -> bool:
    """Have every process of a Python model write its calls into the log (:func:`prepare_backends`).

    Returns whether there was one that does.
    """
    found = False
    for each in _programs(server):
        if _catches(each.pid, signal.SIGUSR1):
            with contextlib.suppress(psutil.NoSuchProcess):
                each.send_signal(signal.SIGUSR1)
                found = True
    if found:
        time.sleep(_DUMP_SECONDS)
    return found


def killed_for_memory() -> int:
    """Number of processes that Linux has killed on this machine for lack of memory; 0 where it does not count them."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/vmstat").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


def _tree(server: int) -> list[psutil.Process]:
    try:
        process = psutil.Process(server)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _programs(server: int) -> Iterator[psutil.Process]:
    for each in _tree(server):
        with contextlib.suppress(psutil.NoSuchProcess):
            if each.name().startswith(_NAME):
                yield each


def _catches(pid: int, number: int) -> bool:
    """Whether a process has a handler for a signal (proc(5), SigCgt): one without would end."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False
