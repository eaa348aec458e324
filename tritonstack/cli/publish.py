"""``tritonstack publish``."""

from __future__ import annotations

import click

from tritonstack.cli.progress import Steps
from tritonstack.cli.session import local_option, require_account, session_of
from tritonstack.config import load_environment
from tritonstack.local_aws import is_local
from tritonstack.models.publish import publish_environment
from tritonstack.paths import project_folder


@click.command("publish")
@click.argument("environment")
@local_option
def command(*, environment: str, local: bool) -> None:
    """Put the built archives of ENVIRONMENT into its bucket.

    The AWS credentials must be of the environment's account. Environment local means the running local AWS.
    """
    settings = load_environment(project_folder() / "environments" / f"{environment}.yaml")
    session = session_of(settings, local=local)
    require_account(session, settings)
    on_local_aws = is_local(session.client("s3"))
    with Steps().step(f"publish the archives of {environment}") as step:
        summary = publish_environment(settings, session=session, local=on_local_aws, report=step.say)
        step.end_with(str(summary))
    for item in summary.archives:
        click.echo(f"s3://{summary.bucket}/{item.key}  {item.outcome}")
