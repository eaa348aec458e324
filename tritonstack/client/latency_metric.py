"""End-to-end latency as a metric in CloudWatch: counted in the client, published where its user asks for it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack import aws_names, naming
from tritonstack.errors import WorkFailedError

VALUES_A_DATUM = 150
"""PutMetricData's limit of different values in one datum (CloudWatch API reference)."""
DATA_A_REQUEST = 100
"""Below its 1,000 metrics and 1 MB a request, whatever the names are long."""
SECONDS_A_MINUTE = 60


class Called(NamedTuple):
    """What a latency belongs to: SageMaker's names of endpoint and variant, and the model's name."""

    endpoint: str
    variant: str
    model: str

    def dimensions(self) -> Iterator[dict[str, str]]:
        """Dimensions of the two metrics: the variant's, as ModelLatency has them, and those of the model beside it."""
        variant = aws_names.variant_dimensions(self.endpoint, self.variant)
        yield variant
        yield {**variant, naming.MODEL_NAME: self.model}


class LatencyMetric:
    """Latencies that were not published yet, by minute, with three digits each. Thread safe.

    A publisher's latencies are in CloudWatch as ``EndToEndLatency`` of ``tritonstack/client``, milliseconds, with
    percentiles: once for the endpoint's variant, once for each model of it. Each of those is a custom metric, which
    CloudWatch bills by the month in which it has data.
    """

    def __init__(self, cloudwatch: Callable[[], Any], *, now: Callable[[], float]) -> None:
        """``cloudwatch``: its client; ``now``: seconds since 1970."""
        self._cloudwatch = cloudwatch
        self._now = now
        self._lock = threading.Lock()
        self._counts: dict[tuple[int, Called], Counter[float]] = {}

    def add(self, called: Called, milliseconds: float) -> None:
        """Count a response."""
        key = int(self._now() // SECONDS_A_MINUTE), called
        value = float(f"{milliseconds:.3g}")
        with self._lock:
            self._counts.setdefault(key, Counter())[value] += 1

    def publish(self) -> int:
        """Send what was counted since the last time; returns how many latencies that are.

        Raises WorkFailedError: CloudWatch does not take them. They count as sent: a part of them may be.
        """
        with self._lock:
            counts, self._counts = self._counts, {}
        data = [datum for (minute, called), counted in counts.items() for datum in _data(minute, called, counted)]
        for first in range(0, len(data), DATA_A_REQUEST):
            try:
                self._cloudwatch().put_metric_data(
                    Namespace=naming.CLIENT_METRICS, MetricData=data[first : first + DATA_A_REQUEST]
                )
            except (ClientError, BotoCoreError) as error:
                said = f"{naming.END_TO_END_LATENCY} of {naming.CLIENT_METRICS} cannot be published: {error}"
                advice = "grant_publish_latency gives the permission (tritonstack docs clients)"
                raise WorkFailedError(f"{said}\n  do: {advice}") from error
        return sum(counted.total() for counted in counts.values())


def _data(minute: int, called: Called, counted: Counter[float]) -> Iterator[dict[str, Any]]:
    items = sorted(counted.items())
    for dimensions in called.dimensions():
        for first in range(0, len(items), VALUES_A_DATUM):
            part = items[first : first + VALUES_A_DATUM]
            yield {
                "MetricName": naming.END_TO_END_LATENCY,
                "Dimensions": aws_names.dimension_list(dimensions),
                "Timestamp": datetime.fromtimestamp(minute * SECONDS_A_MINUTE, tz=UTC),
                "Unit": "Milliseconds",
                "Values": [value for value, _ in part],
                "Counts": [float(count) for _, count in part],
            }
