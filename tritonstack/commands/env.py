"""``tritonstack env``."""

from __future__ import annotations

import shlex

import click

from tritonstack.local.aws import require_local_aws


@click.command("env")
@click.option("--unset", is_flag=True, help="Print how to take the variables back instead.")
def command(*, unset: bool) -> None:
    """Print the variables that point an AWS SDK at the local AWS: eval "$(tritonstack env)"."""
    for name, value in require_local_aws().variables().items():
        click.echo(f"unset {name}" if unset else f"export {name}={shlex.quote(value)}")
