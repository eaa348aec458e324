"""The results of a load test: the document and its schema, rows of measurements.csv, notes."""

from __future__ import annotations

import csv
import hashlib
import io
import math
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import Field, TypeAdapter

from tritonstack.catalogue import load_catalogue
from tritonstack.client.body import Body
from tritonstack.lint.instances import UNLIKE
from tritonstack.models.model_config import read_config
from tritonstack_capacity.bench.measuring import DocumentPart, PointPart, StreamPart, UtilizationPart
from tritonstack_capacity.bench.settings import BenchSettings
from tritonstack_capacity.bench.subject import Subject
from tritonstack_capacity.csv_file import CONFIGURATION, GPUS, INSTANCE_TYPE, LATENCY, RATE, THIS_MACHINE

EVERY_LOAD = "every load was measured"
"""How a test ends that nothing stopped."""


class EndpointPart(DocumentPart):
    """SageMaker's measurements of the whole test, milliseconds."""

    metric: str = Field(description="ModelLatency or OverheadLatency.")
    invocations: int
    mean_ms: float
    p50_ms: float
    p95_ms: float
    p99_ms: float


class ColdPart(DocumentPart):
    """First calls to archives that no instance had loaded."""

    milliseconds: list[float]
    failures: list[str]


class ResultPart(DocumentPart):
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
    container_parameters: dict[str, str] = Field(
        {}, description="Environment variables that Inference Recommender set in the container, beside the model's own."
    )
    server_version: str | None = Field(None, description="Of Triton; null where it is in the cloud.")
    way: Literal["endpoint", "container"]
    generator: str
    payload_format: Literal["binary", "json"]
    payload: str = Field(description="Where the request comes from.")
    request_bytes: int
    request_sha256: str | None = Field(None, description="Of the request's bytes.")
    answer_bytes: int
    first_call_ms: float | None = Field(
        description="The first request of all, which may have loaded the model; null where there was no response."
    )
    cold: ColdPart | None
    calls: int = Field(0, description="Every request that was sent: first ones, warm-ups and loads.")
    points: list[PointPart]
    endpoint_figures: list[EndpointPart]
    utilization: UtilizationPart | None = Field(
        None, description="Of the whole test: the highest minute of the busiest instance, locally the highest load."
    )
    published: int = Field(0, description="Latencies that CloudWatch got as EndToEndLatency.")
    ended_by: str = Field(description="Why no more load followed.")
    failed: bool = Field(False, description="Whether it was cut short.")

    @property
    def model(self) -> str:
        """The model's name without its endpoint."""
        return self.name.rpartition("/")[2]


class BenchDocument(DocumentPart):
    """Results of `tritonstack capacity bench`."""

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
    settings: dict[str, Any] = Field(description="All options of the command, defaults included.")
    results: list[ResultPart]


UNDER_WAY = "under way"
"""What stands for the reason of the end, until there is one."""


def result_part(subject: Subject, body: Body, *, local: bool, container: bool) -> ResultPart:
    """A result without a figure of a load.

    ``local``: on the local AWS; ``container``: straight at its container.
    """
    target, manifest = subject.target, subject.manifest or {}
    return ResultPart(
        configuration=subject.configuration,
        name=target.name,
        endpoint=target.call.endpoint_name,
        archive=str(target.release.archive),
        archive_sha256=manifest.get("archive", {}).get("sha256"),
        config=dict(manifest.get("configs", {})),
        variant=target.variant,
        instance_type=THIS_MACHINE if local else target.instance_type or "unknown",
        instance_count=1 if local else target.instance_count or 1,
        image=target.image,
        way="container" if container else "endpoint",
        generator="aiohttp, one process",
        payload_format=subject.payload_format,
        payload=subject.payload.source,
        request_bytes=len(body.content),
        request_sha256=hashlib.sha256(body.content).hexdigest(),
        answer_bytes=0,
        first_call_ms=None,
        cold=None,
        points=[],
        endpoint_figures=[],
        ended_by=UNDER_WAY,
    )


def settings_part(settings: BenchSettings) -> dict[str, Any]:
    """The settings as JSON has them."""
    found: dict[str, Any] = TypeAdapter(BenchSettings).dump_python(settings, mode="json")
    return found


