"""The published claims, tried on the local Triton: ``python -m benchmarks.measurements [SCENARIO …] [--write]``.

Each scenario serves a model in several ways, in a container of its own each, straight at SageMaker's front end. The
ways take turns. What is measured is kept in ``.local/bench/measurements``, so that an interrupted run goes on with the
next scenario. ``--write`` puts tables and picture into ``docs/``, when all scenarios are there.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import psutil
from rich.console import Console
from rich.progress import Progress

from benchmarks.results import RESULTS
from benchmarks.scenarios.measuring import Step, measure
from benchmarks.scenarios.outcome import Outcome, code_now, keep, kept
from benchmarks.scenarios.picture import picture
from benchmarks.scenarios.report import PICTURE, Section, claims_table, page, section_lines
from benchmarks.scenarios.table import SCENARIOS, Scenario
from tritonstack.bench.machine import machine
from tritonstack.errors import TritonstackError, WorkFailedError
from tritonstack.local.container.repository import TritonFiles
from tritonstack.local.paths import REPOSITORY

DOCS = REPOSITORY / "docs"
ENVIRONMENTS = REPOSITORY / ".envs"
KEPT = RESULTS / "measurements"
BEGIN, END = "<!-- measured -->", "<!-- /measured -->"
LOOK_SECONDS = 1.0
"""How long is looked whether something else runs."""


def main(arguments: Sequence[str] = ()) -> int:
    """Measure the named scenarios, or all that are not kept. Returns 0: nothing here has a bound.

    Raises:
        WorkFailedError: no local Triton, a scenario that failed, or not all of them there to be written.
    """
    chosen = _arguments(arguments)
    TritonFiles.of_repository(ENVIRONMENTS).check()
    console = Console(highlight=False)
    here, code = machine_here(), code_now()
    known = {} if chosen.again else _kept(here=here, code=code)
    names = chosen.scenarios or list(SCENARIOS)
    waiting = [name for name in names if name not in known]
    console.print(_plan(names, waiting), soft_wrap=True)
    failures = []
    for number, name in enumerate(waiting):
        left = sum(SCENARIOS[each].seconds for each in waiting[number:])
        console.print(f"\n{name}, {number + 1} of {len(waiting)}; about {_minutes(left)} remain", soft_wrap=True)
        try:
            outcome = _measure(SCENARIOS[name], here=here, code=code, console=console)
        except (TritonstackError, subprocess.CalledProcessError, OSError) as error:
            failures.append(f"{name}: {error}")
            continue
        keep(KEPT, name, outcome)
        section = Section(scenario=SCENARIOS[name], outcome=outcome)
        console.print("\n".join([*section_lines(section), "", *claims_table([section])]), soft_wrap=True, markup=False)
    if failures:
        raise WorkFailedError("\n".join(failures))
    if chosen.write:
        write(_kept(here=here, code=code), docs=DOCS)
        console.print(f"\nwritten: {DOCS / 'measurements.md'}, {DOCS / PICTURE}", soft_wrap=True)
    return 0


def write(outcomes: dict[str, Outcome], *, docs: Path) -> None:
    """Put tables and picture of all scenarios into ``docs``.

    Raises:
        WorkFailedError: a scenario is missing, or the page has no place for them.
    """
    missing = [name for name in SCENARIOS if name not in outcomes]
    if missing:
        raise WorkFailedError(f"not written: of this commit on this machine nothing is kept of {', '.join(missing)}")
    file = docs / "measurements.md"
    before, begin, rest = file.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise WorkFailedError(f"not written: {file} has no place between {BEGIN} and {END}")
    sections = [Section(scenario=scenario, outcome=outcomes[name]) for name, scenario in SCENARIOS.items()]
    _replace(docs / PICTURE, picture([one for section in sections for one in section.tried]))
    _replace(file, f"{before}{BEGIN}\n{page(sections)}\n{END}{after}")


def machine_here() -> str:
    """This machine in words."""
    told = machine()
    return f"{told['processor']}, {told['cores']} cores, {told['memory']}, {told['system']}"


def _arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.measurements", description="The published claims, tried."
    )
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"of {', '.join(SCENARIOS)}; all without one")
    parser.add_argument("--write", action="store_true", help="write docs/measurements.md and its picture at the end")
    parser.add_argument("--again", action="store_true", help="measure what is kept of this commit, too")
    chosen = parser.parse_args(list(arguments))
    unknown = [name for name in chosen.scenarios if name not in SCENARIOS]
    if unknown:
        parser.error(f"no scenario is called {', '.join(unknown)}; there are {', '.join(SCENARIOS)}")
    return chosen


def _kept(*, here: str, code: str) -> dict[str, Outcome]:
    found = {}
    for name, scenario in SCENARIOS.items():
        outcome = kept(KEPT, name, code=code, machine=here, ways=[way.name for way in scenario.ways])
        if outcome is not None:
            found[name] = outcome
    return found


def _plan(names: Sequence[str], waiting: Sequence[str]) -> str:
    count = "1 scenario" if len(waiting) == 1 else f"{len(waiting)} scenarios"
    told = f"{count}, about {_minutes(sum(SCENARIOS[name].seconds for name in waiting))}"
    if len(waiting) < len(names):
        told += f"; of this commit {len(names) - len(waiting)} are kept in {KEPT} (--again measures them, too)"
    return f"{told}. Ctrl-C keeps what is measured by then."


def _minutes(seconds: float) -> str:
    return f"{math.ceil(seconds / 60)} min"


def _measure(scenario: Scenario, *, here: str, code: str, console: Console) -> Outcome:
    began, measured = time.monotonic(), datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
    others = _busy_cores()
    steps = len(scenario.ways) * (scenario.repeats.cold_starts + scenario.repeats.turns)
    with Progress(console=console, transient=True) as bar, tempfile.TemporaryDirectory(prefix="models-") as folder:
        task = bar.add_task(scenario.title, total=steps)
        step: Step = lambda: bar.advance(task)  # noqa: E731  it is handed on
        found = measure(scenario.ways, repeats=scenario.repeats, folder=Path(folder), step=step)
    return Outcome(
        code=code,
        machine=here,
        measured=measured,
        others=max(others, _busy_cores()),
        seconds=time.monotonic() - began,
        found=tuple(found),
    )


def _busy_cores() -> float:
    """How many cores something else keeps busy, while nothing of ours runs."""
    return psutil.cpu_percent(interval=LOOK_SECONDS) / 100 * (psutil.cpu_count() or 1)


def _replace(file: Path, text: str) -> None:
    temporary = file.with_name(f"{file.name}.new")
    temporary.write_text(text)
    temporary.replace(file)


def command(arguments: Sequence[str]) -> int:
    """What a person calls. Returns the exit code."""
    try:
        return main(arguments)
    except TritonstackError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(
            "\ninterrupted; docs/ is as it was. What is measured is kept: the same command without --again goes on",
            file=sys.stderr,
        )
        return 130


if __name__ == "__main__":
    sys.exit(command(sys.argv[1:]))
