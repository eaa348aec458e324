"""``tritonstack capacity bench --cloud`` and ``--gate``."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from tritonstack.catalogue.prices import HostingPrice
from tritonstack.cli.conventions import confirm, echo, print_json
from tritonstack.config import load_environment
from tritonstack.errors import InputError, Problem, collecting, refuse
from tritonstack.paths import LocalPaths, environment_file, project_folder
from tritonstack_capacity.bench.cloud_gate import hold, passes
from tritonstack_capacity.bench.results_folder import JSON, make_folder, read_results, results_file
from tritonstack_capacity.commands.bench_view import show

if TYPE_CHECKING:
    from tritonstack.config import Environment, GateSettings
    from tritonstack_capacity.bench.cloud.most_cost import MostCost
    from tritonstack_capacity.bench.document import BenchDocument


def run_cloud(
    environment: str,
    endpoints: Sequence[str],
    *,
    local: bool,
    folder: Path | None,
    as_json: bool,
    yes: bool = False,
    resume: str | None = None,
) -> int:
    """Run load tests on endpoints of ``environment``, print results; 1 where some are missing, or the gate fails.

    ``yes``: without the question whether what it costs at most may be spent. ``resume``: the id of a test that was
    interrupted, which this one goes on with.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - a gate needs no AWS

    from tritonstack.cli.session import require_account, session_of  # noqa: PLC0415
    from tritonstack.errors import WorkFailedError  # noqa: PLC0415
    from tritonstack.local_aws import is_local  # noqa: PLC0415
    from tritonstack.served import served_by  # noqa: PLC0415
    from tritonstack_capacity.bench.cloud.load_tests import CloudTests, by_kind, chosen_endpoints, require_load_test  # noqa: PLC0415

    file = environment_file(environment)
    settings = load_environment(file)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    target = folder or LocalPaths.from_environment().root / "bench" / f"{environment}-cloud-{stamp}"
    # Problems of files are reported before AWS is called, not at the end of a test of hours.
    load_test = require_load_test(settings)
    for kind in by_kind(chosen_endpoints(settings, endpoints)):
        make_folder(target / kind)
    served = served_by(settings, project_folder() / "model_repos", file=file) if load_test.archives_only else None
    session = session_of(settings, local=local)
    require_account(session, settings)
    at_home = is_local(session.client("s3"))
    command = " ".join(["tritonstack capacity bench --cloud", f"-e {environment}", *endpoints])
    command += f" --resume {resume}" if resume else ""
    ask = partial(_confirm_cost, local=at_home, yes=yes, command=f"{command} --yes")
    tests = CloudTests(
        settings, session=session, local=at_home, progress=partial(click.echo, err=True), ask=ask, served=served
    )
    try:
        with terminated_as_interrupted():
            fetched = tests.run(endpoints, target) if resume is None else tests.resume(resume, target)
    except (BotoCoreError, ClientError) as error:
        raise WorkFailedError(f"the load test failed: {error}") from error
    documents = [read_results(each.folder / JSON) for each in fetched]
    if as_json:
        print_json([one.model_dump(mode="json") for one in documents])
    else:
        for one, document in zip(fetched, documents, strict=True):
            show(document, one.folder)
    for each in fetched:
        if each.failed:
            echo(f"{each.kind}: {each.failed}", err=True)
    has_gate = settings.load_test is not None and settings.load_test.gate is not None
    code = _gate(documents, settings) if has_gate else 0
    return 1 if any(each.failed for each in fetched) else code


def _confirm_cost(cost: MostCost, *, local: bool, yes: bool, command: str) -> None:
    """Print what a test costs at most, and ask whether it may start. ``command``: the one that starts without asking.

    On the local AWS nothing is asked. Raises as ``confirm``.
    """
    for sentence in cost.sentences:
        click.echo(sentence, err=True)
    if local:
        click.echo("the local AWS makes no instance: nothing is billed", err=True)
    else:
        confirm("Start it?", yes=yes, command=command)


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """SIGTERM is Ctrl-C meanwhile: a CI that cancels this process has what runs remotely stopped, too."""

    def interrupt(number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt(signal.Signals(number).name)

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def run_gate(files: Sequence[Path], *, as_json: bool) -> int:
    """Hold results against the gates of their environments; 1 where they fail.

    Raises InputError: everything that keeps a file from being judged; then none is.
    """
    gated: list[tuple[BenchDocument, Environment]] = []
    problems: list[Problem] = []
    for file in files:
        with collecting(problems):
            document = read_results(results_file(file))
            settings = load_environment(environment_file(document.environment))
            _gate_of(settings)
            gated.append((document, settings))
    refuse(problems)
    return max(_gate([document], settings, as_json=as_json) for document, settings in gated)


def _gate_of(settings: Environment) -> GateSettings:
    """Raises InputError where there is none."""
    gate = None if settings.load_test is None else settings.load_test.gate
    if gate is None:
        file, allowed = (
            f"environments/{settings.environment}.yaml",
            "load_test: {gate: {p95_ms: …, usd_per_million: …}}",
        )
        raise InputError([Problem(file=file, field="load_test.gate", found="no gate", allowed=allowed)])
    return gate


def _gate(documents: Sequence[BenchDocument], settings: Environment, *, as_json: bool = False) -> int:
    gate = _gate_of(settings)
    taken: dict[str, HostingPrice] = {}

    def usd_per_hour(instance_type: str) -> float | None:
        price = settings.price(instance_type)
        if price is None:
            return None
        taken[instance_type] = price
        return price.usd_per_hour

    def deployed_on(model: str) -> str | None:
        endpoint = settings.endpoint(model.partition("/")[0])
        return None if endpoint is None else endpoint.instance_type

    lines = [
        line
        for document in documents
        for line in hold(document, gate, usd_per_hour=usd_per_hour, deployed_on=deployed_on)
    ]
    for line in lines:
        echo(f"{line.verdict}: {line.sentence}", err=True)
    for name, price in sorted(taken.items()):
        echo(f"{name} at {price.usd_per_hour:g} USD an hour: {price.short}", err=True)
    good = passes(lines, gate)
    if as_json:
        print_json({"environment": settings.environment, "passed": good, "lines": list(map(asdict, lines))})
    echo(f"gate of {settings.environment}: {'passed' if good else 'FAILED'}", err=True)
    return 0 if good else 1
