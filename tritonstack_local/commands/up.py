"""``tritonstack local up``."""

from __future__ import annotations

import click
from click.core import ParameterSource

from tritonstack.cli.progress import Steps
from tritonstack.errors import InputError, Problem
from tritonstack.paths import LocalPaths
from tritonstack_local.aws import EMULATOR_PORT, RUNTIME_PORT, LocalAws, find_local_aws
from tritonstack_local.record import lost_deployments, lost_text
from tritonstack_local.start import start_local_aws

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
@click.pass_context
def command(context: click.Context, *, port: int, runtime_port: int) -> None:
    """Start the local AWS and its SageMaker runtime. They stay up until `tritonstack local down`."""
    aws = find_local_aws()
    if aws is not None:
        check_ports(context, aws)
        click.echo(f"The local AWS is up already: {aws.emulator_url}, InvokeEndpoint at {aws.runtime_url}")
        return
    steps = Steps()
    with steps.step("start the local AWS") as step:
        aws = start_local_aws(emulator_port=port, runtime_port=runtime_port, report=step.say, note=steps.note)
        step.end_with(f"{aws.emulator_url}, InvokeEndpoint at {aws.runtime_url}")
    if lost := lost_deployments(LocalPaths.from_environment()):
        steps.note(f"no longer deployed, as the local AWS that held it was stopped: {lost_text(lost)}")


def check_ports(context: click.Context, aws: LocalAws) -> None:
    """Refuse ports that were asked for where one that is up has others.

    Raises:
        InputError: it has.
    """
    problems = []
    for name, running in (("port", aws.emulator_port), ("runtime_port", aws.runtime_port)):
        asked = context.params[name]
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT and asked not in (0, running):
            option = f"--{name.replace('_', '-')} {asked}"
            allowed, advice = "the port on which it is up", "tritonstack local down, then tritonstack local up"
            problems.append(
                Problem(field=option, found=f"the local AWS is up on port {running}", allowed=allowed, advice=advice)
            )
    if problems:
        raise InputError(problems)
