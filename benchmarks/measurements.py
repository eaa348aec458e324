"""The published claims, tried on the local Triton: ``python -m benchmarks.measurements [SCENARIO …] [--write]``.

Each scenario serves a model in several ways, in a container of its own each, straight at SageMaker's front end. The
ways take turns. ``--write`` puts the tables into ``docs/`` after all scenarios. ``--gpu`` tries BERT large on this
machine's NVIDIA GPU instead.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import psutil
from rich.console import Console

from benchmarks.measuring import machine
from benchmarks.scenarios.gpu import bert_large_scenario, cuda_here
from benchmarks.scenarios.measuring import measure
from benchmarks.scenarios.report import Section, claims_table, page, section_lines
from benchmarks.scenarios.table import SCENARIOS, Scenario
from tritonstack.errors import TritonstackError, WorkFailedError
from tritonstack.paths import REPOSITORY, write_text
from tritonstack_local.container.repository import TritonFiles

PAGE = REPOSITORY / "docs" / "measurements.md"
ENVIRONMENTS = REPOSITORY / ".envs"
LOOK_SECONDS = 1.0
"""How long is looked whether something else runs."""


def main(arguments: Sequence[str] = ()) -> int:
    """Measure the named scenarios, or all. Returns 0: nothing here has a bound.

    Raises InputError: no GPU where one is needed; WorkFailedError: no local Triton, or a scenario that failed, after
    the others.
    """
    chosen = _arguments(arguments)
    TritonFiles.of_repository(ENVIRONMENTS).check()
    gpu, scenarios, mark = "no GPU", SCENARIOS, "measured"
    if chosen.gpu:
        gpu, files = cuda_here(ENVIRONMENTS)
        scenarios, mark = {"bert-large": bert_large_scenario(files)}, "measured on a GPU"
    console = Console(highlight=False)
    began, others = datetime.now(UTC), _busy_cores()
    sections, failures = _measured({name: scenarios[name] for name in chosen.scenarios or scenarios}, console)
    if failures:
        raise WorkFailedError("\n".join(failures))
    if chosen.write:
        text = page(sections, where=_where(gpu, began), others=max(others, _busy_cores()))
        write(text, mark=mark, file=PAGE)
        console.print(f"\nwritten: {PAGE}", soft_wrap=True)
    return 0


def _measured(scenarios: Mapping[str, Scenario], console: Console) -> tuple[list[Section], list[str]]:
    sections, failures = [], []
    for number, (name, scenario) in enumerate(scenarios.items(), 1):
        console.print(f"\n{name}, {number} of {len(scenarios)}")
        try:
            with tempfile.TemporaryDirectory(prefix="models-") as folder:
                found = measure(scenario.ways, repeats=scenario.repeats, folder=Path(folder))
        except (TritonstackError, subprocess.CalledProcessError, OSError) as error:
            failures.append(f"{name}: {error}")
            continue
        section = Section(scenario=scenario, found=found)
        console.print("\n".join([*section_lines(section), "", *claims_table([section])]), soft_wrap=True, markup=False)
        sections.append(section)
    return sections, failures


def write(text: str, *, mark: str, file: Path) -> None:
    """Put tables between two marks of a page. Raises WorkFailedError: the page has no place for them."""
    begin, end = f"<!-- {mark} -->", f"<!-- /{mark} -->"
    before, begun, rest = file.read_text().partition(begin)
    _, ended, after = rest.partition(end)
    if not begun or not ended:
        raise WorkFailedError(f"not written: {file} has no place between {begin} and {end}")
    write_text(file, f"{before}{begin}\n{text}\n{end}{after}")


def _where(gpu: str, began: datetime) -> str:
    """Machine, time and commit in a line."""
    here, ended = machine(), datetime.now(UTC)
    times = f"{began:%Y-%m-%d %H:%M} to {ended:%Y-%m-%d %H:%M} UTC"
    where = f"{here['processor']}, {here['cores']} cores, {here['memory']}, {here['system']}, {gpu}"
    return f"{where}; {times}, commit {here['commit']}."


def _arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.measurements", description="The published claims, tried."
    )
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"of {', '.join(SCENARIOS)}; all without one")
    parser.add_argument("--write", action="store_true", help="write all scenarios to docs/measurements.md at the end")
    parser.add_argument("--gpu", action="store_true", help="BERT large on this machine's NVIDIA GPU, instead")
    chosen = parser.parse_args(list(arguments))
    unknown = [name for name in chosen.scenarios if name not in SCENARIOS]
    if chosen.scenarios and (chosen.gpu or chosen.write):
        parser.error("--gpu and --write are about all scenarios: name none")
    if unknown:
        parser.error(f"no scenario is called {', '.join(unknown)}; there are {', '.join(SCENARIOS)}")
    return chosen


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
        print("\ninterrupted; docs/ is as it was", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(command(sys.argv[1:]))
