"""What came of a scenario, kept on disk so that an interrupted run goes on where it was."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import RootModel, ValidationError

from benchmarks.scenarios.measuring import Measured
from tritonstack.paths import REPOSITORY, write_text

MEASURED_CODE = ("benchmarks", "tritonstack", "model_repos", "requirements")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of a scenario, and of what."""

    code: str  # what was measured; see ``code_now``
    machine: str  # processor, cores, memory and system
    measured: str  # when it began, UTC, to the minute
    seconds: float  # how long it took
    others: float  # how many cores something else kept busy before or after it, whichever was more
    found: tuple[Measured, ...]  # of each way


def code_now() -> str:
    """The commit; where what is measured differs from it, with a digest of the difference."""
    commit = _git("rev-parse", "--short", "HEAD") or "no commit"
    changes = _git("diff", "HEAD", "--", *MEASURED_CODE)
    return f"{commit}-{hashlib.sha256(changes.encode()).hexdigest()[:8]}" if changes else commit


def keep(folder: Path, name: str, outcome: Outcome) -> None:
    """Write it below ``folder``."""
    write_text(folder / f"{name}.json", RootModel[Outcome](outcome).model_dump_json(indent=2) + "\n")


def kept(folder: Path, name: str, *, code: str, machine: str, ways: Sequence[str]) -> Outcome | None:
    """What is kept of a scenario, if it is of this code, this machine and these ways; else None."""
    try:
        outcome = RootModel[Outcome].model_validate_json((folder / f"{name}.json").read_bytes()).root
    except (OSError, ValidationError):
        return None
    same = (outcome.code, outcome.machine, [one.way for one in outcome.found]) == (code, machine, list(ways))
    return outcome if same else None


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(REPOSITORY), *arguments], capture_output=True, text=True, check=False)
    return done.stdout.strip()
