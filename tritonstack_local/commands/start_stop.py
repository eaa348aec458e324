"""``tritonstack local up``, ``down`` and ``env``."""

from __future__ import annotations

import shlex

import click

from tritonstack.cli.progress import Steps
from tritonstack.paths import REPOSITORY
from tritonstack_local.aws import (
    EMULATOR_PORT,
    PERSONAL_VARIABLES,
    RUNTIME_PORT,
    find_local_aws,
    require_local_aws,
    sdk_variables,
)
from tritonstack_local.commands.iam import role_variables
from tritonstack_local.start import start_local_aws, stop_local_aws

PORT = click.IntRange(0, 65535)


@click.command("up")
@click.option(
    "--port",
    default=EMULATOR_PORT,
    type=PORT,
    show_default=True,
    envvar="TRITONSTACK_PORT",
    show_envvar=True,
    help="Port of the AWS APIs; 0 takes a free one.",
)
@click.option(
    "--runtime-port",
    default=RUNTIME_PORT,
    type=PORT,
    show_default=True,
    envvar="TRITONSTACK_RUNTIME_PORT",
    show_envvar=True,
    help="Port of InvokeEndpoint; 0 takes a free one.",
)
@click.option("--no-iam", is_flag=True, help="Allow every request: no permission is enforced.")
def up(*, port: int, runtime_port: int, no_iam: bool) -> None:
    """Start the local AWS and its SageMaker runtime. They stay up until `tritonstack local down`."""
    aws = find_local_aws()
    if aws is not None:
        click.echo(f"The local AWS is up already: {aws.emulator_url}, InvokeEndpoint at {aws.runtime_url}")
        if no_iam and aws.iam()["enforced"]:
            click.echo("IAM stays on; to start without it: tritonstack local down, then tritonstack local up --no-iam")
        return
    steps = Steps()
    with steps.step("start the local AWS") as step:
        aws = start_local_aws(
            emulator_port=port, runtime_port=runtime_port, report=step.say, note=steps.note, iam=not no_iam
        )
        step.end_with(f"{aws.emulator_url}, InvokeEndpoint at {aws.runtime_url}")
    if no_iam:
        steps.note("IAM is switched off: every request is allowed, also those that AWS would refuse")


@click.command("down")
def down() -> None:
    """Stop the local AWS and its runtime. What was deployed there is gone; built archives stay."""
    with Steps().step("stop the local AWS") as step:
        step.end_with(stop_local_aws(report=step.say))


PATH_BACK = 'if [ -n "${TRITONSTACK_PATH-}" ]; then PATH=${PATH#"$TRITONSTACK_PATH":}; unset TRITONSTACK_PATH; fi'
"""Takes our folder off PATH where ``path_line`` put it."""


def _path_line() -> str:
    """What puts our programs (tritonstack, aws) first on PATH, once."""
    programs = shlex.quote(str(REPOSITORY / ".envs" / "main" / "bin"))
    return f'case ":$PATH:" in *:{programs}:*) ;; *) export TRITONSTACK_PATH={programs} PATH={programs}:"$PATH" ;; esac'


@click.command("env")
@click.option("--unset", is_flag=True, help="Print the commands that unset the variables instead.")
@click.option("--role", help="Name or ARN of a role to act as, instead of the account's administrator.")
def env(*, unset: bool, role: str | None) -> None:
    """Print the variables that point an AWS SDK at the local AWS: eval "$(tritonstack local env)"."""
    if unset:  # also when nothing runs any more
        for name in (*sdk_variables(emulator_url="", runtime_url=""), "AWS_SESSION_TOKEN"):
            click.echo(f"unset {name}")
        click.echo(PATH_BACK)
        return
    aws = require_local_aws()
    variables = aws.variables() | ({} if role is None else role_variables(aws, role))
    click.echo(f"unset {' '.join(PERSONAL_VARIABLES)}")
    for name, value in variables.items():
        click.echo(f"export {name}={shlex.quote(value)}")
    click.echo(_path_line())
