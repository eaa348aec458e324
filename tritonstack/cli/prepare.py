"""``tritonstack prepare`` and ``builders``: what an environment's endpoints need, and what builds its engines."""

from __future__ import annotations

import dataclasses
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import click
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tritonstack.archives.bucket import Place
from tritonstack.archives.build import refuse_errors_of_environment
from tritonstack.aws.session import AccountSession, ConfiguredSession, Session
from tritonstack.cli.conventions import (
    LOCAL,
    echo,
    environment_option,
    json_option,
    local_option,
    plain_table,
    print_json,
    result_console,
)
from tritonstack.cli.progress import ended_by_signals
from tritonstack.cli.safe_console import SafeConsole
from tritonstack.cli.session import require_account, session_of
from tritonstack.config import EndpointSettings, load_environment
from tritonstack.engines.engine_builds import Builder, EngineBuild, EngineBuilds, engine_builds
from tritonstack.errors import InputError, Problem, TritonstackError, WorkFailedError, listing, nearest, refuse
from tritonstack.models.digest import model_digest
from tritonstack.models.manifest import EngineMeasurement, Places, measurements_of
from tritonstack.models.selection import resolved_models
from tritonstack.models.source import ArchiveSource
from tritonstack.naming import ArchiveName
from tritonstack.paths import environment_file, project_folder
from tritonstack.preparation.build_order import Order, read_order
from tritonstack.preparation.needed_work import (
    Failure,
    NeededWork,
    PrepareFailedError,
    PrepareSummary,
    one_line,
)
from tritonstack.preparation.prepare import Preparation, preparation_of_project
from tritonstack.preparation.recorded_orders import orders_of
from tritonstack.served import Served, served_by

LOG_SECONDS = 15.0
"""Seconds between two lines of an archive whose step has not changed."""


class ArchiveLines:
    """Progress lines of archives: at each new step, and now and then during one. Thread safe."""

    def __init__(self, console: Console | None = None, *, log_seconds: float = LOG_SECONDS) -> None:
        """Lines go to standard error, so that a command's own output stays clean."""
        self._console = console or SafeConsole(stderr=True, highlight=False)
        self._log_seconds = log_seconds
        self._started = time.monotonic()
        self._shown: dict[str, tuple[str, float]] = {}
        self._lock = threading.Lock()

    def say(self, archive: str, text: str) -> None:
        """Print an archive's step; a text that differs in its numbers only is the same step."""
        kind, now = re.sub(r"[\d.,]+", "", text), time.monotonic()
        with self._lock:
            before, when = self._shown.get(archive, ("", 0.0))
            if not text or (kind == before and now - when < self._log_seconds):
                return
            self._shown[archive] = (kind, now)
            line = Text.assemble((f"{now - self._started:6.0f} s  ", "dim"), (archive, "bold"), f"  {text}")
            self._console.print(line, soft_wrap=True)


def _work_rows(work: NeededWork) -> Iterator[tuple[ArchiveName, Place, str, dict[str, str | None]]]:
    """Each archive and place of the needed work, what is done, and from where or on which machine."""
    for item in work.there:
        yield item.name, item.place, item.outcome, {}
    for copy in work.copies:
        yield copy.name, copy.place, "copy", {"from": copy.source.archive(copy.name)}
    for build in work.builds:
        machine = build.builder.machine.name if build.builder else None
        for place in build.places:
            yield build.name, place, "build", {"machine": machine}


_SAID = {"from": " from ", "machine": ", engine on "}


def _prepared_document(summary: PrepareSummary, failures: Sequence[Failure] = ()) -> dict[str, Any]:
    rows = [
        _row(item.name, item.place, item.outcome)
        | {"seconds": round(item.seconds, 1), "from": item.source.archive(item.name) if item.source else None}
        for item in summary.archives
    ]
    return {"bucket": summary.bucket, "archives": rows, "failed": _failed(failures)}


def _row(name: ArchiveName, place: Place, outcome: str) -> dict[str, Any]:
    return {
        "endpoint": place.endpoint,
        "platform": str(place.platform),
        "model": name.model,
        "digest": name.digest,
        "outcome": outcome,
    }


def _failed(failures: Sequence[Failure]) -> list[dict[str, str]]:
    return [
        {"phase": one.phase, "model": one.name.model, "digest": one.name.digest, "reason": one.reason}
        for one in failures
    ]


RETRIES = Config(retries={"mode": "standard", "total_max_attempts": 6}, max_pool_connections=32)
"""A build of an hour must survive single failed AWS calls; a service that stays down ends it after ten seconds."""


