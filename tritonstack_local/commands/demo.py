"""``tritonstack local demo``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shlex import quote
from textwrap import fill
from typing import Any

import click
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from tritonstack.cli.conventions import LOCAL, environment_option, json_option, print_json, result_console
from tritonstack.cli.progress import Steps
from tritonstack.client import ModelClient
from tritonstack.client.body import Array
from tritonstack.config import EndpointSettings, Environment, load_environment
from tritonstack.errors import InputError, Problem, listing, nearest
from tritonstack.lint.registry import shown
from tritonstack.models.source import ArchiveSource
from tritonstack.paths import CHECKOUT, REPOSITORY, project_folder
from tritonstack.releases.records import deployed_set
from tritonstack.releases.verification import SampleResponse, Verifier
from tritonstack.served import served_by
from tritonstack_local.aws import LocalAws, require_local_aws
from tritonstack_local.container.container import release_and_version

SHOWN_VALUES = 4
NONE = "-"
TIMES = (
    "Milliseconds from boto3's invoke_endpoint to the last byte, on this machine's CPU: a GPU's are others. Cold: the "
    "archive was fetched, unpacked and loaded first, after the unload of what was evicted for it. What was loaded and "
    "evicted is what the local runtime reports (tritonstack local status)."
)


@dataclass(frozen=True, kw_only=True)
class Request:
    """A model's own sample request, as an endpoint takes it."""

    endpoint: str
    model: str
    target_model: str
    send: Callable[[], SampleResponse]
    file: str  # as shown; empty where an export makes it


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request with its response, and the models that it loaded and unloaded by the runtime's status."""

    cold: bool
    evicted: frozenset[str]
    answer: SampleResponse


@dataclass(kw_only=True)
class Row:
    """One model: two requests, and one more where it was evicted. Milliseconds; None where there was no request."""

    request: Request
    answer: str
    cold_ms: float | None
    warm_ms: float | None
    evicted_by: str | None = None
    again_ms: float | None = None


@click.command("demo", epilog="example: tritonstack local demo --endpoint models")
@environment_option()
@click.option("--endpoint", "only", help="Invoke this endpoint alone.  [default: every multi-model endpoint]")
@json_option()
def command(*, environment: str, only: str | None, as_json: bool) -> None:
    """Send two requests to every model of ENVIRONMENT's multi-model endpoints at the local AWS; an evicted one a third.

    Prints one table: how long a model takes that must be loaded first, how long a loaded one, and what evicted which.
    """
    aws = require_local_aws()
    path = project_folder() / "environments" / f"{environment}.yaml"
    served = served_by(load_environment(path), project_folder() / "model_repos", file=path)
    settings = served.environment
    multi_model = [endpoint for endpoint in settings.endpoints if endpoint.mode == "multi-model"]
    endpoints = [endpoint for endpoint in multi_model if only in (None, endpoint.name)]
    if not endpoints:
        names = [endpoint.name for endpoint in multi_model]
        allowed = listing(names, none="at least one multi-model endpoint")
        advice = nearest(only or "", names)
        problem = Problem(file=str(path), field="endpoints", found=only or "none", allowed=allowed, advice=advice)
        raise InputError([problem])
    rows, held, steps = [], [], Steps()
    for endpoint in endpoints:
        requests = [request_of(aws, settings, endpoint, served.sources[model]) for model in endpoint.models]
        rows += call_models(aws, requests, steps)
        held.append(held_by(endpoint, fleet_of(aws, requests[0].endpoint)))
    if as_json:
        print_json([document_of(row) for row in rows])
        return
    console = result_console()
    console.print(table_of(rows))
    console.print("\n".join(["", *held, TIMES]))
    console.print(how_to_go_on(aws, settings, rows), soft_wrap=True)


def document_of(row: Row) -> dict[str, Any]:
    """A row of ``--json``."""
    asked = {name: getattr(row.request, name) for name in ("endpoint", "model", "target_model")}
    answered = {name: getattr(row, name) for name in ("answer", "cold_ms", "warm_ms", "evicted_by")}
    return {**asked, **answered, "cold_again_ms": row.again_ms}


def request_of(aws: LocalAws, settings: Environment, endpoint: EndpointSettings, source: ArchiveSource) -> Request:
    """The sample request of a model's current release."""
    environment, session = settings.environment, aws.session()
    client = ModelClient(environment=environment, session=session)
    release = client.resolve(f"{endpoint.name}/{source.name}")
    deployed = deployed_set(session, environment=environment, endpoint=endpoint.name)
    if deployed is None:
        raise not_serving(endpoint.name)
    file = source.folder / source.recipe.sample.request
    return Request(
        endpoint=endpoint.sagemaker_name(environment),
        model=source.name,
        target_model=str(release.archive),
        send=partial(Verifier(environment, session=session, client=client).ask, release, deployed),
        file=shown(file) if file.is_file() else "",
    )


def call_models(aws: LocalAws, requests: Sequence[Request], steps: Steps) -> list[Row]:
    """Send two requests to each model of an endpoint; then one more to the first that was evicted."""
    rows: dict[str, Row] = {}

    def note_evicted(*calls: Call, by: str) -> None:
        for target in frozenset[str]().union(*(each.evicted for each in calls)) & rows.keys():
            rows[target].evicted_by = by

    for request in requests:
        with steps.step(f"send {request.endpoint}/{request.model} two requests"):
            first, second = call(aws, request), call(aws, request)
        rows[request.target_model] = Row(
            request=request,
            answer=in_words(second.answer.outputs),
            cold_ms=first.answer.milliseconds if first.cold else None,
            warm_ms=None if second.cold else second.answer.milliseconds,
        )
        note_evicted(first, second, by=request.model)
    evicted = next((row for row in rows.values() if row.evicted_by), None)
    if evicted is not None:
        request = evicted.request
        with steps.step(f"send {request.endpoint}/{request.model} one more, which {evicted.evicted_by} evicted"):
            third = call(aws, request)
        evicted.again_ms = third.answer.milliseconds if third.cold else None
        note_evicted(third, by=request.model)
    return list(rows.values())


