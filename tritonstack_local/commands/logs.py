"""``tritonstack local logs``."""

from __future__ import annotations

import sys
import time
from collections import deque
from pathlib import Path

import click

from tritonstack.errors import InputError, Problem
from tritonstack.paths import LocalPaths

PAUSE_SECONDS = 0.2


@click.command("logs")
@click.argument("name", required=False)
@click.option(
    "-n", "--lines", default=50, show_default=True, type=click.IntRange(1), help="How many lines from the end."
)
@click.option("-f", "--follow", is_flag=True, help="Go on printing what is added, until interrupted.")
def command(*, name: str | None, lines: int, follow: bool) -> None:
    """Print a log: `emulator`, `runtime`, `cdk`, or an endpoint's name for its Triton. Without a name, list them."""
    logs = find_logs()
    if name is None:
        if not logs:
            click.echo("no log exists yet: tritonstack local up starts what writes them", err=True)
        for known, path in logs.items():
            click.echo(f"{known:24} {path}")
        return
    known_as = _known_as(name, logs)
    if known_as is None:
        raise InputError(
            [
                Problem(
                    field="NAME",
                    found=name,
                    allowed=", ".join(logs) or "no log exists yet",
                    advice="tritonstack local up",
                )
            ]
        )
    print_log(logs[known_as], lines=lines, follow=follow)


def find_logs() -> dict[str, Path]:
    """Every log there is: our own by their names, each endpoint's latest Triton's by the endpoint's name.

    Read off the folders, so that logs are found too when the runtime no longer answers.
    """
    paths = LocalPaths.from_environment()
    logs = {path.stem: path for path in sorted(paths.logs.glob("*.log"))}
    fleets = paths.runtime.glob("fleets/*/*/triton.log")
    return logs | {path.parts[-3]: path for path in sorted(fleets, key=lambda path: (path.parts[-3], _number(path)))}


def _known_as(name: str, logs: dict[str, Path]) -> str | None:
    """The log that ``name`` means: itself, or the one endpoint that an environment's file calls so (``digits``)."""
    if name in logs or f"local-{name}" in logs:
        return name if name in logs else f"local-{name}"
    endpoints = [known for known, path in logs.items() if path.name == "triton.log" and known.endswith(f"-{name}")]
    return endpoints[0] if len(endpoints) == 1 else None


def _number(log: Path) -> int:
    """A fleet's number: the runtime numbers the folders of its fleets in the order in which it starts them."""
    number = log.parent.name.rpartition(".")[2]
    return int(number) if number.isdecimal() else 0


def print_log(path: Path, *, lines: int, follow: bool) -> None:
    """Print the last ``lines`` lines of ``path`` and, with ``follow``, what comes after them until interrupted.

    Raises:
        InputError: the log went away with its fleet.
    """
    try:
        file = path.open(errors="replace")
    except FileNotFoundError as error:
        raise InputError([Problem(file=str(path), found="no longer there", allowed="a log of what runs")]) from error
    with file:
        for line in deque(file, maxlen=lines):
            sys.stdout.write(line)
        while follow:
            added = file.read()
            sys.stdout.write(added)
            sys.stdout.flush()
            if not added:
                time.sleep(PAUSE_SECONDS)