UTILIZATION_COLUMNS = {
    "cpu_percent": "cpu_utilization",
    "memory_percent": "memory_utilization",
    "gpu_percent": "gpu_utilization",
    "gpu_memory_percent": "gpu_memory_utilization",
}
"""Field of ``UtilizationPart`` → column, per cent."""
OWN_COLUMNS = ("latency_percentile", "load", "stable", "payload_format", "way", *UTILIZATION_COLUMNS.values())
"""Not in the published table."""
OPTIMISATION = ("model_optimization", "dynamic_batching", "instance_group_config")
COLUMNS = (CONFIGURATION, *OPTIMISATION, INSTANCE_TYPE, "vcpus", GPUS, RATE, LATENCY, *OWN_COLUMNS)
ABSENT = "NA"


def measurements_csv(document: BenchDocument) -> str:
    """A row for each measured model and format: the load with the most responses, among those within the limit.

    Where a stop latency was set, only loads within it count, and a result without one has the row of its lowest
    latency: `tritonstack capacity size` then reports that it misses the limit.
    """
    stop = document.settings["stop"]
    percentile = f"{document.settings['rule']['percentile']:g}"
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for result in document.results:
        point = best_point(result, percentile=percentile, limit_ms=stop["latency_ms"])
        if point is not None:
            several = sum(each.configuration == result.configuration for each in document.results) > 1
            name = f"{result.configuration}-{result.payload_format}" if several else result.configuration
            writer.writerow(dict(_row(result, point, name=name, percentile=percentile)))
    return text.getvalue()


def best_point(result: ResultPart, *, percentile: str, limit_ms: float | None) -> PointPart | None:
    """The load with the most responses within the limit, else with the lowest latency; None without responses."""
    answered = [point for point in result.points if point.all.percentiles_ms]
    latency = {id(point): point.all.percentiles_ms[percentile] for point in answered}
    within = [point for point in answered if limit_ms is None or latency[id(point)] <= limit_ms]
    if within:
        return max(within, key=lambda point: point.all.per_minute)
    return min(answered, key=lambda point: latency[id(point)], default=None)


def _row(result: ResultPart, point: PointPart, *, name: str, percentile: str) -> Iterator[tuple[str, str]]:
    instance = load_catalogue().instance(result.instance_type)
    columns = _config_columns(addressed_config(result.config, result.name))
    yield CONFIGURATION, name
    yield from columns.items()
    yield INSTANCE_TYPE, result.instance_type
    yield "vcpus", ABSENT if instance is None else str(instance.vcpu)
    yield GPUS, ABSENT if instance is None else str(instance.gpu_count)
    yield RATE, f"{point.all.per_minute / result.instance_count:.1f}"
    yield LATENCY, f"{point.all.percentiles_ms[percentile]:.2f}"
    yield "latency_percentile", f"p{percentile} end to end"
    yield "load", point.load
    yield "stable", "Yes" if point.stable else "No"
    yield "payload_format", result.payload_format
    yield "way", result.way
    used = utilization_at(result, point)
    for field, column in UTILIZATION_COLUMNS.items():
        value = getattr(used, field, None)
        yield column, ABSENT if value is None else f"{value:.1f}"


def utilization_at(result: ResultPart, point: PointPart) -> UtilizationPart | None:
    """A load's utilization; the whole test's where it has no minute of its own. None where neither was measured."""
    return point.utilization or result.utilization


def addressed_config(config: Mapping[str, str], name: str) -> str:
    """The addressed model's ``config.pbtxt``: that of its own name, else the first; empty without any."""
    return config.get(name.rpartition("/")[2], next(iter(config.values()), ""))


def _config_columns(config: str) -> dict[str, str]:
    """Backend, batching and instances of a ``config.pbtxt``."""
    node = read_config(config).node
    counts = [count for group in node.nodes("instance_group") if (count := group.integer("count"))]
    known = bool(node.scalars or node.messages)
    return {
        "model_optimization": node.text("platform") or node.text("backend") or ABSENT,
        "dynamic_batching": ("Yes" if node.nodes("dynamic_batching") else "No") if known else ABSENT,
        "instance_group_config": str(counts[0]) if counts else ABSENT,
    }


LATE_SHARE = 0.1
"""Of the median latency: where calls began later than that after they were due, latencies are the generator's too."""


COMPLETED = "COMPLETED"
"""Status of a recommendation job that reached its end."""


def is_recommended(document: BenchDocument) -> bool:
    """Whether the figures are Inference Recommender's: one load a result, and no percentiles."""
    return "recommender" in document.settings


