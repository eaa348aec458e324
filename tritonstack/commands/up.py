"""``tritonstack up``."""

from __future__ import annotations

import click

from tritonstack.commands.progress import Steps
from tritonstack.local.aws import EMULATOR_PORT, RUNTIME_PORT, find_local_aws
from tritonstack.local.start import start_local_aws

PORT = click.IntRange(0, 65535)


@click.command("up")
@click.option(
    "--port",
    default=EMULATOR_PORT,
    type=PORT,
    show_default=True,
    envvar="TRITONSTACK_PORT",
    help="Port of the AWS APIs; 0 takes a free one.",
)
@click.option(
    "--runtime-port",
    default=RUNTIME_PORT,
    type=PORT,
    show_default=True,
    envvar="TRITONSTACK_RUNTIME_PORT",
    help="Port of InvokeEndpoint; 0 takes a free one.",
)
def command(*, port: int, runtime_port: int) -> None:
    """Start the local AWS and its SageMaker runtime. They stay up until `tritonstack down`."""
    aws = find_local_aws()
    if aws is not None:
        click.echo(f"The local AWS is up already: {aws.emulator_url}, InvokeEndpoint at {aws.runtime_url}")
        return
    with Steps().step("start the local AWS") as step:
        aws = start_local_aws(emulator_port=port, runtime_port=runtime_port, report=step.say)
        step.end_with(f"{aws.emulator_url}, InvokeEndpoint at {aws.runtime_url}")
