"""``make demo`` in a fresh clone: from nothing, and again.

"Nothing" means no environments, no state and nothing deployed; the package managers' own download caches stay as the
machine has them, and what they hold is stated.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.results import Figure, machine, tell
from tritonstack.local.paths import HOME_VARIABLE, REPOSITORY

FIRST_SECONDS = 240.0
AGAIN_SECONDS = 20.0


def main() -> int:
    """Measure. Returns 0 where both bounds are kept, 1 where one is missed; raises where the demo fails."""
    stated = machine()
    with tempfile.TemporaryDirectory(prefix="demo-") as name:
        clone = Path(name) / "tritonstack"
        subprocess.run(["git", "clone", "--quiet", str(REPOSITORY), str(clone)], check=True)
        environment = clone_environment()
        try:
            first = timed_demo(clone, environment)
            again = timed_demo(clone, environment)
        finally:
            if (clone / ".envs" / "main").is_dir():
                subprocess.run(["make", "down"], cwd=clone, env=environment, check=True)
    figures = [
        Figure(what="make demo from nothing", value=first, unit="s", bound=FIRST_SECONDS),
        Figure(what="make demo again", value=again, unit="s", bound=AGAIN_SECONDS),
    ]
    return tell("demo", figures, machine=stated, versions={"download caches": download_caches()})


def clone_environment() -> dict[str, str]:
    """This process's variables without those that would lead the clone to this repository's state; free ports."""
    environment = {name: value for name, value in os.environ.items() if name not in (HOME_VARIABLE, "PYTHONPATH")}
    port, runtime_port = free_ports()
    return {**environment, "TRITONSTACK_PORT": str(port), "TRITONSTACK_RUNTIME_PORT": str(runtime_port)}


def timed_demo(clone: Path, environment: dict[str, str]) -> float:
    """Seconds of one ``make demo``, whose output is shown.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    started = time.perf_counter()
    subprocess.run(["make", "demo"], cwd=clone, env=environment, check=True)
    return time.perf_counter() - started


def download_caches() -> str:
    """Which package managers have downloads on this machine already."""
    home = Path.home()
    known = {"uv": home / ".cache" / "uv", "pip": home / ".cache" / "pip", "npm": home / ".npm" / "_cacache"}
    return ", ".join(f"{name} {'filled' if path.is_dir() else 'empty'}" for name, path in known.items())


def free_ports() -> tuple[int, int]:
    """Two different loopback ports that nobody listens on now."""
    with socket.socket() as one, socket.socket() as other:
        for probe in (one, other):
            probe.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]


if __name__ == "__main__":
    sys.exit(main())
