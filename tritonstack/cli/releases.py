"""``tritonstack releases``, ``rollback`` and ``verify``: release records, and models behind them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict

import click
from botocore.config import Config
from rich.table import Table
from rich.text import Text

from tritonstack.archives.bucket import ArtifactBucket, Place
from tritonstack.aws.session import ConfiguredSession, Session
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
from tritonstack.cli.leftovers import note_left
from tritonstack.cli.progress import Steps, ended_by_signals
from tritonstack.cli.session import require_account, session_of
from tritonstack.client.errors import UnknownModelError
from tritonstack.client.model_client import ModelClient
from tritonstack.client.releases import RECORD_SECONDS, ModelReference, ModelRelease, ReleaseRecords
from tritonstack.config import Environment, load_environment
from tritonstack.errors import InputError, Problem, WorkFailedError, listing
from tritonstack.naming import ArchiveName
from tritonstack.paths import environment_file, project_folder
from tritonstack.preparation.build_order import Order, build_set
from tritonstack.preparation.stored_archives import stored_archives
from tritonstack.releases.records import (
    DeployedSet,
    Record,
    deployed_set,
    read_record,
    read_records,
    uploads_again,
    write_record,
)
from tritonstack.releases.report import (
    ModelReleases,
    ReleasesReport,
    archives_under,
    endpoint_report,
    manifest_facts,
)
from tritonstack.releases.rollback import chosen_digest, ensure_archive, require_movable
from tritonstack.releases.verification import DAYS, VerifiedEndpoint, Verifier
from tritonstack.served import served_by

SHOWN = 5
"""Releases of each model, where the table is of a whole environment."""
COMMIT_LENGTH = 8
COLUMNS = ("model, its releases", "since", "by", "commit", "platform", "archive")  # which 80 characters hold
CURRENT = "→"
POOLED = Config(retries={"mode": "adaptive", "max_attempts": 10}, max_pool_connections=16)
"""Systems Manager answers a few histories a second, and an endpoint may have a thousand models."""


@click.command("releases", epilog="example: tritonstack releases -e prod models/iris")
@environment_option()
@click.argument("model", required=False, metavar="[[ENDPOINT/]MODEL]")
@json_option("Print JSON: every release, as schemas/releases.schema.json.")
@local_option
def releases_command(*, environment: str, model: str | None, as_json: bool, local: bool) -> None:
    """Show the releases of each model of ENVIRONMENT, newest first, or of one model with its whole history.

    A release has a digest, the platform, the time, the commit of the model's inputs, its author, and whether its
    archive exists for the endpoint's current platform. Records that differ from the deployment are listed last, with
    what to do.
    """
    settings = load_environment(environment_file(environment))
    session = session_of(settings, local=local)
    report = releases_report(settings, ConfiguredSession(session, POOLED), model)
    if model is None:
        report = report.model_copy(update={"left": note_left(settings, session, local=local)})
    if as_json:
        echo(visible_json(report.model_dump_json(indent=2)))
    else:
        show_releases(report, whole=model is not None)


def releases_report(settings: Environment, session: Session, model: str | None) -> ReleasesReport:
    """Everything that is recorded or deployed, or of one model alone.

    Raises :class:`InputError` for a model that has no record or several, and where nothing is deployed at all;
    :class:`WorkFailedError` where AWS refuses.
    """
    environment = settings.environment
    bucket = ArtifactBucket(environment=environment, session=session)
    records = ReleaseRecords(environment=environment, ssm=lambda: session.client("ssm"))
    chosen = None if model is None else _chosen(model, records, bucket, environment=environment)
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
        current = (ArchiveName(model=each.model, digest=each.digest) for each in found if each.digest)
        place = Place(endpoint=name, platform=deployed.platform) if deployed else None
        facts = manifest_facts(bucket, archives.intersection(current), place=place) if place else {}
        reports.append(endpoint_report(environment, name, found, deployed=deployed, archives=archives, facts=facts))
    return ReleasesReport(environment=environment, endpoints=tuple(reports))


def _chosen(model: str, records: ReleaseRecords, bucket: ArtifactBucket, *, environment: str) -> ModelRelease:
    """The release that a name means. Raises :class:`InputError`; of a removed model with the archives that are left."""
    reference = ModelReference.parse(model)
    try:
        return records.resolve(reference)
    except UnknownModelError:
        left = {
            f"{place.endpoint}/{name.model} {name.digest}"
            for name, places in stored_archives(bucket).items()
            for place in places
            if name.model == reference.model and reference.endpoint in (None, place.endpoint)
        }
        if not left:
            raise
        found = f"{model!r}, which has no release record: a deployment removed the model, and its history with it"
        allowed = f"a model with a release record; the bucket still has the archives {listing(sorted(left))}"
        advice = f"to serve it again, name it in `models` of environments/{environment}.yaml and deploy"
        raise InputError([Problem(field="model's name", found=found, allowed=allowed, advice=advice)]) from None


def show_releases(report: ReleasesReport, *, whole: bool) -> None:
    """Print tables, and after them what differs or was not proven. ``whole``: the full history."""
    console = result_console()
    differences: dict[str, list[str]] = {}  # what is said → of which models
    for endpoint in report.endpoints:
        if not endpoint.models:
            console.print(f"{endpoint.endpoint}: {'no models' if endpoint.stack else 'not deployed'}")
            continue
        place = f"on {endpoint.platform}, {endpoint.stack}" if endpoint.platform else "not deployed"
        rows = (row for model in endpoint.models for row in _rows(model, whole=whole))
        console.print(plain_table(COLUMNS, rows, title=f"{endpoint.endpoint} {place}"))
        for one in endpoint.models:
            if one.differs:
                differences.setdefault(f"{one.differs}\n  do: {one.fix}", []).append(f"{endpoint.endpoint}/{one.model}")
            if one.proof_skipped:
                skipped = f"proof skipped: {one.proof_skipped}"
                differences.setdefault(skipped, []).append(f"{endpoint.endpoint}/{one.model}")
    for text, names in differences.items():
        echo(f"{', '.join(names)}: {text}")


def _rows(model: ModelReleases, *, whole: bool) -> Iterator[Sequence[str | Text]]:
    shown = model.releases if whole else model.releases[:SHOWN]
    yield Text(model.model, style="bold"), "" if shown else "no record"
    for entry in shown:
        yield (
            f"{CURRENT if entry.current else ' '} {entry.digest}",
            entry.time.astimezone().strftime("%Y-%m-%d %H:%M"),
            entry.writer,
            entry.commit if entry.commit.isalpha() else entry.commit[:COMMIT_LENGTH],
            entry.platform or "unknown",
            "there" if entry.archive else "missing",
        )
    if len(model.releases) > len(shown):
        yield f"  … {len(model.releases) - len(shown)} earlier", "name the model"


@click.command("rollback", epilog="example: tritonstack rollback -e prod models/iris --yes")
@environment_option()
@click.argument("model", metavar="[ENDPOINT/]MODEL")
@click.option("--to", metavar="DIGEST", help="Digest to roll back to. [default: the release before the current one]")
@click.option("--yes", is_flag=True, help="Roll back. Without it, only print what would be done.")
@json_option()
@local_option
def rollback_command(*, environment: str, model: str, to: str | None, yes: bool, as_json: bool, local: bool) -> None:
    """Roll a model of ENVIRONMENT back to an earlier release, without a deployment.

    An archive that the endpoint's platform lacks is first copied from another platform or built. Then the release
    record moves, and clients follow within a minute. Deployments keep the record until the model itself changes.
    """
    settings = load_environment(environment_file(environment))
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
    name = ArchiveName(model=record.model, digest=digest)
    place = Place(endpoint=record.endpoint, platform=deployed.platform)
    there = place in places.get(digest, ())
    document = {
        "endpoint": record.endpoint,
        "model": record.model,
        "from": record.digest,
        "to": digest,
        "platform": str(deployed.platform),
        "archive": there,
        "moved": yes,
    }
    if not as_json:
        change = f"{record.digest or 'no record'} → {digest} on {deployed.platform}"
        echo(f"{record.endpoint}/{record.model}: {change}")
    if not yes:
        what = "its archive is there" if there else "its archive is copied or built first"
        echo(f"{what}; --yes does it", err=as_json)
        if as_json:
            print_json(document)
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
    echo(f"moved; clients follow within {RECORD_SECONDS:.0f} seconds", err=as_json)
    if as_json:
        print_json(document)


def _record(session: Session, environment: str, model: str) -> Record:
    """The record that ``model`` means. Raises :class:`InputError` where it means none, several, or an archive."""
    reference = ModelReference.parse(model)
    if reference.digest is not None:
        advice = f"--to {reference.digest}"
        raise InputError([Problem(field="model's name", found=model, allowed="[endpoint/]model", advice=advice)])
    endpoint = reference.endpoint
    deployed = deployed_set(session, environment=environment, endpoint=endpoint) if endpoint is not None else None
    # Where it is deployed, its record may be gone: to write it again is what is asked for.
    if endpoint is None or deployed is None or reference.model not in deployed.models:
        records = ReleaseRecords(environment=environment, ssm=lambda: session.client("ssm"))
        try:
            endpoint = records.resolve(reference).endpoint
        except UnknownModelError:
            if deployed is None or deployed.gone is None:
                raise
            again = uploads_again(environment=environment, endpoint=deployed.endpoint)
            raise WorkFailedError(
                f"{model} has no release record, and what is deployed could not be read: {deployed.gone}\n"
                f"  do:      {again}, then the same command again"
            ) from None
    return read_record(session, environment=environment, endpoint=endpoint, model=reference.model)


def _order(environment: str, deployed: DeployedSet) -> Order:
    """The build order of the endpoint. Raises :class:`InputError` where this checkout is another's."""
    file = environment_file(environment)
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
            f"`tritonstack releases -e {environment} {record.endpoint}/{record.model}`, then try again"
        )
    write_record(session, record, digest, environment=environment, platform=str(deployed.platform))


