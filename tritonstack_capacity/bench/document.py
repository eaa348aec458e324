"""The results as a document: everything that is needed to repeat them. Its schema has a version."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

THIS_MACHINE = "this-machine"
"""What stands for the instance type of a local endpoint: no type of SageMaker's has this processor."""

EVERY_LOAD = "every load was measured"
"""How a test ends that nothing stopped."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class FiguresPart(_Part):
    """Some time of load. Latencies are milliseconds, of right answers alone, from when each call was due."""

    seconds: float
    answered: int = Field(description="Right answers.")
    failed: int = Field(description="Calls without one.")
    per_minute: float = Field(description="Right answers a minute.")
    mean_ms: float | None
    least_ms: float | None
    most_ms: float | None
    percentiles_ms: dict[str, float] = Field(description="Percentile → latency, linear between the nearest calls.")
    late_ms: float = Field(description="99th percentile of how much later than due calls began: the generator's share.")


class IntervalPart(_Part):
    """A mean over rounds, and half the width of its confidence interval (Student's t)."""

    mean: float
    half_width: float | None = Field(description="Null where one round says nothing of it.")


class ServerPart(_Part):
    """What Triton itself counted meanwhile of one of its models, milliseconds a request."""

    model: str
    requests: int
    mean_batch: float = Field(description="Inferences in one execution.")
    request_ms: float
    queue_ms: float
    input_ms: float
    compute_ms: float
    output_ms: float


class PointPart(_Part):
    """A load and what it came to."""

    load: str = Field(description="In words: 4 users; 50/s poisson.")
    users: int | None = Field(description="Of a closed loop.")
    rate_per_second: float | None = Field(description="Of an open loop, as it was asked for.")
    stable: bool = Field(description="Whether the rounds agree as the settings ask for.")
    per_minute: IntervalPart
    latency_ms: IntervalPart | None = Field(description="Of the settings' percentile, over the rounds.")
    all: FiguresPart = Field(description="All rounds' calls together.")
    rounds: list[FiguresPart]
    failures: dict[str, int] = Field(description="What went wrong → how often, warm-up included.")
    server: list[ServerPart] = Field(
        description="Triton's own figures of the load, its warm-up included; of a local endpoint alone."
    )


class EndpointPart(_Part):
    """What SageMaker measured of the whole test, milliseconds."""

    metric: str = Field(description="ModelLatency or OverheadLatency.")
    invocations: int
    mean_ms: float
    p50_ms: float
    p95_ms: float
    p99_ms: float


class ColdPart(_Part):
    """First calls to archives that no instance had loaded."""

    milliseconds: list[float]
    failures: list[str]


class ResultPart(_Part):
    """One model in one payload format."""

    configuration: str
    name: str = Field(description="As [endpoint/]model.")
    endpoint: str = Field(description="SageMaker's name of it.")
    archive: str = Field(description="The archive, whose name carries the digest of its inputs.")
    archive_sha256: str | None = Field(description="Of its bytes, from its manifest; null where that cannot be read.")
    config: dict[str, str] = Field(description="Directory in the archive → its config.pbtxt, from the manifest.")
    variant: str | None
    instance_type: str = Field(description=f"{THIS_MACHINE} for a local endpoint, whatever type it was deployed with.")
    instance_count: int
    image: str | None
    server_version: str | None = Field(None, description="Of Triton; null where it is in the cloud.")
    way: Literal["endpoint", "container"]
    generator: str
    payload_format: Literal["binary", "json"]
    payload: str = Field(description="Where the request comes from.")
    request_bytes: int
    request_sha256: str | None = Field(None, description="Of the request's bytes.")
    answer_bytes: int
    first_call_ms: float | None = Field(
        description="The first call of all, which may have loaded the model; null where there was no answer."
    )
    cold: ColdPart | None
    calls: int = Field(0, description="Every call that was made: to begin with, of warm-ups and of loads.")
    points: list[PointPart]
    endpoint_figures: list[EndpointPart]
    published: int = Field(description="How many latencies CloudWatch was told.")
    ended_by: str = Field(description="Why no more load followed.")
    failed: bool = Field(False, description="Whether it came to an end that nobody asked for.")


class BenchDocument(_Part):
    """What `tritonstack capacity bench` found."""

    schema_version: Literal[1] = 1
    complete: bool = Field(description="False while the test runs, and where it was interrupted.")
    started: str
    ended: str | None
    environment: str
    local: bool = Field(description="On the local AWS: figures are of this machine's processor.")
    machine: dict[str, str] = Field(description="Of the load generator; of a local endpoint the server's too.")
    versions: dict[str, str]
    seed: int
    command: list[str] = Field([], description="The command's words, as they were typed.")
    settings: dict[str, Any] = Field(description="Everything the command was told, defaults included: see --repeat.")
    results: list[ResultPart]
