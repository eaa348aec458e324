"""CloudWatch metrics of endpoints, counted per request, model and fleet."""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from tritonstack import aws_names
from tritonstack.loopback.http_server import InvokeError

GROWTH = 1.02
_PER_NEPER = 1.0 / math.log(GROWTH)


class Histogram:
    """Counts of positive values. A value read back is at most 1 % off."""

    __slots__ = ("count", "counts")

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()
        self.count = 0

    def add(self, value: float) -> None:
        """Count one value; values below 1 count as 1."""
        self.counts[int(math.log(value) * _PER_NEPER) if value > 1.0 else 0] += 1
        self.count += 1

    def values(self) -> list[tuple[float, int]]:
        """Each bucket's middle and its count, smallest first."""
        return [(_middle(bucket), count) for bucket, count in sorted(self.counts.items())]

    @classmethod
    def sum(cls, parts: Iterable[Histogram]) -> Histogram:
        """All values of several histograms."""
        total = cls()
        for part in parts:
            total.counts.update(part.counts)
            total.count += part.count
        return total

    def percentile(self, share: float) -> float | None:
        """The value below which ``share`` (0..1) of the values lie, or None without values."""
        wanted, seen = share * self.count, 0
        for bucket, count in sorted(self.counts.items()):
            seen += count
            if seen >= wanted and count:
                return _middle(bucket)
        return None


def _middle(bucket: int) -> float:
    return 1.0 if bucket == 0 else GROWTH ** (bucket + 0.5)


# Names, units and dimensions: developer guide, monitoring-cloudwatch and deployment-guardrails-configuration (a
# fleet's own figures carry EndpointConfigName too). GPUUtilization and GPUMemoryUtilization are not written: there is
# no GPU.
NOT_WRITTEN = "GPUUtilization, GPUMemoryUtilization: no GPU on this machine"
SHARED = (aws_names.LOADED_MODEL_COUNT, aws_names.CPU_UTILIZATION)
OF_MODELS = (
    aws_names.MODEL_DOWNLOADING_TIME,
    aws_names.MODEL_LOADING_TIME,
    aws_names.MODEL_UNLOADING_TIME,
    aws_names.MODEL_LOADING_WAIT_TIME,
)
"""Times of models, which a fleet's own figures do not have."""
OF_COPIES = {
    aws_names.INVOCATIONS_PER_INSTANCE: aws_names.INVOCATIONS_PER_COPY,
    aws_names.CONCURRENT_REQUESTS_PER_MODEL: aws_names.CONCURRENT_REQUESTS_PER_COPY,
}
"""What an inference component's figures are called in place of a variant's."""
NORMALIZED = (aws_names.CPU_UTILIZATION, aws_names.MEMORY_UTILIZATION)
"""Of a component's reservation; here of the instance, as of a variant (fidelity page)."""
RECENT_SECONDS = 240
"""Before the minute under way: with it, the last five minutes."""
VALUES_A_DATUM = 150
"""PutMetricData's limit of unique values in one datum (CloudWatch API reference)."""


@dataclass
class Spread:
    """Sum, extremes and number of values."""

    count: int = 0
    total: float = 0.0
    low: float = float("inf")
    high: float = float("-inf")

    def add(self, value: float) -> None:
        self.count += 1
        self.total += value
        self.low = value if value < self.low else self.low  # min() is four times slower
        self.high = value if value > self.high else self.high

    def statistics(self) -> dict[str, float]:
        """The values as PutMetricData's StatisticValues."""
        return {"SampleCount": self.count, "Sum": self.total, "Minimum": float(self.low), "Maximum": float(self.high)}


@dataclass
class Interval:
    """One fleet's values of one publishing interval that are not sent yet, by metric. Times are microseconds."""

    counted: defaultdict[str, Spread] = field(default_factory=lambda: defaultdict(Spread))
    times: defaultdict[str, Histogram] = field(default_factory=lambda: defaultdict(Histogram))


class Dimensions(NamedTuple):
    """Dimensions of the metrics."""

    endpoint: str
    variant: str
    config: str
    component: str | None = None  # whose container it is, if one's
    instance_type: str = ""  # of instance pools; empty without
    instance: str | None = None  # InstanceId, with enhanced metrics

    def of_endpoint(self) -> list[dict[str, str]]:
        """EndpointName and VariantName, or InferenceComponentName."""
        if self.component is not None:
            return aws_names.dimension_list({aws_names.COMPONENT_NAME: self.component})
        return aws_names.dimension_list(aws_names.variant_dimensions(self.endpoint, self.variant))

    def of_fleet(self) -> list[dict[str, str]]:
        """These and EndpointConfigName."""
        return [*self.of_endpoint(), {"Name": aws_names.ENDPOINT_CONFIG_NAME, "Value": self.config}]

    def of_type(self) -> list[dict[str, str]]:
        """Those of the endpoint and InstanceType."""
        return [*self.of_endpoint(), {"Name": aws_names.INSTANCE_TYPE, "Value": self.instance_type}]

    def of_instance(self) -> list[dict[str, str]] | None:
        """EndpointName, VariantName and InstanceId; None without enhanced metrics, and of an inference component."""
        if self.instance is None or self.component is not None:
            return None
        return [*self.of_endpoint(), {"Name": aws_names.INSTANCE_ID, "Value": self.instance}]


