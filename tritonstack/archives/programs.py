"""Run a script in one of the environments under ``.envs/``: exports and proofs."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path

from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.repository import LIBRARY, machine_folder

Report = Callable[[str], None]
"""Called with what is being done at the moment; a command shows it beside the elapsed time."""

REPOSITORY = machine_folder()
_KEPT_LINES = 20
_PR_SET_PDEATHSIG = 1  # <sys/prctl.h>
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def environment_python(name: str) -> Path:
    """The interpreter of an environment. Raises :class:`InputError` where it is not made yet."""
    python = REPOSITORY / ".envs" / name / "bin" / "python"
    if not python.exists():
        make = f"python3 scripts/setup.py {name}"
        raise InputError([Problem(file=str(python), found="nothing", allowed="the environment's Python", advice=make)])
    return python


def run_script(
    *,
    environment: str,
    arguments: list[str],
    folder: Path,
    what: str,
    report: Report,
    with_library: bool = False,
    library_root: Path = LIBRARY,
) -> None:
    """Run ``python ARGUMENTS`` in ``folder`` and report each line it prints. On Linux it dies with this process.

    ``with_library``: it may import ``tritonstack.exporters``, of the package below ``library_root``.

    Raises :class:`WorkFailedError` with its last lines where it fails.
    """
    variables = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "AWS_"))}
    variables |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1", "PYTHONUNBUFFERED": "1"}
    variables |= {"PYTHONPATH": str(library_root)} if with_library else {}
    last: deque[str] = deque(maxlen=_KEPT_LINES)
    command = [str(environment_python(environment)), *arguments]
    with subprocess.Popen(
        command,
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        preexec_fn=_die_with_parent,  # noqa: PLW1509  only a system call: it takes no lock that a thread may hold
    ) as process:
        try:
            for line in process.stdout or ():
                last.append(line.rstrip())
                report(f"{what}: {last[-1]}")
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        lines = "\n".join(f"  {line}" for line in last)
        failure = WorkFailedError(f"{what} failed with exit code {process.returncode}:\n{lines}")
        no_space = os.strerror(errno.ENOSPC)
        raise failure from (OSError(errno.ENOSPC, no_space, str(folder)) if no_space in lines else None)


def _die_with_parent() -> None:
    """In the new process: be killed when the process that waits for it is, even by a signal that it cannot catch."""
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
