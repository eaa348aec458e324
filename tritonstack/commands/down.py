"""``tritonstack down``."""

from __future__ import annotations

import click

from tritonstack.commands.progress import Steps
from tritonstack.local.start import stop_local_aws


@click.command("down")
def command() -> None:
    """Stop the local AWS and its runtime. What was deployed there is gone; built archives stay."""
    with Steps().step("stop the local AWS") as step:
        step.end_with(stop_local_aws(report=step.say))
