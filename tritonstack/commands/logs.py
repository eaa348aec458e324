"""``tritonstack logs``."""

from __future__ import annotations

import sys
import time
from collections import deque
from pathlib import Path

import click

from tritonstack.errors import InputError, Problem
from tritonstack.local.aws import find_local_aws
from tritonstack.local.paths import LocalPaths


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
        for known, path in logs.items():
            click.echo(f"{known:24} {path}")
        return
    if name not in logs:
        raise InputError(
            [Problem(field="NAME", found=name, allowed=", ".join(logs) or "no log exists yet", advice="tritonstack up")]
        )
    print_log(logs[name], lines=lines, follow=follow)


def find_logs() -> dict[str, Path]:
    """Every log there is: our own by their names, each live endpoint's Triton by the endpoint's name."""
    logs = {path.stem: path for path in sorted(LocalPaths.from_environment().logs.glob("*.log"))}
    aws = find_local_aws()
    if aws is not None:
        for endpoint in aws.runtime_status().get("endpoints", []):
            for fleet in endpoint.get("fleets", []):
                if fleet.get("log"):
                    logs[endpoint["name"]] = Path(fleet["log"])
    return logs


def print_log(path: Path, *, lines: int, follow: bool) -> None:
    """Print the last ``lines`` lines of ``path`` and, with ``follow``, what comes after them."""
    with path.open(errors="replace") as file:
        for line in deque(file, maxlen=lines):
            sys.stdout.write(line)
        while follow:
            added = file.read()
            sys.stdout.write(added)
            sys.stdout.flush()
            if not added:
                time.sleep(0.2)
