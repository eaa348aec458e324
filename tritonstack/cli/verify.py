"""``tritonstack verify``."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict

import click
from botocore.config import Config
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tritonstack.aws_session import ConfiguredSession
from tritonstack.cli.progress import Steps
from tritonstack.cli.session import local_option, session_of
from tritonstack.client.model_client import ModelClient
from tritonstack.client.releases import ModelReference, Release, ReleaseRecords
from tritonstack.config import Environment, load_environment
from tritonstack.paths import project_folder
from tritonstack.releases.verification import DAYS, VerifiedEndpoint, Verifier

PACED = Config(retries={"mode": "adaptive", "max_attempts": 10})
COLD = (
    "Each model was called once: an instance that did not get the call, or comes later, loads the model at its first "
    "call, and models of a multi-model endpoint may be unloaded again."
)


@click.command("verify")
@click.argument("environment")
@click.argument("models", nargs=-1, metavar="[[ENDPOINT/]MODEL]…")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@local_option
def command(*, environment: str, models: Sequence[str], as_json: bool, local: bool) -> int:
    """Ask every recorded model of ENVIRONMENT, or the MODELs, for the answer to its sample request.

    Each endpoint must run the config that its stack asks for; each record's archive must be there, and answer as its
    manifest expects, within the recipe's tolerance. Ends with 1 where something is not so.
    """
    settings = load_environment(project_folder() / "environments" / f"{environment}.yaml")
    session = session_of(settings, local=local)
    paced = ConfiguredSession(session, PACED)
    verifier = Verifier(environment, session=paced, client=ModelClient(environment=environment, session=session))
    records = ReleaseRecords(environment=environment, ssm=lambda: paced.client("ssm"), now=time.monotonic)
    releases = tuple(records.resolve(ModelReference.parse(name)) for name in models) or records.all()
    endpoints = {release.endpoint for release in releases}
    if not models:
        endpoints |= {endpoint.name for endpoint in settings.endpoints}
    verified, steps = [], Steps()
    for name in sorted(endpoints):
        with steps.step(f"verify {name}") as step:
            verified.append(verifier.endpoint(name, _of(releases, name), say=step.say))
            step.end_with(_summary(verified[-1]))
    if as_json:
        click.echo(json.dumps(as_document(environment, verified), indent=2))
    else:
        show(verified, settings)
    return 0 if all(endpoint.sound for endpoint in verified) else 1


def as_document(environment: str, verified: Sequence[VerifiedEndpoint]) -> dict[str, object]:
    """What ``--json`` prints."""
    return {
        "environment": environment,
        "sound": all(endpoint.sound for endpoint in verified),
        "endpoints": [
            {**asdict(endpoint), "sound": endpoint.sound, "slowest_load_seconds": endpoint.slowest_load}
            for endpoint in verified
        ],
    }


def show(verified: Sequence[VerifiedEndpoint], settings: Environment) -> None:
    """Print a table an endpoint, then what is wrong, in full, how long models load, and what was not looked at."""
    console = Console(highlight=False)
    for endpoint in verified:
        if endpoint.models:
            console.print(_table(endpoint))
    for endpoint in verified:
        if endpoint.problem:
            click.echo(f"{endpoint.endpoint}: {endpoint.problem}")
        for model in endpoint.models:
            if model.problem:
                click.echo(f"{endpoint.endpoint}/{model.model}: {model.problem}")
    for endpoint in verified:
        if endpoint.instances > 1:
            click.echo(f"{endpoint.endpoint} has {endpoint.instances} instances, and each call went to one of them.")
    for endpoint in verified:
        for line in loads(endpoint, settings):
            click.echo(line)
    if any(endpoint.models for endpoint in verified):
        click.echo(COLD)


def loads(endpoint: VerifiedEndpoint, settings: Environment) -> Iterator[str]:
    """How long a call waited for its model at most, and the setting of a rollout that is made for that figure."""
    measured = endpoint.loads
    if measured is None:
        return
    if measured.problem:
        yield f"{endpoint.endpoint}: its load times could not be read: {measured.problem}"
    slowest = endpoint.slowest_load
    if slowest is None:
        return
    parts = [("download", measured.download), ("load", measured.load)]
    told = " + ".join(f"{name} {seconds:.1f} s" for name, seconds in parts if seconds is not None)
    kept = f"slowest in {DAYS} days: {told}" if told else f"no load was measured in {DAYS} days"
    given = next((one.rollout for one in settings.endpoints if one.name == endpoint.endpoint), None)
    now = None if given is None else given.slowest_load_seconds
    needed = math.ceil(slowest)
    yield (
        f"{endpoint.endpoint}: a call waited {slowest:.1f} s at most ({kept}; or an answer just now). The setting "
        f"for it is rollout.slowest_load_seconds: {needed}"
        + ("." if now is None else f", which is {now:g}{': too short.' if now < slowest else '.'}")
    )


def _of(releases: Sequence[Release], endpoint: str) -> tuple[Release, ...]:
    return tuple(release for release in releases if release.endpoint == endpoint)


def _summary(endpoint: VerifiedEndpoint) -> str:
    failed = sum(bool(model.problem) for model in endpoint.models)
    said = f"{len(endpoint.models) - failed} of {len(endpoint.models)} models answer as expected"
    return endpoint.problem or said


def _table(endpoint: VerifiedEndpoint) -> Table:
    title = Text(f"{endpoint.endpoint} runs {endpoint.config or 'nothing that is known'}")
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("model", overflow="fold")
    table.add_column("digest", no_wrap=True)
    table.add_column("answer", no_wrap=True)
    for name in ("differs by", "ms"):
        table.add_column(name, justify="right", no_wrap=True)
    for model in endpoint.models:
        table.add_row(
            Text(model.model),
            model.digest,
            Text("wrong or none", style="red") if model.problem else Text("as expected", style="green"),
            "" if model.difference is None else f"{model.difference:.2g}",
            "" if model.milliseconds is None else f"{model.milliseconds:.0f}",
        )
    return table
