"""What the local runtime adds to a call: ``digits-onnx`` straight at a container, and through the runtime.

Both ways end in a real Triton, started from the same container environment with the same archive; the same
asynchronous client calls both, in turns.
"""

from __future__ import annotations

import functools
import http.client
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.load_client import Target, connect_loopback, http_request, latencies, open_connections, throughput
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


@dataclass(frozen=True, kw_only=True)
class Round:
    """One round: the median latency in ms and the answers a second of each way."""

    direct_ms: float
    runtime_ms: float
    direct_rate: float
    runtime_rate: float


def main() -> int:
    """Measure. Returns 0 where both bounds are kept, 1 where one is missed; raises where it could not run."""
    stated = machine()
    with local_stack() as aws, direct_container(aws) as (container, release):
        body = (REPOSITORY / "model_repos" / MODEL / "sample" / "request.json").read_bytes()
        expected = (REPOSITORY / "model_repos" / MODEL / "sample" / "answer.json").read_bytes()
        ways = targets(container, release, runtime_port=aws.runtime_port, body=body, label=label_of(expected))
        rounds = uvloop.run(measure(*ways))
        versions = {"triton": container.server_version or "unknown", "isolation": container.isolation}
    return tell("invoke-overhead", figures(rounds), machine=stated, versions=versions)


def targets(
    container: TritonContainer, release: Release, *, runtime_port: int, body: bytes, label: int
) -> tuple[Target, Target]:
    """The same request straight at the container and through the runtime."""
    headers = {"Content-Type": "application/json", TARGET_MODEL: str(release.archive)}
    name = endpoint_name(environment=ENVIRONMENT, endpoint=ENDPOINT)
    right = functools.partial(has_label, label=label)
    return (
        Target(
            name="the container",
            connect=container.connect,
            request=http_request(f"/models/{release.digest}/invoke", body, headers),
            right=right,
        ),
        Target(
            name="the runtime",
            connect=lambda: connect_loopback(runtime_port),
            request=http_request(f"/endpoints/{name}/invocations", body, headers),
            right=right,
        ),
    )


def label_of(answer: bytes) -> int:
    """The digit in an answer."""
    outputs = {output["name"]: output["data"] for output in json.loads(answer)["outputs"]}
    return int(outputs["label"][0])


def has_label(answer: bytes, *, label: int) -> bool:
    """Whether an answer names that digit."""
    return label_of(answer) == label


async def measure(direct: Target, runtime: Target) -> list[Round]:
    """All rounds, the two ways in turns; which one comes first changes from round to round."""
    ways = {way.name: (way, await open_connections(way, CALLERS)) for way in (direct, runtime)}
    rounds = []
    for number in range(ROUNDS):
        order = [direct.name, runtime.name] if number % 2 == 0 else [runtime.name, direct.name]
        medians, rates = {}, {}
        for name in order:
            way, connections = ways[name]
            medians[name] = statistics.median(await latencies(way, connections[0], calls=CALLS))
        for name in order:
            way, connections = ways[name]
            rates[name] = await throughput(way, connections, seconds=SECONDS)
        rounds.append(
            Round(
                direct_ms=medians[direct.name],
                runtime_ms=medians[runtime.name],
                direct_rate=rates[direct.name],
                runtime_rate=rates[runtime.name],
            )
        )
    for _, connections in ways.values():
        for connection in connections:
            connection.close()
    return rounds


def figures(rounds: list[Round]) -> list[Figure]:
    """The medians over the rounds of each round's difference and ratio."""
    added = statistics.median(one.runtime_ms - one.direct_ms for one in rounds)
    kept = statistics.median(one.runtime_rate / one.direct_rate for one in rounds)
    direct_ms = statistics.median(one.direct_ms for one in rounds)
    runtime_ms = statistics.median(one.runtime_ms for one in rounds)
    return [
        Figure(what="median call straight to the container", value=direct_ms, unit="ms"),
        Figure(what="median call through the runtime", value=runtime_ms, unit="ms"),
        Figure(what="the runtime adds", value=added, unit="ms", bound=ADDED_MS),
        Figure(
            what=f"straight, {CALLERS} callers", value=statistics.median(one.direct_rate for one in rounds), unit="/s"
        ),
        Figure(
            what=f"through the runtime, {CALLERS} callers",
            value=statistics.median(one.runtime_rate for one in rounds),
            unit="/s",
        ),
        Figure(what="throughput kept, times that straight", value=kept, unit="times", bound=KEPT, at_least=True),
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


if __name__ == "__main__":
    sys.exit(main())
