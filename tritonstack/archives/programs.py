"""Run a script in one of the environments under ``.envs/``: exports and proofs."""

from __future__ import annotations

import os
import subprocess
from collections import deque
from collections.abc import Callable
from pathlib import Path

from tritonstack.errors import InputError, Problem, WorkFailedError

Report = Callable[[str], None]
"""Called with what is being done at the moment; a command shows it beside the elapsed time."""

REPOSITORY = Path(__file__).resolve().parents[2]
_KEPT_LINES = 20


def environment_python(name: str) -> Path:
    """The interpreter of an environment. Raises :class:`InputError` where it is not made yet."""
    python = REPOSITORY / ".envs" / name / "bin" / "python"
    if not python.exists():
        problem = Problem(file=str(python), found="nothing", allowed="the environment's Python", advice="make setup")
        raise InputError([problem])
    return python


def run_script(*, environment: str, arguments: list[str], folder: Path, what: str, report: Report) -> None:
    """Run ``python ARGUMENTS`` in ``folder`` and report each line it prints.

    Raises :class:`WorkFailedError` with its last lines where it fails.
    """
    variables = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "AWS_"))}
    variables |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1", "PYTHONUNBUFFERED": "1"}
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
        raise WorkFailedError(f"{what} failed with exit code {process.returncode}:\n{lines}")
