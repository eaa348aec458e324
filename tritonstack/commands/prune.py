"""``tritonstack prune``."""

from __future__ import annotations

import click

from tritonstack.archives.prune import DEFAULT_GRACE_HOURS, DEFAULT_HISTORY, Pruning
from tritonstack.commands.session import require_account, session_of
from tritonstack.local.paths import project_folder
from tritonstack.settings import load_environment


@click.command("prune")
@click.argument("environment")
@click.option(
    "--history",
    type=click.IntRange(min=0),
    default=DEFAULT_HISTORY,
    show_default=True,
    help="How many earlier values of a model's release record keep their archive.",
)
@click.option(
    "--grace-hours",
    type=click.FloatRange(min=0),
    default=DEFAULT_GRACE_HOURS,
    show_default=True,
    help="Archives younger than this stay: they may not be activated yet.",
)
@click.option("--yes", is_flag=True, help="Delete. Without it, only say what would go.")
def command(*, environment: str, history: int, grace_hours: float, yes: bool) -> None:
    """Remove the archives of ENVIRONMENT that no release record and no kept history names.

    With --yes, the AWS credentials must be of the environment's account.
    """
    settings = load_environment(project_folder() / "environments" / f"{environment}.yaml")
    session = session_of(settings)
    if yes:
        require_account(session, settings)
    pruning = Pruning(settings.environment, session=session)
    plan = pruning.plan(history=history, grace_hours=grace_hours)
    for item in plan.unneeded:
        click.echo(f"s3://{plan.bucket}/{item.archive_key}  {item.bytes:,} bytes")
    total = sum(item.bytes for item in plan.unneeded)
    if yes:
        pruning.carry_out(plan)
    verb = "removed" if yes else "would be removed (--yes removes them)"
    click.echo(f"{len(plan.unneeded)} archives, {total:,} bytes {verb}; {plan.kept} stay", err=True)
