"""Run a script in one of the environments under ``.envs/``, exports and proofs, and measure what each takes."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tritonstack.archives.child_environment import child_environment
from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.paths import environment_python, setup_command

Report = Callable[[str], None]
"""Called with what is being done at the moment; a command shows it beside the elapsed time."""

_KEPT_LINES = 20
_KIB, GIB = 1024, 1024**3
_PR_SET_PDEATHSIG = 1  # <sys/prctl.h>
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


@dataclass(frozen=True, kw_only=True)
class Spent:
    """Time and memory of one step of a build; they differ from machine to machine and so are in no manifest."""

    step: str  # ``export of bert-large (torch)``
    seconds: float  # from its start to its end
    peak_bytes: int  # the most memory that it held at once, resident

    def __str__(self) -> str:
        return f"{self.step}: {self.seconds:.0f} s, {self.peak_bytes / GIB:.1f} GiB of memory at most"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a script may take; on reaching a limit it fails."""

    seconds: int  # from its start to its end
    memory_bytes: int  # data that it writes, not files that it maps
    advice: str  # what to do where it reaches one


LOCAL_ENVIRONMENT = "backends"
"""The environment whose Python the local Triton's Python backend embeds."""


def environment_version(name: str) -> str | None:
    """The minor version (``3.11``) of an environment's Python; None where it is not made yet."""
    found = next((environment_python(name).parents[1] / "lib").glob("python3.*"), None)
    return found.name.removeprefix("python") if found and has_environment(name) else None


def has_environment(name: str) -> bool:
    return environment_python(name).exists()


def require_environment(name: str) -> None:
    """Raise :class:`InputError` where an environment is not made yet."""
    if not has_environment(name):
        file, allowed = str(environment_python(name)), "the environment's Python"
        raise InputError([Problem(file=file, found="nothing", allowed=allowed, advice=setup_command(name))])


def run_script(
    *,
    environment: str,
    arguments: list[str],
    folder: Path,
    what: str,
    report: Report,
    python_path: Path | None = None,
    downloads: bool = False,
    limits: Limits | None = None,
) -> Spent:
    """Run ``python ARGUMENTS`` in ``folder`` and report each line it prints. On Linux it dies with this process.

    ``python_path``: a folder whose packages it may import, besides its environment's. ``downloads``: whether it is an
    export, which gets the hub's token; see :mod:`tritonstack.archives.child_environment`. Returns what it took.
    Raises :class:`WorkFailedError` with its last lines where it fails.
    """
    variables = child_environment(home=folder, downloads=downloads)
    variables |= {"PYTHONPATH": str(python_path.resolve())} if python_path else {}
    last: deque[str] = deque(maxlen=_KEPT_LINES)
    require_environment(environment)
    command = [str(environment_python(environment)), *arguments]
    started = time.monotonic()
    with subprocess.Popen(
        command,
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        preexec_fn=partial(_prepare, limits),  # noqa: PLW1509  system calls alone: none takes a lock of a thread
    ) as process:
        try:
            for line in process.stdout or ():
                last.append(line.rstrip())
                report(f"{what}: {last[-1]}")
            # wait4 says what this process held, at least as much as this one did when it was forked; RUSAGE_CHILDREN
            # would give the largest of all that ended so far.
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        except BaseException:
            process.kill()
            raise
    spent = Spent(
        step=f"{what} ({environment})",
        seconds=time.monotonic() - started,
        peak_bytes=usage.ru_maxrss * (1 if sys.platform == "darwin" else _KIB),
    )
    if process.returncode:
        raise _failure(what, process.returncode, last, spent=spent, folder=folder, limits=limits)
    report(str(spent))
    return spent


def _failure(
    what: str, code: int, last: Iterable[str], *, spent: Spent, folder: Path, limits: Limits | None
) -> WorkFailedError:
    lines = "\n".join(f"  {line}" for line in last)
    if limits is not None and code == -signal.SIGALRM:
        return WorkFailedError(f"{what} was stopped: it did not end within {limits.seconds} s.\n{limits.advice}")
    said = f"{what} failed with exit code {code}:\n{lines}"
    if limits is not None:
        said += f"\nIt may have {limits.memory_bytes / GIB:.1f} GiB of memory. {limits.advice}"
    if code == -signal.SIGKILL:
        said += (
            f"\nIt was killed, as Linux does where memory runs out: it held {spent.peak_bytes / GIB:.1f} GiB. "
            "Take a machine with more memory (builds.compute_type), or prove smaller batches (proof.largest_batch in "
            "the recipe)."
        )
    failure = WorkFailedError(said)
    no_space = os.strerror(errno.ENOSPC)
    failure.__cause__ = OSError(errno.ENOSPC, no_space, str(folder)) if no_space in lines else None
    return failure


def _prepare(limits: Limits | None) -> None:
    """In the new process: end with its parent, even where that is killed.

    Limits stay over the start of the program: the alarm ends it, within code of C++ too.
    """
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if limits is not None:
        signal.alarm(limits.seconds)
        resource.setrlimit(resource.RLIMIT_DATA, (limits.memory_bytes, limits.memory_bytes))
