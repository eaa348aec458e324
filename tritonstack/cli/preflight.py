"""``tritonstack preflight``."""

from __future__ import annotations

from pathlib import Path

import click
from botocore.exceptions import NoCredentialsError, PartialCredentialsError
from rich.console import Console
from rich.text import Text

from tritonstack.aws.read_only import NotKnownError, ReadOnlyCalls
from tritonstack.cli.conventions import (
    echo,
    environment_option,
    json_option,
    local_option,
    plain_table,
    print_json,
    result_console,
    visible_json,
)
from tritonstack.cli.progress import Steps
from tritonstack.cli.session import session_of
from tritonstack.config import Environment, load_environment
from tritonstack.config.pipeline import PIPELINE_FILE, deployed_by_pipeline
from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.local_aws import is_local
from tritonstack.paths import environment_file, project_folder
from tritonstack.preflight.role import role_policies
from tritonstack.preflight.runner import run_checks
from tritonstack.preflight.subject import CheckOutcome, PreflightReport, PreflightResult, Subject, report_of
from tritonstack.served import served_by

SHOWN: dict[CheckOutcome, tuple[str, str]] = {
    "passes": ("passes", "green"),
    "fails": ("will fail", "red"),
    "warns": ("look at it", "yellow"),
    "unknown": ("not known", "yellow"),
}
CONSTRUCTED = "The local AWS answers: its quotas, images and zones are constructed, and show nothing of AWS's."


@click.command("preflight", epilog="example: tritonstack preflight -e prod --strict")
@environment_option()
@click.option("--strict", is_flag=True, help="Exit code 1 also where something could not be checked.")
@click.option(
    "--role-policy", is_flag=True, help="Print the policy that each endpoint's role needs, as JSON; nothing is checked."
)
@click.option(
    "--concurrency",
    type=click.IntRange(min=1),
    help="Stacks that are deployed at once, as of `cdk deploy --concurrency`: so many new fleets count. By default all "
    "endpoints where pipeline.yaml deploys ENVIRONMENT, else one.",
)
@json_option("Print JSON, as schemas/preflight.schema.json.")
@local_option
def command(
    *, environment: str, strict: bool, role_policy: bool, concurrency: int | None, as_json: bool, local: bool
) -> int:
    """Check an account for what a deployment of ENVIRONMENT would fail at: quotas, images, bootstrap, keys, network.

    Calls read operations only. What cannot be read (a missing permission) is listed as not known. Exit code 1 where
    something will fail.
    """
    file = environment_file(environment)
    settings = load_environment(file)
    served = served_by(settings, project_folder() / "model_repos", file=file)
    session = session_of(settings, local=local)
    calls = ReadOnlyCalls(session)
    constructed = is_local(calls.client("service-quotas"))
    subject = Subject(
        served=served,
        calls=calls,
        project=project_folder(),
        local=constructed,
        at_once=concurrency or deployed_at_once(settings, project_folder()),
    )
    _require_credentials(calls)
    if role_policy:
        try:
            print_json(role_policies(subject))
        except NotKnownError as error:
            raise WorkFailedError(f"{error.found}. {error.advice}") from error
        return 0
    with Steps().step(f"preflight {environment}") as step:
        results = run_checks(subject, say=step.say)
        report = report_of(results, settings, constructed=constructed)
        step.end_with(summary(report))
    if as_json:
        echo(visible_json(report.model_dump_json(indent=2)))
    else:
        show(report)
    return 1 if report.fails or (strict and report.unknown) else 0


def deployed_at_once(settings: Environment, project: Path) -> int:
    """Endpoints of an environment that are updated at the same time.

    A pipeline gives all serving stacks of an environment one RunOrder (CodePipeline user guide: "Configure serial or
    parallel actions"); `cdk deploy` works one stack after the other, unless it has `--concurrency`.
    """
    in_pipeline = settings.environment in deployed_by_pipeline(project / PIPELINE_FILE)
    return max(1, len(settings.endpoints)) if in_pipeline else 1


def summary(report: PreflightReport) -> str:
    """The counts in a line."""
    warns = f", {report.warns} to look at" if report.warns else ""
    return f"{report.passes} pass, {report.fails} will fail{warns}, {report.unknown} could not be checked"


def show(report: PreflightReport, console: Console | None = None) -> None:
    """Print a table of everything, then what to do about what fails or is not known."""
    console = console or result_console()
    rows = (
        (Text.styled(*SHOWN[each.outcome]), each.check, each.subject, each.found, each.needed)
        for each in report.results
    )
    console.print(plain_table(("", "check", "of", "found", "needed"), rows))
    for advice, results in _by_advice(report).items():
        for result in results:
            echo(f"{result.check} {result.subject}: {result.found}\n  needed:  {result.needed}")
        echo(f"  do:      {advice}")
    if report.constructed:
        echo(CONSTRUCTED)
    echo(summary(report))


def _by_advice(report: PreflightReport) -> dict[str, list[PreflightResult]]:
    """Results that do not pass, by their advice: one action often fixes several."""
    found: dict[str, list[PreflightResult]] = {}
    for outcome in ("fails", "warns", "unknown"):
        for result in report.results:
            if result.outcome == outcome:
                found.setdefault(result.advice, []).append(result)
    return found


def _require_credentials(calls: ReadOnlyCalls) -> None:
    """Raise InputError without credentials: nothing can be known then."""
    try:
        calls.must("sts", "get_caller_identity")
    except NotKnownError as error:
        if isinstance(error.__cause__, NoCredentialsError | PartialCredentialsError):
            problem = Problem(field="AWS settings", found=error.found, allowed="credentials that boto3 can use")
            raise InputError([problem]) from error
        # Whatever else it is, the check of the account says so.
