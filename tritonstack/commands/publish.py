"""``tritonstack publish``."""

from __future__ import annotations

import click

from tritonstack.archives.publish import publish_environment
from tritonstack.commands.progress import Steps
from tritonstack.local.paths import project_folder
from tritonstack.settings import load_environment


@click.command("publish")
@click.argument("environment")
def command(*, environment: str) -> None:
    """Put the built archives of ENVIRONMENT into its bucket, in the account that the AWS settings point at.

    For the local AWS: eval "$(tritonstack env)" first.
    """
    settings = load_environment(project_folder() / "environments" / f"{environment}.yaml")
    with Steps().step(f"publish the archives of {environment}") as step:
        summary = publish_environment(settings, report=step.say)
        step.end_with(str(summary))
    for item in summary.archives:
        click.echo(f"s3://{summary.bucket}/{item.key}  {item.outcome}")
