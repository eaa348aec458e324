"""What the local runtime adds to a request: ``digits-onnx`` straight at a container, and through the runtime.

Every way ends in a real Triton, started from the same container environment with the same archive; the client of
``tritonstack capacity bench`` sends all, in turns. A third way is a runtime that checks no caller: the difference is
what IAM costs.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager
from pathlib import Path

import uvloop
from botocore.config import Config

from benchmarks.local_stack import local_stack, runtime_without_iam
from benchmarks.measuring import CALLERS, Ask, Figure, Loads, compared, ratio, tell
from benchmarks.scenarios.models import Model
from benchmarks.scenarios.served import TIMEOUT_SECONDS, Served, Way, served
from tritonstack.client.body import Body
from tritonstack.client.errors import InvokeTarget
from tritonstack.client.model_client import ModelClient
from tritonstack.client.releases import ModelRelease
from tritonstack.naming import endpoint_name
from tritonstack.paths import REPOSITORY
from tritonstack_capacity.bench.http_caller import HttpCaller, SignedRequests, http_caller
from tritonstack_capacity.bench.subject import describe_endpoint
from tritonstack_local.aws import LocalAws
from tritonstack_local.container import ContainerSettings
from tritonstack_local.trtexec.launchers import release_of

ENVIRONMENT, ENDPOINT, MODEL = "local", "digits", "digits-onnx"
SAMPLE = REPOSITORY / "model_repos" / MODEL / "sample"
ROUNDS = 9
ADDED_MS = 1.0
KEPT = 0.70
CHECK_MS = 0.2
"""The most that the check of a request's caller may add."""


def main() -> int:
    """Measure. Returns 0 where every bound is kept, 1 where one is missed; raises where it could not run."""
    name = endpoint_name(environment=ENVIRONMENT, endpoint=ENDPOINT)
    with (
        local_stack() as aws,
        runtime_without_iam(aws, name) as unchecked,
        direct_container(aws) as (container, release),
    ):
        loads = uvloop.run(
            _loads(container, (aws, unchecked), InvokeTarget(endpoint_name=name, target_model=str(release.archive)))
        )
    return tell("invoke-overhead", figures(*loads))


async def _loads(container: Served, runtimes: Sequence[LocalAws], target: InvokeTarget) -> list[Loads]:
    async with AsyncExitStack() as callers:
        ways = [await callers.enter_async_context(container.caller(CALLERS))]
        ways += [await callers.enter_async_context(invoking(aws, target)) for aws in runtimes]
        return await compared(*((checked(way),) * 2 for way in ways), rounds=ROUNDS)


def invoking(aws: LocalAws, target: InvokeTarget) -> AbstractAsyncContextManager[HttpCaller]:
    """Signed InvokeEndpoint requests with the sample."""
    requests = SignedRequests(aws.client("sagemaker-runtime", config=Config()))
    body = Body(content=(SAMPLE / "request.json").read_bytes(), content_type="application/json")
    return http_caller(lambda: requests.make(target, body), connections=CALLERS, timeout_seconds=TIMEOUT_SECONDS)


def checked(caller: HttpCaller) -> Ask:
    """Requests whose responses must have the sample's digit."""
    label = label_of((SAMPLE / "answer.json").read_bytes())

    async def request() -> str | None:
        failure = await caller()
        if failure is None and (caller.last is None or label_of(caller.last[0]) != label):
            return f"a response without the digit {label}: {caller.last!r:.300}"
        return failure

    return request


def label_of(response: bytes) -> int:
    """The digit in a response."""
    outputs = {output["name"]: output["data"] for output in json.loads(response)["outputs"]}
    return int(outputs["label"][0])


def figures(direct: Loads, through: Loads, unchecked: Loads) -> list[Figure]:
    """The medians over the rounds of each round's difference and ratio; ``unchecked``: without IAM."""
    added, check = (
        statistics.median(two - one for one, two in zip(less.ms, through.ms, strict=True))
        for less in (direct, unchecked)
    )
    kept = ratio(through.rates, direct.rates)
    return [
        Figure("median request straight to the container", statistics.median(direct.ms), "ms"),
        Figure("median request through the runtime", statistics.median(through.ms), "ms"),
        Figure("the runtime adds", added, "ms", ADDED_MS),
        Figure("of it, the check of the caller (IAM)", check, "ms", CHECK_MS),
        Figure(f"straight, {CALLERS} callers", statistics.median(direct.rates), "/s"),
        Figure(f"through the runtime, {CALLERS} callers", statistics.median(through.rates), "/s"),
        Figure("throughput, times that without IAM", ratio(through.rates, unchecked.rates), "times"),
        Figure("throughput kept, times that straight", kept, "times", KEPT, at_least=True),
    ]


@contextmanager
def direct_container(aws: LocalAws) -> Iterator[tuple[Served, ModelRelease]]:
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


def current_release(aws: LocalAws) -> ModelRelease:
    """The model's current release."""
    return ModelClient(environment=ENVIRONMENT, session=aws.session()).resolve(f"{ENDPOINT}/{MODEL}")
