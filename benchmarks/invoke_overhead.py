"""What the local runtime adds to a request: ``digits-onnx`` straight at a container, and through the runtime.

Both ways end in a real Triton, started from the same container environment with the same archive; the client of
``tritonstack capacity bench`` sends both, in turns.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvloop

from benchmarks.local_stack import local_stack
from benchmarks.measuring import CALLERS, Ask, Loads, compared, ratio
from benchmarks.results import Figure, machine, tell
from benchmarks.scenarios.models import Model
from benchmarks.scenarios.served import TARGET_MODEL, TIMEOUT_SECONDS, Served, Way, served
from tritonstack.client.body import Body
from tritonstack.client.model_client import ModelClient
from tritonstack.client.releases import Release
from tritonstack.naming import endpoint_name
from tritonstack.paths import REPOSITORY
from tritonstack_capacity.bench.http_caller import HttpCaller, ReadyRequest, http_caller
from tritonstack_capacity.bench.subject import describe_endpoint
from tritonstack_local.aws import LocalAws
from tritonstack_local.container import ContainerSettings
from tritonstack_local.trtexec.launchers import release_of

ENVIRONMENT, ENDPOINT, MODEL = "local", "digits", "digits-onnx"
SAMPLE = REPOSITORY / "model_repos" / MODEL / "sample"
ROUNDS = 9
ADDED_MS = 1.0
KEPT = 0.70


def main() -> int:
    """Measure. Returns 0 where both bounds are kept, 1 where one is missed; raises where it could not run."""
    stated = machine()
    with local_stack() as aws, direct_container(aws) as (container, release):
        direct, through = uvloop.run(_loads(aws, container, release))
    return tell("invoke-overhead", figures(direct, through), machine=stated)


async def _loads(aws: LocalAws, container: Served, release: Release) -> list[Loads]:
    name = endpoint_name(environment=ENVIRONMENT, endpoint=ENDPOINT)
    request = ReadyRequest(
        url=f"http://127.0.0.1:{aws.runtime_port}/endpoints/{name}/invocations",
        headers={"Content-Type": "application/json", TARGET_MODEL: str(release.archive)},
        body=(SAMPLE / "request.json").read_bytes(),
    )
    async with (
        container.caller(CALLERS) as direct,
        http_caller(lambda: request, connections=CALLERS, timeout_seconds=TIMEOUT_SECONDS) as through,
    ):
        return await compared((checked(direct),) * 2, (checked(through),) * 2, rounds=ROUNDS)


def checked(caller: HttpCaller) -> Ask:
    """Requests whose responses must have the sample's digit."""
    label = label_of((SAMPLE / "answer.json").read_bytes())

    async def ask() -> str | None:
        failure = await caller()
        if failure is None and (caller.last is None or label_of(caller.last[0]) != label):
            return f"a response without the digit {label}: {caller.last!r:.300}"
        return failure

    return ask


def label_of(response: bytes) -> int:
    """The digit in a response."""
    outputs = {output["name"]: output["data"] for output in json.loads(response)["outputs"]}
    return int(outputs["label"][0])


def figures(direct: Loads, through: Loads) -> list[Figure]:
    """The medians over the rounds of each round's difference and ratio."""
    added = statistics.median(two - one for one, two in zip(direct.ms, through.ms, strict=True))
    kept = ratio(through.rates, direct.rates)
    return [
        Figure("median request straight to the container", statistics.median(direct.ms), "ms"),
        Figure("median request through the runtime", statistics.median(through.ms), "ms"),
        Figure("the runtime adds", added, "ms", ADDED_MS),
        Figure(f"straight, {CALLERS} callers", statistics.median(direct.rates), "/s"),
        Figure(f"through the runtime, {CALLERS} callers", statistics.median(through.rates), "/s"),
        Figure("throughput kept, times that straight", kept, "times", KEPT, at_least=True),
    ]


@contextmanager
def direct_container(aws: LocalAws) -> Iterator[tuple[Served, Release]]:
    """A container like the deployed endpoint's, with the model's current archive loaded."""
    release = current_release(aws)
    name = endpoint_name(environment=ENVIRONMENT, endpoint=ENDPOINT)
    deployed = describe_endpoint(aws.client("sagemaker"), name)[2]["PrimaryContainer"]
    settings = ContainerSettings(
        environment=deployed["Environment"], multi_model=True, release=release_of(deployed["Image"])
    )
    with tempfile.TemporaryDirectory(prefix="invoke-overhead-") as folder:
        archive = Path(folder) / "archive.tar.gz"
        bucket, _, prefix = deployed["ModelDataUrl"].removeprefix("s3://").partition("/")
        aws.client("s3").download_file(bucket, f"{prefix}{release.archive}", str(archive))
        body = Body(content=(SAMPLE / "request.json").read_bytes(), content_type="application/json")
        model = Model(archive=archive, name=MODEL, body=body)
        way = Way(name="the container", model=lambda _folder: model, settings=settings)
        with served(way, model) as container:
            yield container, release


def current_release(aws: LocalAws) -> Release:
    """The model's current release."""
    return ModelClient(environment=ENVIRONMENT, session=aws.session()).resolve(f"{ENDPOINT}/{MODEL}")
