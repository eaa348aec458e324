"""What the local runtime adds to a call: ``digits-onnx`` straight at a container, and through the runtime.

Both ways end in a real Triton, started from the same container environment with the same archive; the same
asynchronous client calls both, in turns.
"""

from __future__ import annotations

import http.client
import json
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.load_client import Round, Target, connect_loopback, http_request, in_turns, measured
from benchmarks.local_stack import local_stack
from benchmarks.results import Figure, machine, tell
from tritonstack.client.releases import Release, ReleaseRecords
from tritonstack.errors import WorkFailedError
from tritonstack.naming import endpoint_name
from tritonstack.paths import REPOSITORY
from tritonstack.unpacking import UnpackLimits, unpack
from tritonstack_local.aws import LocalAws
from tritonstack_local.container import ContainerSettings, TritonContainer, prepare_model_data
from tritonstack_local.runtime.container import release_of

ENVIRONMENT, ENDPOINT, MODEL = "local", "digits", "digits-onnx"
TARGET_MODEL = "X-Amzn-SageMaker-Target-Model"
ROUNDS = 9
CALLS = 400
CALLERS = 16
SECONDS = 2.0
ADDED_MS = 1.0
KEPT = 0.70


def main() -> int:
    """Measure. Returns 0 where both bounds are kept, 1 where one is missed; raises where it could not run."""
    stated = machine()
    with local_stack() as aws, direct_container(aws) as (container, release):
        body = (REPOSITORY / "model_repos" / MODEL / "sample" / "request.json").read_bytes()
        expected = (REPOSITORY / "model_repos" / MODEL / "sample" / "answer.json").read_bytes()
        ways = targets(container, release, runtime_port=aws.runtime_port, body=body, label=label_of(expected))
        rounds = in_turns(*(partial(_measured, way) for way in ways), rounds=ROUNDS)
        versions = {"triton": container.server_version or "unknown", "isolation": container.isolation}
    return tell("invoke-overhead", figures(rounds), machine=stated, versions=versions)


def _measured(way: Target) -> tuple[float, float]:
    return uvloop.run(measured(way, callers=CALLERS, calls=CALLS, seconds=SECONDS))


def targets(
    container: TritonContainer, release: Release, *, runtime_port: int, body: bytes, label: int
) -> tuple[Target, Target]:
    """The same request straight at the container and through the runtime."""
    headers = {"Content-Type": "application/json", TARGET_MODEL: str(release.archive)}
    name = endpoint_name(environment=ENVIRONMENT, endpoint=ENDPOINT)
    right = partial(has_label, label=label)
    inside = http_request(f"/models/{release.digest}/invoke", body, headers)
    outside = http_request(f"/endpoints/{name}/invocations", body, headers)
    return (
        Target(name="the container", connect=container.connect, request=inside, right=right),
        Target(name="the runtime", connect=partial(connect_loopback, runtime_port), request=outside, right=right),
    )


def label_of(answer: bytes) -> int:
    """The digit in an answer."""
    outputs = {output["name"]: output["data"] for output in json.loads(answer)["outputs"]}
    return int(outputs["label"][0])


def has_label(answer: bytes, *, label: int) -> bool:
    """Whether an answer names that digit."""
    return label_of(answer) == label


def figures(rounds: list[Round]) -> list[Figure]:
    """The medians over the rounds of each round's difference and ratio."""

    def median(of: Callable[[Round], float]) -> float:
        return statistics.median(map(of, rounds))

    kept = median(lambda one: one.through_rate / one.direct_rate)
    return [
        Figure("median call straight to the container", median(lambda one: one.direct_ms), "ms"),
        Figure("median call through the runtime", median(lambda one: one.through_ms), "ms"),
        Figure("the runtime adds", median(lambda one: one.through_ms - one.direct_ms), "ms", ADDED_MS),
        Figure(f"straight, {CALLERS} callers", median(lambda one: one.direct_rate), "/s"),
        Figure(f"through the runtime, {CALLERS} callers", median(lambda one: one.through_rate), "/s"),
        Figure("throughput kept, times that straight", kept, "times", KEPT, at_least=True),
    ]


@contextmanager
def direct_container(aws: LocalAws) -> Iterator[tuple[TritonContainer, Release]]:
    """A container like the deployed endpoint's, with the model's current archive loaded."""
    ssm = aws.client("ssm")
    records = ReleaseRecords(environment=ENVIRONMENT, ssm=lambda: ssm, now=lambda: 0.0)
    release = next(found for found in records.all() if (found.endpoint, found.model) == (ENDPOINT, MODEL))
    deployed = deployed_container(aws)
    with tempfile.TemporaryDirectory(prefix="invoke-overhead-") as name:
        folder = Path(name)
        bucket, _, prefix = deployed["ModelDataUrl"].removeprefix("s3://").partition("/")
        aws.client("s3").download_file(bucket, f"{prefix}{release.archive}", str(folder / "archive.tar.gz"))
        settings = ContainerSettings(
            environment=deployed["Environment"], multi_model=True, release=release_of(deployed["Image"])
        )
        with TritonContainer.start(settings, folder=folder / "container") as container:
            container.wait_ready(60)
            load(container, release, folder / "archive.tar.gz")
            yield container, release


def deployed_container(aws: LocalAws) -> Any:
    """The container definition of the endpoint's model, as SageMaker describes it."""
    sagemaker = aws.client("sagemaker")
    endpoint = sagemaker.describe_endpoint(EndpointName=endpoint_name(environment=ENVIRONMENT, endpoint=ENDPOINT))
    config = sagemaker.describe_endpoint_config(EndpointConfigName=endpoint["EndpointConfigName"])
    return sagemaker.describe_model(ModelName=config["ProductionVariants"][0]["ModelName"])["PrimaryContainer"]


def load(container: TritonContainer, release: Release, archive: Path) -> None:
    """Unpack and load the archive as SageMaker does."""
    folder = container.model_folder(release.digest)
    folder.parent.mkdir(parents=True)
    unpack(archive, folder, limits=UnpackLimits(max_bytes=2**33, max_members=10_000))
    prepare_model_data(folder)
    connection = http.client.HTTPConnection("localhost")
    connection.sock = container.connect()
    body = json.dumps({"model_name": release.digest, "url": container.model_url(release.digest)})
    connection.request("POST", "/models", body, {TARGET_MODEL: str(release.archive)})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    if answer.status != 200:
        raise WorkFailedError(f"the container did not load {release.archive}: {answer.status} {text}")