@click.command("prepare", epilog="example: tritonstack prepare -e prod --dry-run")
@click.argument("endpoints", nargs=-1)
@environment_option("Name of the environment, whose file is environments/NAME.yaml.  [default: local]", default=None)
@click.option("--order", "order_url", help="Carry out this build order (s3://bucket/key), without an environment file.")
@click.option("--dry-run", is_flag=True, help="Only list what would be done.")
@json_option("Print JSON: every archive with its outcome.")
@local_option
def prepare_command(
    *,
    environment: str | None,
    endpoints: tuple[str, ...],
    order_url: str | None,
    dry_run: bool,
    as_json: bool,
    local: bool,
) -> None:
    """Build, copy and upload every archive that ENVIRONMENT's endpoints, or the named ENDPOINTS, need.

    Archives in the bucket are kept; archives of another platform or endpoint that fit are copied; others are built,
    TensorRT engines on the machines that `tritonstack builders` shows. A deployment does the same before it updates
    endpoints. Digests of release records are built from the inputs that the bucket keeps.
    """
    if order_url is not None and (environment is not None or endpoints):
        raise click.UsageError("--order names environment and endpoints itself: leave them out")
    with ended_by_signals():
        if order_url is not None:
            _prepare_order(order_url, dry_run=dry_run, as_json=as_json)
        else:
            _prepare_environment(environment or LOCAL, endpoints, local=local, dry_run=dry_run, as_json=as_json)


def _prepare_order(url: str, *, dry_run: bool, as_json: bool) -> None:
    try:
        order = _read_order(url, ConfiguredSession(AccountSession(None), RETRIES))
        session = ConfiguredSession(AccountSession(order.region), RETRIES)
        _prepare([order], session, dry_run=dry_run, as_json=as_json)
    except PrepareFailedError:
        raise
    except TritonstackError as error:
        # The last line has the form that a deployment reads.
        failed = TritonstackError(f"{error}\nFAILED in phase order of {url}: {one_line(error)}")
        failed.exit_code = error.exit_code
        raise failed from error


def _read_order(url: str, session: Session) -> Order:
    parts = urlsplit(url)
    if parts.scheme != "s3" or not parts.netloc or not parts.path.strip("/"):
        raise InputError([Problem(field="--order", found=url, allowed="s3://<bucket>/<key>")])
    try:
        answer = session.client("s3").get_object(Bucket=parts.netloc, Key=parts.path.lstrip("/"))
        content: bytes = answer["Body"].read()
    except (BotoCoreError, ClientError) as error:
        raise WorkFailedError(f"could not read {url}: {error}") from error
    return read_order(content, file=url)


def _prepare_environment(name: str, endpoints: Sequence[str], *, local: bool, dry_run: bool, as_json: bool) -> None:
    file = environment_file(name)
    settings = load_environment(file)
    served = served_by(settings, project_folder() / "model_repos", file=file)
    chosen = _chosen(served, endpoints, file=str(file))
    refuse_errors_of_environment(settings, models=sorted({model for one in chosen for model in one.models}))
    plain = session_of(settings, local=local)
    require_account(plain, settings)
    session = ConfiguredSession(plain, RETRIES)
    _prepare(orders_of(served, chosen, session=session), session, dry_run=dry_run, as_json=as_json)


def _chosen(served: Served, names: Sequence[str], *, file: str) -> tuple[EndpointSettings, ...]:
    """The named endpoints, or all. Raises :class:`InputError` for names that no endpoint has."""
    known = {endpoint.name: endpoint for endpoint in served.environment.endpoints}
    wrong = [
        Problem(
            file=file,
            field="endpoints",
            found=f"no endpoint {name}",
            allowed=listing(known),
            advice=nearest(name, known),
        )
        for name in dict.fromkeys(names)
        if name not in known
    ]
    refuse(wrong)
    return tuple(known[name] for name in dict.fromkeys(names)) or tuple(known.values())


def _prepare(orders: Sequence[Order], session: Session, *, dry_run: bool, as_json: bool) -> None:
    """Raises as ``Preparation.run``."""
    with preparation_of_project(orders, session=session, watch=ArchiveLines().say) as preparation:
        if dry_run:
            _show_needed_work(preparation, as_json=as_json)
            return
        try:
            summary = preparation.run()
        except PrepareFailedError as error:
            if as_json:
                print_json(_prepared_document(error.summary, error.failures))
            raise
    if as_json:
        print_json(_prepared_document(summary))
        return
    for item in summary.archives:
        echo(f"s3://{summary.bucket}/{item.place.archive(item.name)}  {item.outcome}")
    echo(str(summary))


def _show_needed_work(preparation: Preparation, *, as_json: bool) -> None:
    work = preparation.needed_work()
    rows = list(_work_rows(work))
    if as_json:
        archives = [_row(name, place, outcome) | more for name, place, outcome, more in rows]
        print_json({"archives": archives, "failed": _failed(work.refused)})
    else:
        lines = []
        for name, place, outcome, more in rows:
            how = "".join(f"{_SAID[key]}{value}" for key, value in more.items() if value)
            lines.append(f"{place.archive(name)}  {outcome}{how}")
        echo("\n".join([*sorted(lines), *map(str, work.refused)]) or "nothing to prepare")
    if work.refused:
        summary = PrepareSummary(bucket=preparation.bucket.name, archives=tuple(work.there))
        raise PrepareFailedError(work.refused, left=(), summary=summary)


