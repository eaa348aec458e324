"""``tritonstack local status``."""

from __future__ import annotations

import json
import time

import click
from rich.console import Console, RenderableType
from rich.live import Live

from tritonstack.errors import WorkFailedError
from tritonstack.paths import LocalPaths
from tritonstack_local.aws import LocalAws, require_local_aws
from tritonstack_local.commands.status_view import fitting_view, view
from tritonstack_local.record import exclusive, lost_deployments, lost_text

SECONDS = 1.0


@click.command("status")
@click.option("--watch", is_flag=True, help="A live view, until interrupted.")
@click.option("--json", "as_json", is_flag=True, help="Print the runtime's own JSON.")
def command(*, watch: bool, as_json: bool) -> None:
    """Show local endpoints: their fleets, loaded models, hit ratio, latencies, last errors, and what stands in."""
    console = Console(highlight=False)
    if watch and not as_json and not console.is_terminal:
        raise click.UsageError("--watch needs a terminal; without it the status is printed once")
    aws = require_local_aws()
    if as_json:
        click.echo(json.dumps(aws.runtime_status(), indent=2))
    elif watch:
        _watch(aws, console)
    else:
        console.print(view(aws, aws.runtime_status(), width=console.width))
        if lost := lost_deployments(LocalPaths.from_environment()):
            click.echo(f"no longer deployed, as the local AWS that held it was stopped: {lost_text(lost)}")


def _watch(aws: LocalAws, console: Console) -> None:
    """Show the status until interrupted, which is its regular end."""

    def now() -> RenderableType:
        return fitting_view(aws, aws.runtime_status(), console)

    with Live(now(), console=console, screen=True, auto_refresh=False) as live:
        try:
            while True:
                time.sleep(SECONDS)
                live.update(now(), refresh=True)
        except KeyboardInterrupt:
            return
        except WorkFailedError:
            if not _was_stopped(aws):
                raise
    click.echo("the local AWS was stopped")


def _was_stopped(aws: LocalAws) -> bool:
    """Whether the whole local AWS is gone; waits for a ``tritonstack local down`` that has stopped one half so far."""
    with exclusive(LocalPaths.from_environment(), report=lambda _said: None):
        return not aws.emulator.running and not aws.runtime.running
