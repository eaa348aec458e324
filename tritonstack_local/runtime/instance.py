"""How much of this machine a container uses, in the units of SageMaker's instance metrics."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

import psutil


class InstanceUsage:
    """Samples the processes of one container, whichever process it currently is. Call it in a thread."""

    def __init__(self, folder: Path) -> None:
        """``folder`` lies on the file system whose use counts as DiskUtilization."""
        self._folder = folder
        self._pid = 0
        self._cpu: dict[int, float] = {}
        self._at = 0.0

    def sample(self, pid: int) -> Mapping[str, float]:
        """CPUUtilization (0..100 x cores, since the last sample), MemoryUtilization and DiskUtilization (0..100).

        CPUUtilization is missing from a process's first sample; the result is empty where it has ended.
        """
        try:
            root = psutil.Process(pid)
            family = [root, *root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return {}
        now = time.monotonic()
        cpu: dict[int, float] = {}
        resident = 0
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                times = process.cpu_times()
                cpu[process.pid] = times.user + times.system
                resident += process.memory_info().rss
        disk = shutil.disk_usage(self._folder)
        found = {
            "MemoryUtilization": 100.0 * resident / psutil.virtual_memory().total,
            "DiskUtilization": 100.0 * disk.used / disk.total,
        }
        if pid == self._pid and now > self._at:
            spent = sum(max(used - self._cpu.get(number, 0.0), 0.0) for number, used in cpu.items())
            found["CPUUtilization"] = 100.0 * spent / (now - self._at)
        self._pid, self._cpu, self._at = pid, cpu, now
        return found
