"""The machine that a load is made on, and the versions of what makes it."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

import psutil

from tritonstack import VERSION
from tritonstack.paths import CHECKOUT


def machine() -> dict[str, str]:
    """Processor, cores, memory, system, and the load that it had before."""
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "load_before": f"{os.getloadavg()[0]:.1f}",
    }


def versions() -> dict[str, str]:
    """Of the code and of what sends the calls."""
    found = {name: importlib.metadata.version(name) for name in ("aiohttp", "botocore", "numpy", "uvloop")}
    return {"tritonstack": VERSION, "commit": _commit(), "python": platform.python_version(), **found}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _commit() -> str:
    if CHECKOUT is None:
        return "installed wheel"
    command = ["git", "-C", str(CHECKOUT), "describe", "--always", "--dirty"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"
