"""``tritonstack releases``."""

from __future__ import annotations

import time
from collections import defaultdict

import click
from botocore.config import Config
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tritonstack.aws_session import ConfiguredSession, Session
from tritonstack.cli.session import local_option, session_of
from tritonstack.client.releases import ModelReference, ReleaseRecords
from tritonstack.config import Environment, load_environment
from tritonstack.models.bucket import ArtifactBucket
from tritonstack.paths import project_folder
from tritonstack.releases.records import Record, deployed_set, read_records
from tritonstack.releases.report import (
    EndpointReleases,
    ModelReleases,
    ReleasesReport,
    archives_under,
    endpoint_report,
)

SHOWN = 5
"""Releases of each model, where the table is of a whole environment."""
COMMIT_LENGTH = 8
CURRENT = "→"
PACED = Config(retries={"mode": "adaptive", "max_attempts": 10}, max_pool_connections=16)
"""Systems Manager answers a few histories a second, and an endpoint may have a thousand models."""


@click.command("releases")
@click.argument("environment")
@click.argument("model", required=False, metavar="[[ENDPOINT/]MODEL]")
@click.option("--json", "as_json", is_flag=True, help="For programs: every release, as schemas/releases.schema.json.")
@local_option
def command(*, environment: str, model: str | None, as_json: bool, local: bool) -> None:
    """Show what each model of ENVIRONMENT is and was, newest first, or one model with its whole history.

    A release has a digest, the platform, the time, the commit of the model's inputs, who wrote it, and whether its
    archive lies under the endpoint's platform of now. Where a record differs from what is deployed, the last lines say
    how to mend it.
    """
    settings = load_environment(project_folder() / "environments" / f"{environment}.yaml")
    report = releases_report(settings, ConfiguredSession(session_of(settings, local=local), PACED), model)
    if as_json:
        click.echo(report.model_dump_json(indent=2))
    else:
        show(report, whole=model is not None)


def releases_report(settings: Environment, session: Session, model: str | None) -> ReleasesReport:
    """Everything that is recorded or deployed, or of one model alone.

    Raises :class:`InputError` for a model that has no record or several, and where nothing is deployed at all;
    :class:`WorkFailedError` where AWS refuses.
    """
    environment = settings.environment
    bucket = ArtifactBucket(environment=environment, session=session)
    records = ReleaseRecords(environment=environment, ssm=lambda: session.client("ssm"), now=time.monotonic)
    chosen = None if model is None else records.resolve(ModelReference.parse(model))
    releases = records.all() if chosen is None else (chosen,)
    by_endpoint: dict[str, list[Record]] = defaultdict(list)
    for record in read_records(session, environment=environment, releases=releases):
        by_endpoint[record.endpoint].append(record)
    names = (
        {endpoint.name for endpoint in settings.endpoints} | set(by_endpoint) if chosen is None else {chosen.endpoint}
    )
    reports = []
    for name in sorted(names):
        deployed = deployed_set(session, environment=environment, endpoint=name)
        found = by_endpoint[name]
        if deployed is not None and chosen is None:
            known = {record.model for record in found}
            found += [Record(endpoint=name, model=each, versions=()) for each in deployed.models if each not in known]
        archives = archives_under(bucket, endpoint=name, platform=deployed.platform) if deployed else frozenset()
        reports.append(endpoint_report(environment, name, found, deployed=deployed, archives=archives))
    return ReleasesReport(environment=environment, endpoints=tuple(reports))


def show(report: ReleasesReport, *, whole: bool) -> None:
    """Print tables, and after them what differs. ``whole``: the full history."""
    console = Console(highlight=False)
    differences: list[str] = []
    for endpoint in report.endpoints:
        if not endpoint.models:
            console.print(f"{endpoint.endpoint}: {'no models' if endpoint.stack else 'not deployed'}")
            continue
        console.print(_table(endpoint, whole=whole))
        for one in endpoint.models:
            if one.differs:
                differences.append(f"{endpoint.endpoint}/{one.model}: {one.differs}\n  do: {one.mend}")
    for line in differences:
        click.echo(line)


def _table(endpoint: EndpointReleases, *, whole: bool) -> Table:
    place = f"on {endpoint.platform}, {endpoint.stack}" if endpoint.platform else "not deployed"
    title = Text(f"{endpoint.endpoint} {place}")
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for column in ("model, its releases", "since", "by", "commit", "platform", "archive"):
        table.add_column(column, overflow="fold", no_wrap=True)  # six columns that 80 characters hold
    for model in endpoint.models:
        _add_rows(table, model, whole=whole)
    return table


def _add_rows(table: Table, model: ModelReleases, *, whole: bool) -> None:
    shown = model.releases if whole else model.releases[:SHOWN]
    table.add_row(Text(model.model, style="bold"), "" if shown else "no record")
    for entry in shown:
        table.add_row(
            Text(f"{CURRENT if entry.current else ' '} {entry.digest}"),
            entry.time.astimezone().strftime("%Y-%m-%d %H:%M"),
            entry.writer,
            Text(entry.commit if entry.commit.isalpha() else entry.commit[:COMMIT_LENGTH]),
            Text(entry.platform or "unknown"),
            "there" if entry.archive else "missing",
        )
    if len(model.releases) > len(shown):
        table.add_row(f"  … {len(model.releases) - len(shown)} earlier", "name the model")