PACED = Config(retries={"mode": "adaptive", "max_attempts": 10})
COLD = (
    "Each model got one request: an instance that did not get it, or starts later, loads the model at its first "
    "request, and models of a multi-model endpoint may be unloaded again."
)


@click.command("verify", epilog="example: tritonstack verify -e prod iris")
@environment_option()
@click.argument("models", nargs=-1, metavar="[[ENDPOINT/]MODEL]…")
@json_option()
@local_option
def verify_command(*, environment: str, models: Sequence[str], as_json: bool, local: bool) -> int:
    """Send every released model of ENVIRONMENT, or the MODELs, its sample request.

    Each endpoint must run the config of its stack; each release's archive must exist, and its response must match its
    manifest within the recipe's tolerance. Exit code 1 otherwise.
    """
    settings = load_environment(environment_file(environment))
    session = session_of(settings, local=local)
    paced = ConfiguredSession(session, PACED)
    verifier = Verifier(environment, session=paced, client=ModelClient(environment=environment, session=session))
    records = ReleaseRecords(environment=environment, ssm=lambda: paced.client("ssm"))
    releases = tuple(records.resolve(ModelReference.parse(name)) for name in models) or records.all()
    endpoints = {release.endpoint for release in releases}
    if not models:
        endpoints |= {endpoint.name for endpoint in settings.endpoints}
    verified, steps = [], Steps()
    for name in sorted(endpoints):
        of_endpoint = tuple(release for release in releases if release.endpoint == name)
        with steps.step(f"verify {name}") as step:
            verified.append(verifier.endpoint(name, of_endpoint, say=step.say))
            good = sum(not model.problem for model in verified[-1].models)
            summary = f"{good} of {len(verified[-1].models)} models respond as expected"
            step.end_with(verified[-1].problem.partition("\n")[0] or summary)
    sound = all(endpoint.sound for endpoint in verified)
    left = None if models else note_left(settings, session, local=local)
    if as_json:
        rows = [{**asdict(one), "sound": one.sound, "slowest_load_seconds": one.slowest_load} for one in verified]
        names = None if left is None else [each.model_dump(mode="json") for each in left]
        print_json({"environment": environment, "sound": sound, "endpoints": rows, "left": names})
    else:
        show_verified(verified, settings)
    return 0 if sound else 1


