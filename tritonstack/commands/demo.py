"""``tritonstack demo``."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from textwrap import fill
from typing import Any

import click
from botocore.exceptions import BotoCoreError, ClientError
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tritonstack.archives.places import Places
from tritonstack.archives.sample_files import built_sample_file
from tritonstack.archives.source import ArchiveSource
from tritonstack.client import ModelClient
from tritonstack.client.body import Array, Body, decode, encode
from tritonstack.client.files import InputFile, read_inputs
from tritonstack.commands.progress import Steps
from tritonstack.engines.served import served_by
from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.local.aws import LocalAws, require_local_aws
from tritonstack.local.container.server_release import release_and_version
from tritonstack.local.paths import REPOSITORY, project_folder
from tritonstack.settings import Endpoint, Environment, load_environment

SHOWN_VALUES = 4
LOADED_BEFORE = "-"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One model, called twice: milliseconds and bytes. ``cold_ms`` is None where the model was loaded before."""

    endpoint: str
    model: str
    target_model: str
    cold_ms: float | None
    warm_ms: float
    sent: int
    received: int
    answer: str
    request: Path
    asked_release: str
    answering_server: str


@click.command("demo")
@click.argument("environment", default="local")
@click.option("--endpoint", "only", help="This endpoint alone; without it, every multi-model endpoint.")
def command(*, environment: str, only: str | None) -> None:
    """Call every model of ENVIRONMENT's multi-model endpoints twice at the local AWS and print one table."""
    aws = require_local_aws()
    path = project_folder() / "environments" / f"{environment}.yaml"
    served = served_by(load_environment(path), project_folder() / "model_repos", file=path)
    settings = served.environment
    multi_model = [endpoint for endpoint in settings.endpoints if endpoint.mode == "multi-model"]
    endpoints = [endpoint for endpoint in multi_model if only in (None, endpoint.name)]
    if not endpoints:
        names = ", ".join(endpoint.name for endpoint in multi_model) or "at least one multi-model endpoint"
        raise InputError([Problem(file=str(path), field="endpoints", found=only or "none", allowed=names)])
    rows, steps = [], Steps()
    for endpoint in endpoints:
        for model in endpoint.models:
            with steps.step(f"call {endpoint.name}/{model} twice"):
                rows.append(call_twice(aws, settings, endpoint, served.sources[model]))
    console = Console(highlight=False)
    console.print(table_of(rows))
    console.print(how_to_go_on(aws, settings, rows), soft_wrap=True)


def call_twice(aws: LocalAws, settings: Environment, endpoint: Endpoint, source: ArchiveSource) -> Row:
    """Send a model its own sample request twice with boto3's ``invoke_endpoint``."""
    model = source.name
    names = ModelClient(environment=settings.environment, session=aws.session())
    target = str(names.resolve(f"{endpoint.name}/{model}").archive)
    request = built_sample_file(source, Places.of_project())
    table = names.tensor_table(f"{endpoint.name}/{model}")
    inputs = read_inputs([InputFile.parse(str(request))], table, fetch=names.client_files)
    body = encode(inputs, outputs=None, payload_format="auto")
    name = endpoint.sagemaker_name(settings.environment)
    loaded = target in loaded_models(fleet_of(aws, name))
    runtime = aws.client("sagemaker-runtime")
    first, _, _ = timed_call(runtime, endpoint=name, target=target, body=body)
    second, content, content_type = timed_call(runtime, endpoint=name, target=target, body=body)
    fleet = fleet_of(aws, name)
    return Row(
        endpoint=name,
        model=model,
        target_model=target,
        cold_ms=None if loaded else first,
        warm_ms=second,
        sent=len(body.content),
        received=len(content),
        answer=in_words(decode(content, content_type).outputs),
        request=request,
        asked_release=endpoint.release,
        answering_server=release_and_version(fleet["server_version"] or "unknown"),
    )


def timed_call(runtime: Any, *, endpoint: str, target: str, body: Body) -> tuple[float, bytes, str]:
    """One call with boto3: milliseconds until the whole answer was read, the answer, and its content type.

    Raises:
        WorkFailedError: it was not answered.
    """
    started = time.perf_counter()
    try:
        answer = runtime.invoke_endpoint(
            EndpointName=endpoint, TargetModel=target, ContentType=body.content_type, Body=body.content
        )
        content: bytes = answer["Body"].read()
    except (ClientError, BotoCoreError) as error:
        raise WorkFailedError(f"{endpoint} does not answer for {target}: {error}") from error
    return (time.perf_counter() - started) * 1000, content, str(answer["ContentType"])