KINDS = {"codebuild": "CodeBuild", "processing": "SageMaker Processing"}


@click.command("builders", epilog="example: tritonstack builders -e prod")
@environment_option()
@json_option("Print JSON: builds, and engines that cannot be built.")
def builders_command(*, environment: str, as_json: bool) -> None:
    """Show the machine, GPU and image that build the TensorRT engines of ENVIRONMENT, for each platform.

    Below are other GPUs that load an engine, and what trtexec measured of one that was built on this machine.
    Reads local files only. Exit code 2 where an engine cannot be built at all.
    """
    file = environment_file(environment)
    settings = load_environment(file)
    archives = resolved_models(settings, project_folder() / "model_repos", file=file)
    engines = engine_builds(settings, archives, file=file)
    sources = {source.name: source for found in archives.values() for source in found}
    measured = {build.builder.platform: _measured(build, sources) for build in engines.builds}
    if as_json:
        builds = [_build_row(build, measured[build.builder.platform]) for build in engines.builds]
        refused = [dataclasses.asdict(problem) for problem in engines.problems]
        print_json({"environment": environment, "builds": builds, "refused": refused})
    elif engines.builds:
        result_console().print(_builders_table(engines))
        for build in engines.builds:
            builder = build.builder
            echo(f"{builder.platform}: image {builder.image}, needs the quota {builder.machine.quota}")
            echo(f"{builder.platform}: {_driver(builder)}")
            for archive, gpus in build.compatible.items():
                others = f"load it, too, and take a copy of it: {', '.join(gpus)}" if gpus else "none"
                echo(f"{builder.platform}: {archive} is built for other GPUs as well, of the catalogue {others}")
            for archive, figures in measured.get(build.builder.platform, {}).items():
                for each in figures:
                    echo(f"{builder.platform}: {archive} {_speed(each)}")
    elif not engines.problems:
        echo(f"no archive of {environment} needs a TensorRT engine")
    refuse(engines.problems)


def _builders_table(engines: EngineBuilds) -> Table:
    rows = (
        (
            str(build.builder.platform),
            f"{KINDS[build.builder.kind]} {build.builder.machine.name} ({build.builder.machine.gpu})",
            build.builder.tensorrt or "read in the image",
            ", ".join(build.endpoints),
            listing(build.archives),
        )
        for build in engines.builds
    )
    return plain_table(("platform", "built on", "TensorRT", "endpoints", "engines"), rows)


def _driver(builder: Builder) -> str:
    """The driver that the image's CUDA needs, and the driver of the machine where AWS documents it."""
    needs = f"driver {builder.least_driver} or newer" if builder.least_driver else "a driver that is not known"
    cuda = f"CUDA {builder.cuda}" if builder.cuda else "a CUDA that is not known"
    of = f"the driver of {KINDS[builder.kind]}'s machines"
    there = f"{of} is {builder.machine.driver}" if builder.machine.driver else f"{of} is UNVERIFIED: AWS names none"
    return f"{cuda} needs {needs}, or NVIDIA's forward compatibility; {there}, and a build compares before it begins"


def _measured(build: EngineBuild, sources: Mapping[str, ArchiveSource]) -> dict[str, tuple[EngineMeasurement, ...]]:
    """Archive → what trtexec measured, of those that this machine built from the folders as they are."""
    places, target = Places.of_project(), str(build.builder.platform)
    if not places.archives_for(target).is_dir():
        return {}
    found = {}
    for name in build.archives:
        manifest = places.built(ArchiveName(model=name, digest=model_digest(sources[name])), target)
        if manifest is not None and (figures := measurements_of(manifest.figures)):
            found[name] = figures
    return found


def _speed(measured: EngineMeasurement) -> str:
    """A measurement in one line: ``profile 0, batch 16: 310 queries/s, 3.2 ms median, 3.9 ms p99``."""
    latency = ", ".join(
        f"{measured.latency[rank]:.4g} ms {rank}" for rank in ("median", "p99") if rank in measured.latency
    )
    throughput = f"{measured.throughput:.4g} queries/s"
    return f"trtexec measured, profile {measured.profile}, batch {measured.batch}: {throughput}, {latency}"


def _build_row(build: EngineBuild, measured: Mapping[str, tuple[EngineMeasurement, ...]]) -> dict[str, Any]:
    builder = build.builder
    return {
        "platform": str(builder.platform),
        "region": builder.region,
        "kind": builder.kind,
        "machine": builder.machine.name,
        "gpu": builder.machine.gpu,
        "compute_capability": builder.machine.compute_capability,
        "image": builder.image,
        "tensorrt": builder.tensorrt,
        "cuda": builder.cuda,
        "least_driver": builder.least_driver,
        "driver": builder.machine.driver,
        "quota": builder.machine.quota,
        "endpoints": list(build.endpoints),
        "archives": list(build.archives),
        "compatible_gpus": {archive: list(gpus) for archive, gpus in build.compatible.items()},
        "measured": {name: [each.model_dump() for each in found] for name, found in measured.items()},
    }
