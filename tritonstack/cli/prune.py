"""``tritonstack prune``."""

from __future__ import annotations

from collections.abc import Sequence

import click

from tritonstack.cli.session import require_account, session_of
from tritonstack.config import load_environment
from tritonstack.errors import InputError, Problem
from tritonstack.models.places import Places
from tritonstack.models.prune import DEFAULT_GRACE_HOURS, DEFAULT_HISTORY, Pruning, carry_out_local, plan_local
from tritonstack.paths import project_folder


@click.command("prune")
@click.argument("environment", required=False)
@click.option("--local", is_flag=True, help="Prune what builds have left on this machine, instead of a bucket.")
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
def command(*, environment: str | None, local: bool, history: int, grace_hours: float, yes: bool) -> None:
    """Remove the archives of ENVIRONMENT that no release record and no kept history names.

    With --local, remove instead the archives, exports and downloaded weights that builds keep on this machine and that
    no recipe below model_repos/ names as it is now, in whichever size and with whichever weights. They can be built
    again. With --yes, the AWS credentials must be of the environment's account.
    """
    if local == (environment is not None):
        found = f"{environment} and --local" if environment else "neither"
        raise InputError([Problem(field="prune", found=found, allowed="an environment, or --local")])
    if environment is None:
        _prune_local(yes=yes)
    else:
        _prune_bucket(environment, history=history, grace_hours=grace_hours, yes=yes)


def _prune_bucket(environment: str, *, history: int, grace_hours: float, yes: bool) -> None:
    settings = load_environment(project_folder() / "environments" / f"{environment}.yaml")
    session = session_of(settings)
    if yes:
        require_account(session, settings)
    pruning = Pruning(settings.environment, session=session)
    plan = pruning.plan(history=history, grace_hours=grace_hours)
    lines = [(f"s3://{plan.bucket}/{item.archive_key}", item.bytes) for item in plan.unneeded]
    _list(lines)
    if yes:
        pruning.carry_out(plan)
    _conclude("archives", lines, kept=plan.kept, yes=yes)


def _prune_local(*, yes: bool) -> None:
    plan = plan_local(Places.of_project())
    lines = [(str(item.paths[0]), item.bytes) for item in plan.unneeded]
    _list(lines)
    if yes:
        carry_out_local(plan)
    _conclude("archives, exports and downloads", lines, kept=plan.kept, yes=yes)


def _list(lines: Sequence[tuple[str, int]]) -> None:
    for name, size in lines:
        click.echo(f"{name}  {size:,} bytes")


def _conclude(what: str, lines: Sequence[tuple[str, int]], *, kept: int, yes: bool) -> None:
    verb = "removed" if yes else "would be removed (--yes removes them)"
    click.echo(f"{len(lines)} {what}, {sum(size for _, size in lines):,} bytes {verb}; {kept} stay", err=True)
