"""``tritonstack destroy-local``."""

from __future__ import annotations

import click

from tritonstack.commands.progress import Steps
from tritonstack.errors import InputError, Problem
from tritonstack.local.aws import require_local_aws
from tritonstack.local.deployment import LocalDeployment


@click.command("destroy-local")
@click.argument("environment", default="local")
def command(*, environment: str) -> None:
    """Remove ENVIRONMENT from the local AWS with the real CDK CLI."""
    deployment = LocalDeployment(aws=require_local_aws(), environment=environment)
    if not deployment.assembly.is_dir():
        raise InputError(
            [
                Problem(
                    found=f"environment {environment!r} was not deployed from here",
                    allowed="an environment that was",
                    advice=f"tritonstack deploy-local {environment}",
                )
            ]
        )
    with Steps().step(f"destroy {environment} (cdk destroy)"):
        deployment.destroy()