def call(aws: LocalAws, request: Request) -> Call:
    """One request, and the models that were loaded before and after it. Raises InvokeError: it failed."""

    def loaded() -> set[str]:
        models = fleet_of(aws, request.endpoint)["models"]
        return {model["target_model"] for model in models if model["state"] == "loaded"}

    before, answer = loaded(), request.send()
    return Call(answer=answer, cold=request.target_model not in before, evicted=frozenset(before - loaded()))


def fleet_of(aws: LocalAws, endpoint: str) -> dict[str, Any]:
    """The serving fleet of an endpoint, as the runtime describes it."""
    endpoints = [each for each in aws.runtime_status()["endpoints"] if each["name"] == endpoint]
    fleets: list[dict[str, Any]] = [fleet for each in endpoints for fleet in each["fleets"] if fleet["serving"]]
    if not fleets:
        raise not_serving(endpoint)
    return fleets[0]


def not_serving(endpoint: str) -> InputError:
    """The refusal of an endpoint that is not there."""
    found = f"endpoint {endpoint} serves nothing on the local AWS"
    return InputError([Problem(found=found, allowed="a deployed endpoint", advice="tritonstack local deploy")])


def in_words(outputs: Mapping[str, Array]) -> str:
    """The short outputs in full; of the long ones the shape."""
    shown = []
    for name, array in outputs.items():
        values = array.ravel().tolist()
        short = ", ".join(str(value) for value in values) if len(values) <= SHOWN_VALUES else f"{list(array.shape)}"
        shown.append(f"{name} {short}")
    return "; ".join(shown)


def held_by(endpoint: EndpointSettings, fleet: Mapping[str, Any]) -> str:
    """An endpoint's server, the models that it may hold, and how many it has loaded and unloaded so far."""
    limit = fleet["max_loaded_models"]
    most = "no limit is set (local: max_loaded_models), so that none is evicted"
    if limit is not None:
        most = f"at most {limit} loaded at once (local: max_loaded_models, which stands in for the GPU's memory)"
    models = "model" if len(endpoint.models) == 1 else "models"
    return (
        f"Endpoint {endpoint.name}: release {endpoint.release} requested, "
        f"served by Triton {release_and_version(fleet['server_version'] or 'unknown')}. "
        f"{len(endpoint.models)} {models}, {most}; {fleet['loads']} loads and {fleet['unloads']} unloads so far."
    )


def table_of(rows: list[Row]) -> Table:
    """The demo's one table; 80 columns hold it, with each TargetModel whole."""
    table = Table(
        title="Served by a real Triton on this machine", title_justify="left",
        box=SIMPLE_HEAD, show_edge=False, padding=0, leading=1,
    )  # fmt: skip
    several = len({row.request.endpoint for row in rows}) > 1
    longest = max(len(row.request.target_model) for row in rows)
    table.add_column("model, its TargetModel,\nthe response", no_wrap=True)
    for name in ("cold\nms", "warm\nms"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column(" evicted\n by", overflow="fold")
    table.add_column("cold\nagain", justify="right", no_wrap=True)
    for row in rows:
        answer = f"{row.request.endpoint}: {row.answer}" if several else row.answer
        table.add_row(
            Text.assemble((row.request.model, "bold"), f"\n{row.request.target_model}\n{fill(answer, longest)}"),
            figure(row.cold_ms, 0), figure(row.warm_ms, 1), f" {row.evicted_by or NONE}", figure(row.again_ms, 0),
        )  # fmt: skip
    return table


def figure(milliseconds: float | None, digits: int) -> str:
    """A time, or that there is none."""
    return NONE if milliseconds is None else f"{milliseconds:.{digits}f}"


def how_to_go_on(aws: LocalAws, settings: Environment, rows: list[Row]) -> str:
    """Commands to try next, with the first model whose sample is JSON."""
    programs = REPOSITORY / ".envs" / "main" / "bin"
    program = quote(shown(programs / "tritonstack"))
    aws_cli = quote(shown(programs / "aws")) if (programs / "aws").exists() else "aws"
    down = "make down" if Path.cwd() == CHECKOUT else f"{program} local down"
    lines = ["", "It stays up."]
    request = next((row.request for row in rows if row.request.file.endswith(".json")), None)
    if request is not None:
        name = f"{request.endpoint.removeprefix(f'{settings.environment}-')}/{request.model}"
        other = "" if settings.environment == LOCAL else f" -e {settings.environment} --local"
        lines[-1] += " Invoke it with the AWS CLI:"
        lines += [
            f'  eval "$({program} local env)"',
            f"  {aws_cli} sagemaker-runtime invoke-endpoint --endpoint-name {request.endpoint} \\",
            f"    --target-model {request.target_model} \\",
            f"    --content-type application/json --body {quote(f'fileb://{request.file}')} \\",
            "    response.json && cat response.json",
            "or by the model's name:",
            f"  {program} invoke {name} --input {quote(request.file)}{other}",
        ]
    lines += ["Watch it:", f"  {program} local status --watch"]
    return "\n".join([*lines, f"The AWS APIs are served at {aws.emulator_url}. Stop it: {down}"])
