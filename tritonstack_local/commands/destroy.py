"""``tritonstack local destroy``."""

from __future__ import annotations

import re

import click

from tritonstack.cli.progress import Steps
from tritonstack.errors import InputError, Problem
from tritonstack.naming import NAME_PATTERN
from tritonstack.paths import LocalPaths
from tritonstack_local.aws import require_local_aws
from tritonstack_local.commands.deploy import one_deployment
from tritonstack_local.deployment import LocalDeployment
from tritonstack_local.record import forget_deployed


@click.command("destroy")
@click.argument("environment", default="local")
def command(*, environment: str) -> None:
    """Remove ENVIRONMENT from the local AWS with the real CDK CLI."""
    if not re.fullmatch(NAME_PATTERN, environment):
        raise InputError([Problem(field="ENVIRONMENT", found=environment, allowed="the name of an environment")])
    deployment = LocalDeployment(aws=require_local_aws(), environment=environment)
    if not (deployment.assembly / "manifest.json").is_file():
        raise InputError(
            [
                Problem(
                    found=f"environment {environment!r} was not deployed from here",
                    allowed="an environment that was",
                    advice=f"tritonstack local deploy {environment}",
                )
            ]
        )
    steps = Steps()
    with one_deployment(steps), steps.step(f"destroy {environment} (cdk destroy)"):
        deployment.destroy()
        forget_deployed(LocalPaths.from_environment(), environment)
