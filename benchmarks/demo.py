"""``make demo`` in a fresh clone: from nothing, and again.

"Nothing" means no environments, no state, nothing deployed, and empty caches of pip, uv, npm and jsii: the time
holds every download.
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
from tritonstack.paths import HOME_VARIABLE, PROJECT_VARIABLE, REPOSITORY

# Variables that would lead the clone to this repository's state or caches (``make`` exports the last).
LEADING_HERE = frozenset({HOME_VARIABLE, PROJECT_VARIABLE, "PYTHONPATH", "JSII_RUNTIME_PACKAGE_CACHE_ROOT"})
FIRST_SECONDS = 240.0
AGAIN_SECONDS = 20.0


def main() -> int:
    """Measure. Returns 0 where both bounds are kept, 1 where one is missed; raises where the demo fails."""
    stated = machine()
    with tempfile.TemporaryDirectory(prefix="demo-") as name:
        clone = Path(name) / "tritonstack"
        subprocess.run(["git", "clone", "--quiet", str(REPOSITORY), str(clone)], check=True)
        environment = clone_environment(caches=Path(name) / "caches")
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
    return tell("demo", figures, machine=stated, versions={"download caches": "empty at first"})


def clone_environment(*, caches: Path) -> dict[str, str]:
    """This process's variables without those that lead to this repository's state; free ports, caches of its own."""
    environment = {name: value for name, value in os.environ.items() if name not in LEADING_HERE}
    port, runtime_port = free_ports()
    return {
        **environment,
        "TRITONSTACK_PORT": str(port),
        "TRITONSTACK_RUNTIME_PORT": str(runtime_port),
        "PIP_CACHE_DIR": str(caches / "pip"),
        "UV_CACHE_DIR": str(caches / "uv"),
        "npm_config_cache": str(caches / "npm"),
    }


def timed_demo(clone: Path, environment: dict[str, str]) -> float:
    """Seconds of one ``make demo``, whose output is shown.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    started = time.perf_counter()
    subprocess.run(["make", "demo"], cwd=clone, env=environment, check=True)
    return time.perf_counter() - started


def free_ports() -> tuple[int, int]:
    """Two different loopback ports that nobody listens on now."""
    with socket.socket() as one, socket.socket() as other:
        for probe in (one, other):
            probe.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]


if __name__ == "__main__":
    sys.exit(main())