def show_verified(verified: Sequence[VerifiedEndpoint], settings: Environment) -> None:
    """Print a table an endpoint, then what is wrong, in full, how long models load, and what was not looked at."""
    console = result_console()
    for endpoint in verified:
        if endpoint.models:
            console.print(_table(endpoint))
    for endpoint in verified:
        if endpoint.problem:
            echo(f"{endpoint.endpoint}: {endpoint.problem}")
        for model in endpoint.models:
            if model.problem:
                echo(f"{endpoint.endpoint}/{model.model}: {model.problem}")
        if endpoint.pools:
            live = [f"{count} x {kind}" for kind, count in endpoint.pools if count]
            idle = [kind for kind, count in endpoint.pools if not count]
            rest = f"; none of {', '.join(idle)}, whose archives no request reaches" if idle else ""
            echo(f"{endpoint.endpoint} runs on {', '.join(live) or 'no instance'}{rest}.")
        if endpoint.instances > 1:
            echo(f"{endpoint.endpoint} has {endpoint.instances} instances, and each request went to one of them.")
        for line in loads(endpoint, settings):
            echo(line)
    if any(endpoint.models for endpoint in verified):
        echo(COLD)


def loads(endpoint: VerifiedEndpoint, settings: Environment) -> Iterator[str]:
    """The longest wait of a request for its model, and the rollout setting for it."""
    measured = endpoint.loads
    if measured is None:
        return
    if measured.problem:
        yield f"{endpoint.endpoint}: its load times could not be read: {measured.problem}"
    slowest = endpoint.slowest_load
    if slowest is None:
        return
    parts = [("download", measured.download), ("load", measured.load)]
    parts_text = " + ".join(f"{name} {seconds:.1f} s" for name, seconds in parts if seconds is not None)
    kept = f"slowest in {DAYS} days: {parts_text}" if parts_text else f"no load was measured in {DAYS} days"
    given = next((one.rollout for one in settings.endpoints if one.name == endpoint.endpoint), None)
    now = None if given is None else given.slowest_load_seconds
    needed = math.ceil(slowest)
    yield (
        f"{endpoint.endpoint}: a call waited {slowest:.1f} s at most ({kept}; or a response just now). The setting "
        f"for it is rollout.slowest_load_seconds: {needed}"
        + ("." if now is None else f", which is {now:g}{': too short.' if now < slowest else '.'}")
    )


def _table(endpoint: VerifiedEndpoint) -> Table:
    rows = (
        (
            model.model,
            model.digest,
            Text("wrong or none", style="red") if model.problem else Text("as expected", style="green"),
            "" if model.difference is None else f"{model.difference:.2g}",
            "" if model.milliseconds is None else f"{model.milliseconds:.0f}",
        )
        for model in endpoint.models
    )
    title = f"{endpoint.endpoint} runs {endpoint.config or 'nothing that is known'}"
    return plain_table(("model", "digest", "answer", "differs by", "ms"), rows, title=title, numbers=2)
