"""``tritonstack env``."""

from __future__ import annotations

import shlex

import click

from tritonstack.local.aws import PERSONAL_VARIABLES, require_local_aws, sdk_variables


@click.command("env")
@click.option("--unset", is_flag=True, help="Print how to take the variables back instead.")
def command(*, unset: bool) -> None:
    """Print the variables that point an AWS SDK at the local AWS: eval "$(tritonstack env)"."""
    if unset:  # also when nothing runs any more
        for name in sdk_variables(emulator_url="", runtime_url=""):
            click.echo(f"unset {name}")
        return
    variables = require_local_aws().variables()
    click.echo(f"unset {' '.join(PERSONAL_VARIABLES)}")
    for name, value in variables.items():
        click.echo(f"export {name}={shlex.quote(value)}")