class FleetMetrics:
    """The figures of one fleet. Recording takes about two microseconds and touches no lock: one event loop calls it."""

    def __init__(self, *, dimensions: Dimensions, seconds: int = 60, clock: Callable[[], float] = time.time) -> None:
        """``seconds``: MetricPublishFrequencyInSeconds. ``clock`` gives seconds since 1970.

        Request metrics have that interval with enhanced metrics alone, and a minute otherwise.
        """
        self.dimensions = dimensions
        self._names = {} if dimensions.component is None else OF_COPIES
        self._gauge_seconds = seconds
        self._request_seconds = 60 if dimensions.instance is None else seconds
        self.instance_count = 1
        self._clock = clock
        self._intervals: dict[int, Interval] = {}
        self._gauges: dict[int, dict[str, list[float]]] = {}
        self._recent: list[tuple[int, Histogram]] = []
        self.loads = 0
        self.unloads = 0
        self.requests = 0
        self.errors = 0
        self.hits = 0
        self.lookups = 0

    def _interval(self) -> Interval:
        start = _start(self._clock(), self._request_seconds)
        interval = self._intervals.get(start)
        if interval is None:
            interval = self._intervals[start] = Interval()
        return interval

    def invocation(
        self, *, in_model: float, total: float, error: InvokeError | None, hit: bool | None, concurrent: int
    ) -> None:
        """One request that reached the endpoint has ended.

        Args:
            in_model: seconds that the container took; 0 where it got no request.
            total: seconds from the request's first byte to its response.
            error: what it ended with.
            hit: whether its model was loaded already; None on a single-model endpoint.
            concurrent: requests in flight in the fleet, this one included.
        """
        self.requests += 1
        original = None if error is None else error.members.get("OriginalStatusCode")
        status = 200 if error is None else error.status if original is None else original
        self.errors += error is not None
        interval = self._interval()
        counted, times = interval.counted, interval.times
        counted[aws_names.INVOCATIONS].add(1)
        counted[aws_names.INVOCATIONS_PER_INSTANCE].add(1 / self.instance_count)
        counted[aws_names.INVOCATION_4XX_ERRORS].add(400 <= status < 500)
        counted[aws_names.INVOCATION_5XX_ERRORS].add(not 200 <= status < 500)
        counted[aws_names.INVOCATION_MODEL_ERRORS].add(original is not None)
        counted[aws_names.CONCURRENT_REQUESTS_PER_MODEL].add(concurrent)
        if in_model > 0:
            times[aws_names.MODEL_LATENCY].add(in_model * 1e6)
        times[aws_names.OVERHEAD_LATENCY].add(max(total - in_model, 0.0) * 1e6)
        if hit is not None:
            counted[aws_names.MODEL_CACHE_HIT].add(hit)
            self.lookups += 1
            self.hits += hit

    def duration(self, name: str, seconds: float) -> None:
        """A model was downloaded, loaded or unloaded, or a request waited for one: ``OF_MODELS``."""
        self._interval().times[name].add(seconds * 1e6)
        self.loads += name == aws_names.MODEL_LOADING_TIME
        self.unloads += name == aws_names.MODEL_UNLOADING_TIME

    def gauge(self, name: str, value: float) -> None:
        """A figure of the instance, sampled now (CPUUtilization, MemoryUtilization, LoadedModelCount, …)."""
        start = _start(self._clock(), self._gauge_seconds)
        self._gauges.setdefault(start, {}).setdefault(name, []).append(value)

    def recent(self) -> dict[str, Any]:
        """Model latency of the last five minutes: count and percentiles in milliseconds."""
        oldest = _start(self._clock(), 60) - RECENT_SECONDS
        parts = [*self._recent, *_latencies(self._intervals)]
        total = Histogram.sum(part for start, part in parts if start >= oldest)
        shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
        found = {name: total.percentile(share) for name, share in shares.items()}
        return {"count": total.count} | {
            name: None if value is None else round(value / 1000, 3) for name, value in found.items()
        }

    def take(self, *, ended: bool = False) -> list[tuple[str, dict[str, Any]]]:
        """Data that was not sent yet, as (namespace, MetricDatum); it counts as sent from now on.

        An instance writes each gauge once an interval, so that those of the interval under way are kept for later,
        unless the fleet has ``ended``.
        """
        now = self._clock()
        complete = sorted(start for start in self._gauges if ended or start < _start(now, self._gauge_seconds))
        gauges = [datum for start in complete for datum in self._gauge_data(start, self._gauges.pop(start))]
        intervals, self._intervals = self._intervals, {}
        self._recent = [part for part in self._recent if part[0] >= _start(now, 60) - RECENT_SECONDS]
        self._recent += _latencies(intervals)
        counted = [datum for start, interval in sorted(intervals.items()) for datum in self._data(start, interval)]
        return counted + gauges

    def _gauge_data(self, start: int, gauges: Mapping[str, list[float]]) -> Iterator[tuple[str, dict[str, Any]]]:
        """One datum a gauge. Each of N instances writes its share of what the one Triton here has or does for all.

        The figures by InstanceId are those of the one container that runs.
        """
        stamp = datetime.fromtimestamp(start, tz=UTC)
        for name, samples in gauges.items():
            is_count = name == aws_names.LOADED_MODEL_COUNT
            total = samples[-1] if is_count else sum(samples) / len(samples)
            count = self.instance_count if name in SHARED else 1
            unit, spread = "None" if is_count else "Percent", Spread(count, total, total / count, total / count)
            datum = {"Unit": unit, "StatisticValues": spread.statistics(), "Timestamp": stamp}
            if self.dimensions.component is None:
                datum["MetricName"] = name
                yield aws_names.INSTANCES, {**datum, "Dimensions": self.dimensions.of_endpoint()}
                if (own := self.dimensions.of_instance()) is not None and not is_count:
                    yield aws_names.INSTANCES, {**datum, "Dimensions": own}
            elif name in NORMALIZED:
                datum |= {"MetricName": f"{name}{aws_names.NORMALIZED}", "Dimensions": self.dimensions.of_endpoint()}
                yield aws_names.COMPONENT_INSTANCES, datum

    def _data(self, start: int, interval: Interval) -> Iterator[tuple[str, dict[str, Any]]]:
        stamp = datetime.fromtimestamp(start, tz=UTC)
        # Concurrency is of high resolution: in the 10 seconds in which it is taken, which happens every 5.
        last = start + max(self._request_seconds, 10) - 10
        fine = datetime.fromtimestamp(min(_start(self._clock(), 10), last), tz=UTC)
        data: list[tuple[str, list[dict[str, Any]]]] = [
            (
                name,
                [{"MetricName": self._names.get(name, name), "Unit": "None", "StatisticValues": spread.statistics()}],
            )
            for name, spread in interval.counted.items()
        ]
        data += [(name, list(_distribution(name, histogram))) for name, histogram in interval.times.items()]
        sets: list[tuple[list[dict[str, str]], tuple[str, ...]]] = [(self.dimensions.of_endpoint(), ())]
        if self.dimensions.component is None:
            sets.append((self.dimensions.of_fleet(), OF_MODELS))
        if self.dimensions.instance_type:
            sets.append((self.dimensions.of_type(), OF_MODELS))
        for dimensions, left_out in sets:
            for name, parts in data:
                time = fine if name == aws_names.CONCURRENT_REQUESTS_PER_MODEL else stamp
                for part in parts if name not in left_out else ():
                    yield aws_names.SAGEMAKER, {**part, "Timestamp": time, "Dimensions": dimensions}
        if (own := self.dimensions.of_instance()) is not None:
            for name, parts in data:
                for part in parts if name in aws_names.OF_INSTANCES else ():
                    yield aws_names.SAGEMAKER, {**part, "Timestamp": stamp, "Dimensions": own}


def _start(moment: float, seconds: int) -> int:
    """The beginning of the interval that a moment is in, seconds since 1970."""
    return int(moment // seconds) * seconds


def _latencies(intervals: Mapping[int, Interval]) -> list[tuple[int, Histogram]]:
    return [(start, interval.times[aws_names.MODEL_LATENCY]) for start, interval in intervals.items()]


def _distribution(name: str, histogram: Histogram) -> Iterator[dict[str, Any]]:
    values = histogram.values()
    for start in range(0, len(values), VALUES_A_DATUM):
        part = values[start : start + VALUES_A_DATUM]
        yield {
            "MetricName": name,
            "Unit": "Microseconds",
            "Values": [value for value, _ in part],
            "Counts": [float(count) for _, count in part],
        }


def by_namespace(data: list[tuple[str, dict[str, Any]]]) -> Mapping[str, list[dict[str, Any]]]:
    """Metric data grouped for PutMetricData, which takes one namespace a request."""
    grouped: dict[str, list[dict[str, Any]]] = {}
    for namespace, datum in data:
        grouped.setdefault(namespace, []).append(datum)
    return grouped
