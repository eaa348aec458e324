"""What SageMaker measured of an endpoint meanwhile, and what callers measured, told to CloudWatch on request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.errors import WorkFailedError
from tritonstack_capacity.bench.samples import Numbers

NAMESPACE = "AWS/SageMaker"
CUSTOM_NAMESPACE = "tritonstack/client"
CUSTOM_METRIC = "EndToEndLatency"
METRICS = ("ModelLatency", "OverheadLatency")
VALUES_A_DATUM = 150
"""The most that PutMetricData takes in one datum."""


@dataclass(frozen=True, kw_only=True)
class EndpointFigures:
    """Milliseconds, over whole minutes.

    Attributes:
        metric: ``ModelLatency``: the container with its network; ``OverheadLatency``: SageMaker's own part.
        invocations: how many it is of.
    """

    metric: str
    invocations: int
    mean_ms: float
    p50_ms: float
    p95_ms: float
    p99_ms: float


def dimensions(endpoint: str, variant: str) -> list[dict[str, str]]:
    """Of a production variant's metrics."""
    return [{"Name": "EndpointName", "Value": endpoint}, {"Name": "VariantName", "Value": variant}]


def endpoint_figures(
    cloudwatch: Any, *, endpoint: str, variant: str, begin: datetime, end: datetime
) -> tuple[EndpointFigures, ...]:
    """SageMaker's latencies of the minutes from ``begin`` to ``end``; empty where it has none yet, or none are given.

    A minute's figures come a minute or two after it (SageMaker developer guide, CloudWatch metrics).
    """
    start = begin.replace(second=0, microsecond=0)
    stop = end.replace(second=0, microsecond=0) + timedelta(minutes=1)
    period = int((stop - start).total_seconds())
    found = []
    for metric in METRICS:
        asked = {
            "Namespace": NAMESPACE,
            "MetricName": metric,
            "Dimensions": dimensions(endpoint, variant),
            "StartTime": start,
            "EndTime": stop,
            "Period": period,
        }
        try:
            simple = cloudwatch.get_metric_statistics(**asked, Statistics=["SampleCount", "Average"])["Datapoints"]
            shares = ["p50", "p95", "p99"]
            extended = cloudwatch.get_metric_statistics(**asked, ExtendedStatistics=shares)["Datapoints"]
        except (ClientError, BotoCoreError):
            return ()
        if not simple or not extended:
            continue
        values = extended[0]["ExtendedStatistics"]
        found.append(
            EndpointFigures(
                metric=metric,
                invocations=int(simple[0]["SampleCount"]),
                mean_ms=simple[0]["Average"] / 1000,
                **{f"{share}_ms": values[share] / 1000 for share in shares},
            )
        )
    return tuple(found)


def publish_latencies(
    cloudwatch: Any, latencies_ms: Numbers, *, endpoint: str, variant: str, model: str, at: datetime | None = None
) -> int:
    """Put end-to-end latencies as a custom metric, counted in steps of 1 %. Returns how many.

    Raises:
        WorkFailedError: CloudWatch does not take them.
    """
    counted: dict[float, int] = {}
    for value in latencies_ms:
        rounded = float(f"{value:.3g}")
        counted[rounded] = counted.get(rounded, 0) + 1
    named = [*dimensions(endpoint, variant), {"Name": "Model", "Value": model}]
    items = sorted(counted.items())
    for first in range(0, len(items), VALUES_A_DATUM):
        datum = {
            "MetricName": CUSTOM_METRIC,
            "Dimensions": named,
            "Timestamp": at or datetime.now(UTC),
            "Unit": "Milliseconds",
            **_counts(items[first : first + VALUES_A_DATUM]),
        }
        try:
            cloudwatch.put_metric_data(Namespace=CUSTOM_NAMESPACE, MetricData=[datum])
        except (ClientError, BotoCoreError) as error:
            raise WorkFailedError(f"{CUSTOM_NAMESPACE} {CUSTOM_METRIC} cannot be published: {error}") from error
    return len(latencies_ms)


def _counts(items: Sequence[tuple[float, int]]) -> dict[str, list[float]]:
    return {"Values": [value for value, _ in items], "Counts": [float(count) for _, count in items]}
