"""``tritonstack demo``."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import click
from botocore.exceptions import ClientError
from rich.console import Console
from rich.table import Table

from tritonstack.archives.recipe import read_recipe
from tritonstack.client import ModelClient
from tritonstack.client.body import Array, Body, decode, encode
from tritonstack.client.files import InputFile, read_inputs
from tritonstack.commands.progress import Steps
from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.local.aws import LocalAws, require_local_aws
from tritonstack.local.paths import project_folder
from tritonstack.settings import Endpoint, Environment, load_environment

SHOWN_VALUES = 4


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
    asked_release: str
    answering_server: str


@click.command("demo")
@click.argument("environment", default="local")
@click.option("--endpoint", "only", help="This endpoint alone; without it, every multi-model endpoint.")
def command(*, environment: str, only: str | None) -> None:
    """Call every model of ENVIRONMENT's multi-model endpoints twice at the local AWS and print one table."""
    aws = require_local_aws()
    path = project_folder() / "environments" / f"{environment}.yaml"
    settings = load_environment(path)
    multi_model = [endpoint for endpoint in settings.endpoints if endpoint.mode == "multi-model"]
    endpoints = [endpoint for endpoint in multi_model if only in (None, endpoint.name)]
    if not endpoints:
        names = ", ".join(endpoint.name for endpoint in multi_model) or "at least one multi-model endpoint"
        raise InputError([Problem(file=str(path), field="endpoints", found=only or "none", allowed=names)])
    rows, steps = [], Steps()
    for endpoint in endpoints:
        for model in endpoint.models:
            with steps.step(f"call {endpoint.name}/{model} twice"):
                rows.append(call_twice(aws, settings, endpoint, model))
    console = Console(highlight=False)
    console.print(table_of(rows))
    console.print(how_to_go_on(aws, rows[0]), soft_wrap=True)


def call_twice(aws: LocalAws, settings: Environment, endpoint: Endpoint, model: str) -> Row:
    """Send a model its own sample request twice with boto3's ``invoke_endpoint``."""
    names = ModelClient(environment=settings.environment, session=aws.session())
    target = str(names.resolve(f"{endpoint.name}/{model}").archive)
    body = sample_body(names, endpoint, model)
    name = endpoint.sagemaker_name(settings.environment)
    loaded = target in loaded_models(fleet_of(aws, name))
    runtime = aws.client("sagemaker-runtime")
    first, answer = timed_call(runtime, endpoint=name, target=target, body=body)
    second, answer = timed_call(runtime, endpoint=name, target=target, body=body)
    content = answer["Body"].read()
    fleet = fleet_of(aws, name)
    return Row(
        endpoint=name,
        model=model,
        target_model=target,
        cold_ms=None if loaded else first,
        warm_ms=second,
        sent=len(body.content),
        received=len(content),
        answer=in_words(decode(content, answer["ContentType"]).outputs),
        asked_release=endpoint.release,
        answering_server=fleet["server_version"] or "unknown",
    )


def sample_body(names: ModelClient, endpoint: Endpoint, model: str) -> Body:
    """The request that the model's recipe gives as its sample."""
    folder = project_folder() / "model_repos" / model
    request = folder / read_recipe(folder).sample.request
    inputs = read_inputs([InputFile.parse(str(request))], names.tensor_table(f"{endpoint.name}/{model}"))
    return encode(inputs, outputs=None, payload_format="auto")


def timed_call(runtime: Any, *, endpoint: str, target: str, body: Body) -> tuple[float, Any]:
    """One call with boto3. Returns milliseconds and botocore's answer. Raises WorkFailedError where it has none."""
    started = time.perf_counter()
    try:
        answer = runtime.invoke_endpoint(
            EndpointName=endpoint, TargetModel=target, ContentType=body.content_type, Body=body.content
        )
    except ClientError as error:
        raise WorkFailedError(f"{endpoint} does not answer for {target}: {error}") from error
    return (time.perf_counter() - started) * 1000, answer


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
    return {model["target_model"] for model in fleet["models"]}


def in_words(outputs: dict[str, Array] | Any) -> str:
    """The short outputs in full; of the long ones the shape."""
    shown = []
    for name, array in outputs.items():
        values = array.ravel().tolist()
        short = ", ".join(str(value) for value in values) if len(values) <= SHOWN_VALUES else f"{list(array.shape)}"
        shown.append(f"{name} {short}")
    return "; ".join(shown)


def table_of(rows: list[Row]) -> Table:
    """The demo's one table."""
    table = Table(title="Answered by a real Triton on this machine", title_justify="left")
    for name in ("model", "TargetModel", "answer"):
        table.add_column(name, overflow="fold")
    for name in ("cold ms", "warm ms", "bytes sent", "received", "release asked", "server that answered"):
        table.add_column(name, justify="right")
    for row in rows:
        cold = "loaded before" if row.cold_ms is None else f"{row.cold_ms:.0f}"
        table.add_row(
            row.model, row.target_model, row.answer, cold, f"{row.warm_ms:.1f}", str(row.sent), str(row.received),
            row.asked_release, row.answering_server,
        )  # fmt: skip
    return table


def how_to_go_on(aws: LocalAws, row: Row) -> str:
    """What a person may type next."""
    program = ".envs/main/bin/tritonstack"
    request = f"model_repos/{row.model}/sample/request.json"
    return (
        "\nIt stays up. Call it with the AWS CLI:\n"
        f'  eval "$({program} env)"\n'
        f"  .envs/main/bin/aws sagemaker-runtime invoke-endpoint --endpoint-name {row.endpoint} \\\n"
        f"    --target-model {row.target_model} \\\n"
        f"    --content-type application/json --body fileb://{request} /dev/stdout\n"
        f"or by the model's name:\n"
        f"  {program} invoke {row.model} --input {request}\n"
        f"  {program} status --watch\n"
        f"The AWS APIs answer at {aws.emulator_url}. Stop it: make down"
    )