def fleet_of(aws: LocalAws, endpoint: str) -> dict[str, Any]:
    """The serving fleet of an endpoint, as the runtime describes it."""
    found = next((one for one in aws.runtime_status()["endpoints"] if one["name"] == endpoint), None)
    fleets = [fleet for fleet in found["fleets"] if fleet["serving"]] if found else []
    if not fleets:
        raise InputError(
            [
                Problem(
                    found=f"endpoint {endpoint} serves nothing on the local AWS",
                    allowed="a deployed endpoint",
                    advice="tritonstack deploy-local",
                )
            ]
        )
    fleet: dict[str, Any] = fleets[0]
    return fleet


def loaded_models(fleet: dict[str, Any]) -> set[str]:
    """The TargetModels that a fleet has loaded."""
    return {model["target_model"] for model in fleet["models"] if model["state"] == "loaded"}


def in_words(outputs: dict[str, Array] | Any) -> str:
    """The short outputs in full; of the long ones the shape."""
    shown = []
    for name, array in outputs.items():
        values = array.ravel().tolist()
        short = ", ".join(str(value) for value in values) if len(values) <= SHOWN_VALUES else f"{list(array.shape)}"
        shown.append(f"{name} {short}")
    return "; ".join(shown)


def table_of(rows: list[Row]) -> Table:
    """The demo's one table; 80 columns hold it, with each TargetModel whole."""
    table = Table(
        title="Answered by a real Triton on this machine", title_justify="left", caption_justify="left",
        box=SIMPLE_HEAD, show_edge=False, padding=0, leading=1,
    )  # fmt: skip
    if any(row.cold_ms is None for row in rows):
        table.caption = f"cold {LOADED_BEFORE}: the model was loaded before"
    several = len({row.endpoint for row in rows}) > 1
    longest = max(len(row.target_model) for row in rows)
    table.add_column("model, its TargetModel,\nthe answer", no_wrap=True)
    for name in ("cold\nms", "warm\nms", "bytes\nsent", "bytes\nback", "release\nasked"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("release\nanswered", overflow="fold")
    for row in rows:
        cold = LOADED_BEFORE if row.cold_ms is None else f"{row.cold_ms:.0f}"
        answer = f"{row.endpoint}: {row.answer}" if several else row.answer
        table.add_row(
            Text.assemble((row.model, "bold"), f"\n{row.target_model}\n{fill(answer, longest)}"),
            cold, f"{row.warm_ms:.1f}", str(row.sent), str(row.received), row.asked_release, row.answering_server,
        )  # fmt: skip
    return table


def how_to_go_on(aws: LocalAws, settings: Environment, rows: list[Row]) -> str:
    """What a person may type next, with the first model whose sample is JSON."""
    programs = REPOSITORY / ".envs" / "main" / "bin"
    program, aws_cli = quote(shown(programs / "tritonstack")), quote(shown(programs / "aws"))
    down = "make down" if Path.cwd() == REPOSITORY else f"{program} down"
    lines = ["", "It stays up."]
    row = next((row for row in rows if row.request.suffix == ".json"), None)
    if row is not None:
        endpoints = [endpoint.name for endpoint in settings.endpoints if row.model in endpoint.models]
        name = (
            row.model if len(endpoints) == 1 else f"{row.endpoint.removeprefix(f'{settings.environment}-')}/{row.model}"
        )
        other = "" if settings.environment == "local" else f" --environment {settings.environment} --local"
        lines[-1] += " Call it with the AWS CLI:"
        lines += [
            f'  eval "$({program} env)"',
            f"  {aws_cli} sagemaker-runtime invoke-endpoint --endpoint-name {row.endpoint} \\",
            f"    --target-model {row.target_model} \\",
            f"    --content-type application/json --body {quote(f'fileb://{shown(row.request)}')} \\",
            "    answer.json && cat answer.json",
            "or by the model's name:",
            f"  {program} invoke {name} --input {quote(shown(row.request))}{other}",
        ]
    return "\n".join(
        [
            *lines,
            "Watch it:",
            f"  {program} status --watch",
            f"The AWS APIs answer at {aws.emulator_url}. Stop it: {down}",
        ]
    )


def shown(path: Path) -> str:
    """A path as a person would type it here."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
