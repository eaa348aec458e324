"""``tritonstack rollback``."""

from __future__ import annotations

import time

import click

from tritonstack.aws_session import Session
from tritonstack.cli.progress import Steps, ended_by_signals
from tritonstack.cli.session import local_option, require_account, session_of
from tritonstack.client.releases import RECORD_SECONDS, ModelReference, ReleaseRecords
from tritonstack.config import load_environment
from tritonstack.engines.order import Order, build_set, served_by
from tritonstack.engines.preparation import Place, stored_archives
from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.models.bucket import ArtifactBucket
from tritonstack.naming import ArchiveName
from tritonstack.paths import project_folder
from tritonstack.releases.records import DeployedSet, Record, deployed_set, read_record, write_record
from tritonstack.releases.rollback import chosen_digest, ensure_archive, require_movable


@click.command("rollback")
@click.argument("environment")
@click.argument("model", metavar="[ENDPOINT/]MODEL")
@click.option("--to", metavar="DIGEST", help="Move to this digest. Without it: to the last one before the current.")
@click.option("--yes", is_flag=True, help="Do it. Without it, only say what would be done.")
@local_option
def command(*, environment: str, model: str, to: str | None, yes: bool, local: bool) -> None:
    """Move a model of ENVIRONMENT back to an earlier release; no deployment is needed.

    The archive of that digest is made sure of first: where the endpoint's platform lacks it, it is copied from another
    one or built. Only then the release record moves, and callers follow within a minute. Deployments leave the record
    where it is until the model itself changes.
    """
    settings = load_environment(project_folder() / "environments" / f"{environment}.yaml")
    session = session_of(settings, local=local)
    if yes:
        require_account(session, settings)
    record = _record(session, settings.environment, model)
    deployed = require_movable(
        record,
        deployed_set(session, environment=settings.environment, endpoint=record.endpoint),
        environment=settings.environment,
    )
    bucket = ArtifactBucket(environment=settings.environment, session=session)
    places = {
        name.digest: tuple(place for place in found if place.endpoint == record.endpoint)
        for name, found in stored_archives(bucket).items()
        if name.model == record.model
    }
    digest = chosen_digest(record, to=to, stored=sorted(digest for digest, found in places.items() if found))
    name, place = (
        ArchiveName(model=record.model, digest=digest),
        Place(endpoint=record.endpoint, platform=deployed.platform),
    )
    there = place in places.get(digest, ())
    click.echo(f"{record.endpoint}/{record.model}: {record.digest or 'no record'} → {digest} on {deployed.platform}")
    if not yes:
        what = "its archive is there" if there else "its archive is copied or built first"
        click.echo(f"{what}; --yes does it")
        return
    steps = Steps()
    with ended_by_signals():
        with steps.step(f"archive {name}") as step:
            done = ensure_archive(
                name,
                place,
                lambda: _order(settings.environment, deployed),
                environment=settings.environment,
                bucket=bucket,
                session=session,
                report=step.say,
            )
            step.end_with(done)
        with steps.step("release record"):
            _move(session, record, digest, environment=settings.environment, deployed=deployed)
    click.echo(f"moved; callers follow within {RECORD_SECONDS:.0f} seconds")


def _record(session: Session, environment: str, model: str) -> Record:
    """The record that ``model`` means. Raises :class:`InputError` where it means none, several, or an archive."""
    reference = ModelReference.parse(model)
    if reference.digest is not None:
        advice = f"--to {reference.digest}"
        raise InputError([Problem(field="model's name", found=model, allowed="[endpoint/]model", advice=advice)])
    if reference.endpoint is not None and _is_deployed(session, environment, reference.endpoint, reference.model):
        endpoint = reference.endpoint  # its record may be gone: to write it again is what is asked for
    else:
        records = ReleaseRecords(environment=environment, ssm=lambda: session.client("ssm"), now=time.monotonic)
        endpoint = records.resolve(reference).endpoint
    return read_record(session, environment=environment, endpoint=endpoint, model=reference.model)


def _is_deployed(session: Session, environment: str, endpoint: str, model: str) -> bool:
    deployed = deployed_set(session, environment=environment, endpoint=endpoint)
    return deployed is not None and model in deployed.models


def _order(environment: str, deployed: DeployedSet) -> Order:
    """What a build for the endpoint has to know. Raises :class:`InputError` where this checkout is another's."""
    file = project_folder() / "environments" / f"{environment}.yaml"
    served = served_by(load_environment(file), project_folder() / "model_repos", file=file)
    for endpoint in served.environment.endpoints:
        if endpoint.name == deployed.endpoint and str(endpoint.platform) == str(deployed.platform):
            return build_set(served, endpoint)
    found = f"endpoint {deployed.endpoint} for another platform than it is deployed for, or no such endpoint"
    allowed = f"{deployed.endpoint} for {deployed.platform}"
    advice = "check out the deployed commit, or deploy this one first"
    raise InputError([Problem(file=str(file), field="endpoints", found=found, allowed=allowed, advice=advice)])


def _move(session: Session, record: Record, digest: str, *, environment: str, deployed: DeployedSet) -> None:
    """Move the record, unless somebody else moved it or the endpoint since it was read: a build may take hours."""
    again = deployed_set(session, environment=environment, endpoint=record.endpoint)
    if require_movable(record, again, environment=environment).platform != deployed.platform:
        raise WorkFailedError(f"{record.endpoint} is deployed for another platform by now; try again")
    now = read_record(session, environment=environment, endpoint=record.endpoint, model=record.model)
    if now.versions[:1] != record.versions[:1]:
        raise WorkFailedError(
            f"the release record of {record.endpoint}/{record.model} was moved meanwhile, to {now.digest}; look at "
            f"`tritonstack releases {environment} {record.endpoint}/{record.model}`, then try again"
        )
    write_record(session, record, digest, environment=environment, platform=str(deployed.platform))
