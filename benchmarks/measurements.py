"""The published claims, tried on the local Triton: ``python -m benchmarks.measurements [SCENARIO …] [--write]``.

Each scenario serves a model in several ways, in a container of its own each, straight at SageMaker's front end. The
ways take turns. What is measured is kept in ``.local/bench/measurements``, so that an interrupted run goes on with the
next scenario. ``--write`` puts tables and picture into ``docs/``, when all scenarios are there. ``--gpu`` tries BERT
large on this machine's NVIDIA GPU instead.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil
from rich.console import Console
from rich.progress import Progress

from benchmarks.results import RESULTS
from benchmarks.scenarios.gpu import bert_large_scenario, cuda_here
from benchmarks.scenarios.measuring import Step, measure
from benchmarks.scenarios.outcome import Outcome, code_now, keep, kept
from benchmarks.scenarios.picture import picture
from benchmarks.scenarios.report import Section, claims_table, page, section_lines
from benchmarks.scenarios.table import SCENARIOS, Scenario
from tritonstack.errors import TritonstackError, WorkFailedError
from tritonstack.paths import REPOSITORY, write_text
from tritonstack_capacity.bench.bench import machine
from tritonstack_local.container.repository import TritonFiles

DOCS = REPOSITORY / "docs"
ENVIRONMENTS = REPOSITORY / ".envs"
KEPT = RESULTS / "measurements"
LOOK_SECONDS = 1.0
"""How long is looked whether something else runs."""


@dataclass(frozen=True, kw_only=True)
class Series:
    """Scenarios that are measured on one machine and shown together."""

    scenarios: Mapping[str, Scenario]  # by name
    machine: str  # in words
    mark: str  # of their place in the page
    picture: str  # their picture, from the page


def main(arguments: Sequence[str] = ()) -> int:
    """Measure the named scenarios, or all that are not kept. Returns 0: nothing here has a bound.

    Raises InputError: no GPU where one is asked for; WorkFailedError: no local Triton, a scenario that failed, or not
    all of them there to be written.
    """
    chosen = _arguments(arguments)
    TritonFiles.of_repository(ENVIRONMENTS).check()
    console = Console(highlight=False)
    series, code = series_on_gpu() if chosen.gpu else series_on_cpu(), code_now()
    known = {} if chosen.again else _kept(series, code)
    names = chosen.scenarios or list(series.scenarios)
    waiting = {name: series.scenarios[name] for name in names if name not in known}
    console.print(_plan(names, waiting), soft_wrap=True)
    failures = []
    for number, (name, scenario) in enumerate(waiting.items()):
        left = sum(each.seconds for each in list(waiting.values())[number:])
        console.print(f"\n{name}, {number + 1} of {len(waiting)}; about {_minutes(left)} remain", soft_wrap=True)
        try:
            outcome = _measure(scenario, machine=series.machine, code=code, console=console)
        except (TritonstackError, subprocess.CalledProcessError, OSError) as error:
            failures.append(f"{name}: {error}")
            continue
        keep(KEPT, name, outcome)
        section = Section(scenario=scenario, outcome=outcome)
        console.print("\n".join([*section_lines(section), "", *claims_table([section])]), soft_wrap=True, markup=False)
    if failures:
        raise WorkFailedError("\n".join(failures))
    if chosen.write:
        write(series, _kept(series, code), docs=DOCS)
        console.print(f"\nwritten: {DOCS / 'measurements.md'}, {DOCS / series.picture}", soft_wrap=True)
    return 0


def write(series: Series, outcomes: Mapping[str, Outcome], *, docs: Path) -> None:
    """Put tables and picture of all scenarios into ``docs``, between the series' two marks.

    Raises WorkFailedError: a scenario is missing, or the page has no place for them.
    """
    missing = [name for name in series.scenarios if name not in outcomes]
    if missing:
        raise WorkFailedError(f"not written: of this commit on this machine nothing is kept of {', '.join(missing)}")
    file = docs / "measurements.md"
    begin, end = f"<!-- {series.mark} -->", f"<!-- /{series.mark} -->"
    before, begun, rest = file.read_text().partition(begin)
    _, ended, after = rest.partition(end)
    if not begun or not ended:
        raise WorkFailedError(f"not written: {file} has no place between {begin} and {end}")
    sections = [Section(scenario=scenario, outcome=outcomes[name]) for name, scenario in series.scenarios.items()]
    write_text(docs / series.picture, picture([one for section in sections for one in section.tried]))
    write_text(file, f"{before}{begin}\n{page(sections, picture=series.picture)}\n{end}{after}")


def series_on_cpu() -> Series:
    """The scenarios that any machine can try."""
    return Series(
        scenarios=SCENARIOS, machine=machine_here("no GPU"), mark="measured", picture="pictures/measurements.svg"
    )


def series_on_gpu() -> Series:
    """BERT large, where there is an NVIDIA GPU. Raises InputError: there is none, or no PyTorch for it."""
    gpu, files = cuda_here(ENVIRONMENTS)
    return Series(
        scenarios={"bert-large": bert_large_scenario(files)},
        machine=machine_here(gpu),
        mark="measured on a GPU",
        picture="pictures/measurements-gpu.svg",
    )


def machine_here(gpu: str) -> str:
    """This machine in words."""
    told = machine()
    return f"{told['processor']}, {told['cores']} cores, {told['memory']}, {told['system']}, {gpu}"


def _arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.measurements", description="The published claims, tried."
    )
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"of {', '.join(SCENARIOS)}; all without one")
    parser.add_argument("--write", action="store_true", help="write docs/measurements.md and its picture at the end")
    parser.add_argument("--gpu", action="store_true", help="BERT large on this machine's NVIDIA GPU, instead")
    parser.add_argument("--again", action="store_true", help="measure what is kept of this commit, too")
    chosen = parser.parse_args(list(arguments))
    unknown = [name for name in chosen.scenarios if name not in SCENARIOS]
    if chosen.gpu and chosen.scenarios:
        parser.error("--gpu has one scenario; name none beside it")
    if unknown:
        parser.error(f"no scenario is called {', '.join(unknown)}; there are {', '.join(SCENARIOS)}")
    return chosen


def _kept(series: Series, code: str) -> dict[str, Outcome]:
    found = {}
    for name, scenario in series.scenarios.items():
        outcome = kept(KEPT, name, code=code, machine=series.machine, ways=[way.name for way in scenario.ways])
        if outcome is not None:
            found[name] = outcome
    return found


def _plan(names: Sequence[str], waiting: Mapping[str, Scenario]) -> str:
    count = "1 scenario" if len(waiting) == 1 else f"{len(waiting)} scenarios"
    told = f"{count}, about {_minutes(sum(one.seconds for one in waiting.values()))}"
    if len(waiting) < len(names):
        told += f"; of this commit {len(names) - len(waiting)} are kept in {KEPT} (--again measures them, too)"
    return f"{told}. Ctrl-C keeps what is measured by then."


def _minutes(seconds: float) -> str:
    return f"{math.ceil(seconds / 60)} min"


def _measure(scenario: Scenario, *, machine: str, code: str, console: Console) -> Outcome:
    began, measured = time.monotonic(), datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
    others = _busy_cores()
    with Progress(console=console, transient=True) as bar, tempfile.TemporaryDirectory(prefix="models-") as folder:
        task = bar.add_task(scenario.title, total=scenario.repeats.steps(len(scenario.ways)))
        step: Step = lambda: bar.advance(task)  # noqa: E731  it is handed on
        found = measure(scenario.ways, repeats=scenario.repeats, folder=Path(folder), step=step)
    return Outcome(
        code=code,
        machine=machine,
        measured=measured,
        others=max(others, _busy_cores()),
        seconds=time.monotonic() - began,
        found=tuple(found),
    )


def _busy_cores() -> float:
    """How many cores something else keeps busy, while nothing of ours runs."""
    return psutil.cpu_percent(interval=LOOK_SECONDS) / 100 * (psutil.cpu_count() or 1)


def command(arguments: Sequence[str]) -> int:
    """What a person calls. Returns the exit code."""
    try:
        return main(arguments)
    except TritonstackError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print(
            "\ninterrupted; docs/ is as it was. What is measured is kept: the same command without --again goes on",
            file=sys.stderr,
        )
        return 130


if __name__ == "__main__":
    sys.exit(command(sys.argv[1:]))