def where(document: BenchDocument) -> str:
    """On which machine a test ran."""
    if is_recommended(document):
        if document.local:
            return "Constructed responses of the local AWS: nothing was measured."
        return "Measured by SageMaker Inference Recommender, at the most invocations that it found."
    host = document.machine
    machine = f"{host['processor']}, {host['cores']} cores, {host['memory']}, load before {host['load_before']}"
    if document.local:
        return f"This machine serves and calls: {machine}. No figure of a GPU."
    return f"Called from {machine}."


def notes(document: BenchDocument) -> list[str]:
    """Notes on each result, and on models that share an endpoint."""
    return [*(line for result in document.results for line in _notes(result)), *_unlike(document)]


def _unlike(document: BenchDocument) -> Iterator[str]:
    """Endpoints where a model takes much longer than another, each at the load with its least median."""
    found: dict[str, dict[str, float]] = {}
    for result in document.results:
        of_endpoint = found.setdefault(result.endpoint, {})
        for median in (point.all.percentiles_ms.get("50") for point in result.points):
            if median is not None:
                of_endpoint[result.configuration] = min(median, of_endpoint.get(result.configuration, math.inf))
    for endpoint, medians in found.items():
        slow, fast = (pick(medians, key=medians.__getitem__, default="") for pick in (max, min))
        if slow and medians[slow] >= UNLIKE * medians[fast]:
            yield (
                f"{endpoint}: {slow} takes {medians[slow]:.3g} ms (p50) and {fast} {medians[fast]:.3g} ms: requests of "
                f"{fast} take longer while it computes. Give {slow} an endpoint of its own, or one with models like it."
            )


UTILIZATION_NAMES = {
    "cpu_percent": "CPU",
    "memory_percent": "memory",
    "gpu_percent": "GPU",
    "gpu_memory_percent": "GPU memory",
}


def _utilization_line(part: UtilizationPart) -> str:
    known = {name: getattr(part, field) for field, name in UTILIZATION_NAMES.items()}
    values = ", ".join(f"{name} {value:.3g} %" for name, value in known.items() if value is not None)
    return f"highest utilization: {values} (100 % is one vCPU or GPU; {part.source})"


def _stream_line(part: StreamPart) -> str:
    first, gap = (
        ", ".join(f"{share} {each[share[1:]]:.4g}" for share in ("p50", "p95") if share[1:] in each)
        for each in (part.first_ms, part.gap_ms)
    )
    rest = f", then one every {gap} ms" if gap else ""
    return (
        f"first event after {first} ms{rest}; {part.events:.4g} events a response, "
        f"{part.events_per_second:.4g} a second in all"
    )


def _notes(result: ResultPart) -> Iterator[str]:
    """Why it ended, its cold starts, what SageMaker measured, and the failure of each load that was most frequent."""
    name = f"{result.configuration} ({result.payload_format})"
    if result.ended_by not in (EVERY_LOAD, COMPLETED):
        yield f"{name}: {result.ended_by}"
    if result.first_call_ms is not None and result.cold is not None:
        times = ", ".join(f"{value:,.0f}" for value in result.cold.milliseconds) or "none"
        yield f"{name}: cold starts {times} ms; first request {result.first_call_ms:,.0f} ms"
    if result.cold is not None and result.cold.failures:
        yield f"{name}: cold starts that failed: {len(result.cold.failures)}, {result.cold.failures[0]}"
    for each in result.endpoint_figures:
        yield (
            f"{name}: {each.metric} p50 {each.p50_ms:.4g}, p95 {each.p95_ms:.4g}, p99 {each.p99_ms:.4g} ms "
            f"of the {each.invocations:,} requests that are counted in those minutes; this test sent {result.calls:,}"
        )
    if result.utilization is not None:
        yield f"{name}: {_utilization_line(result.utilization)}"
    for point in result.points:
        if point.stream is not None:
            yield f"{name}: {point.load}: {_stream_line(point.stream)}"
        worst = max(point.failures.items(), key=lambda item: item[1], default=None)
        if worst is not None:
            yield f"{name}: {point.load}: {worst[1]} times {worst[0]}"
        if point.all.late_ms > LATE_SHARE * point.all.percentiles_ms.get("50", math.inf):
            late = f"{point.all.late_ms:.3g} ms late (p99)"
            yield f"{name}: {point.load}: requests began up to {late}: beyond the generator"
