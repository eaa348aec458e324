"""``tritonstack local env``."""

from __future__ import annotations

import shlex

import click

from tritonstack.paths import REPOSITORY
from tritonstack_local.aws import PERSONAL_VARIABLES, require_local_aws, sdk_variables

PATH_BACK = 'if [ -n "${TRITONSTACK_PATH-}" ]; then PATH=${PATH#"$TRITONSTACK_PATH":}; unset TRITONSTACK_PATH; fi'
"""Takes our folder off PATH where ``path_line`` put it."""


def path_line() -> str:
    """What puts our programs (tritonstack, aws) first on PATH, once."""
    programs = shlex.quote(str(REPOSITORY / ".envs" / "main" / "bin"))
    return f'case ":$PATH:" in *:{programs}:*) ;; *) export TRITONSTACK_PATH={programs} PATH={programs}:"$PATH" ;; esac'


@click.command("env")
@click.option("--unset", is_flag=True, help="Print how to take the variables back instead.")
def command(*, unset: bool) -> None:
    """Print the variables that point an AWS SDK at the local AWS: eval "$(tritonstack local env)"."""
    if unset:  # also when nothing runs any more
        for name in sdk_variables(emulator_url="", runtime_url=""):
            click.echo(f"unset {name}")
        click.echo(PATH_BACK)
        return
    variables = require_local_aws().variables()
    click.echo(f"unset {' '.join(PERSONAL_VARIABLES)}")
    for name, value in variables.items():
        click.echo(f"export {name}={shlex.quote(value)}")
    click.echo(path_line())
