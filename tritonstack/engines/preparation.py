"""What became of the archives of some orders: outcomes, failures in the form that a deployment finds, and a summary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from tritonstack.engines.engine_failure import EngineFailedError
from tritonstack.engines.stored import Place
from tritonstack.errors import InputError, TritonstackError
from tritonstack.naming import ArchiveName

Outcome = Literal["there already", "copied", "built", "another was first"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
Phase = Literal["order", "copy", "export", "engine", "proof", "commit"]

LONGEST_REASON = 500
"""Characters of a reason in its one line: CloudFormation shows about a thousand of several."""


@dataclass(frozen=True, kw_only=True)
class EngineTime:
    """One engine that was built for an archive.

    Attributes:
        model: the archive's model that it is of.
        machine: where it was built.
        seconds: trtexec's, those of the proof included.
        run: what tells its build from others; archives of equal content share one.
    """

    model: str
    machine: str
    seconds: float
    run: str


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """One archive at one place.

    Attributes:
        name: the archive.
        place: where it lies now.
        outcome: how it came there.
        seconds: how long that took, 0 where nothing was done.
        source: where it was copied from, or None.
        engines: the engines that were built for it.
    """

    name: ArchiveName
    place: Place
    outcome: Outcome
    seconds: float = 0.0
    source: Place | None = None
    engines: tuple[EngineTime, ...] = ()


def one_line(error: TritonstackError) -> str:
    """An error's reason as one line, cut where it is long; of several problems the first, and how many more."""
    text = error.reason if isinstance(error, EngineFailedError) else str(error)
    if isinstance(error, InputError):
        first, more = error.problems[0], len(error.problems) - 1
        text = f"{first.field}: " if first.field else ""
        text += f"{first.found}; allowed: {first.allowed}" + (f"; do: {first.advice}" if first.advice else "")
        text = (f"{more + 1} problems, the first: " if more else "") + text
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_REASON else f"{line[: LONGEST_REASON - 1]}…"


@dataclass(frozen=True, kw_only=True)
class Failure:
    """One archive that does not lie where it should: the phase that failed and why."""

    phase: Phase
    name: ArchiveName
    error: TritonstackError

    @property
    def reason(self) -> str:
        """Why, in one line."""
        short = one_line(self.error)
        link = self.error.link if isinstance(self.error, EngineFailedError) else ""
        return f"{short} (log: {link})" if link else short

    def __str__(self) -> str:
        return f"FAILED in phase {self.phase} of {self.name}: {self.reason}"


@dataclass(frozen=True, kw_only=True)
class PrepareSummary:
    """Everything that was looked at."""

    bucket: str
    archives: tuple[Prepared, ...]

    def __str__(self) -> str:
        outcomes = [item.outcome for item in self.archives]
        counted = [f"{outcomes.count(outcome)} {outcome}" for outcome in OUTCOMES if outcome in outcomes]
        return (", ".join(counted) or "nothing to prepare") + _engines(self.archives)


def _engines(archives: Iterable[Prepared]) -> str:
    """`` (engine 412 s on ml.g4dn.xlarge)``; of several their number and the seconds of all, by machine."""
    built = {engine.run: engine for item in archives for engine in item.engines}
    said = []
    for machine in sorted({engine.machine for engine in built.values()}):
        seconds = [engine.seconds for engine in built.values() if engine.machine == machine]
        what = "engine" if len(seconds) == 1 else f"{len(seconds)} engines"
        said.append(f"{what} {sum(seconds):.0f} s on {machine}")
    return f" ({', '.join(said)})" if said else ""


class PrepareFailedError(TritonstackError):
    """Some archives do not lie where they should.

    Exit code 2 where every failure is wrong input, else 1. The message's last lines are one for each failure.

    Attributes:
        failures: what failed.
        left: the archives that were given up since another failed.
        summary: what was done nevertheless; it stays.
    """

    def __init__(self, failures: Sequence[Failure], *, left: Sequence[ArchiveName], summary: PrepareSummary) -> None:
        """Takes at least one failure, or something that was given up."""
        self.failures, self.left, self.summary = tuple(failures), tuple(left), summary
        is_input = bool(failures) and all(isinstance(failure.error, InputError) for failure in failures)
        self.exit_code = 2 if is_input else 1
        details = [f"{failure.name}:\n{failure.error}" for failure in failures if "\n" in str(failure.error)]
        lines = [*details, f"done, and stays: {summary}"] if summary.archives else details
        if left:
            names = ", ".join(sorted(str(name) for name in left))
            lines.append(f"given up, since {'another failed' if failures else 'the work was stopped'}: {names}")
        super().__init__("\n".join([*lines, *map(str, failures)]))
