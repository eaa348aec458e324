"""Metrics as MiniStack stores them, at times of the emulator's clock."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from ministack.services import cloudwatch

from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.cloudwatch.expression_functions import Series, Span
from tritonstack_local.emulator.cloudwatch.search_terms import Metric
from tritonstack_local.emulator.cloudwatch.statistic import Sample, Statistic

# Who writes and reads metrics (the runtime, a dashboard, a script) goes by the system's time, and an alarm by the
# emulator's clock. What a caller says is a minute old is a minute old for an alarm too: times of data are shifted by
# the whole minutes that the clock is ahead, on their way in, and back on their way out. Alarms' own times are the
# clock's, as those of other services here.
_MINUTE = 60
_JITTER_SECONDS = 0.5
"""The two clocks are read one after the other, and the system's may be corrected a little."""


def ahead_seconds() -> int:
    """The whole minutes, in seconds, that the emulator's clock is ahead of the system's."""
    return int(max(0.0, clock.now() - time.time() + _JITTER_SECONDS) // _MINUTE) * _MINUTE


# A metric is a namespace, a name and an exact set of dimensions (user guide, "Dimensions"): what is written with
# EndpointName, VariantName and EndpointConfigName is another metric than what is written without the last.
KEPT_SECONDS = 15 * 24 * 3600
"""How long points of one minute are kept (user guide, "Metrics retention")."""
lock = threading.RLock()
"""Guards metrics, alarms and history: requests come on the event loop, evaluations on a thread too."""


Point = dict[str, Any]
"""A sample as MiniStack keeps it."""


class Points(list[Point]):
    """The samples of a metric, in the order in which they came, and by minute: a day's are many, an alarm reads few."""

    def __init__(self, points: Iterable[Point] = ()) -> None:
        """``points`` in their order."""
        super().__init__()
        self._by_minute: dict[int, list[Point]] = {}
        for point in points:
            self.append(point)

    def append(self, point: Point) -> None:
        """One more sample."""
        super().append(point)
        self._by_minute.setdefault(int(point["Timestamp"] // _MINUTE), []).append(point)

    def __reduce__(self) -> tuple[type[Points], tuple[list[Point]]]:
        """Copied as its samples; the order by minute is made anew."""
        return Points, (list(self),)

    def within(self, start: float, end: float) -> Iterator[Point]:
        """The samples from ``start`` until before ``end``."""
        first, last = int(start // _MINUTE), int(-(-end // _MINUTE))
        every = range(first, last) if last - first < len(self._by_minute) else sorted(self._by_minute)
        for minute in every:
            yield from (point for point in self._by_minute.get(minute, ()) if start <= point["Timestamp"] < end)


def points_of(key: tuple[str, str, str]) -> Points:
    """The samples of a metric, an empty list of which is kept where there is none."""
    found = cloudwatch._metrics.get(key)
    if not isinstance(found, Points):
        found = cloudwatch._metrics[key] = Points(found or ())
    return found


_writes = 0


def writes() -> int:
    """How many data were ever written by PutMetricData: where it is the same as before, so are the metrics."""
    return _writes


def dimensions(members: list[dict[str, str]] | None) -> dict[str, str]:
    """``[{"Name": …, "Value": …}]`` as a mapping."""
    return {one["Name"]: one["Value"] for one in members or []}


def write(metric: Metric, datum: dict[str, Any]) -> None:
    """Keep one MetricDatum, its timestamp in seconds; without one it is of now."""
    global _writes  # noqa: PLW0603  counts what this module keeps
    with lock:
        _writes += 1
        cloudwatch._store_datum(
            metric.namespace,
            metric.name,
            dict(metric.dimensions),
            float(datum.get("Timestamp", clock.now())),
            datum.get("Unit", "None"),
            datum.get("Value"),
            datum.get("Values"),
            datum.get("Counts"),
            datum.get("StatisticValues"),
        )


def record(
    namespace: str, metric_name: str, value: float, unit: str = "None", dimensions: dict[str, str] | None = None
) -> None:
    """What other services of MiniStack write with; its own function stamps the system's time."""
    metric = Metric(namespace=namespace, name=metric_name, dimensions=dimensions or {})
    write(metric, {"Value": value, "Unit": unit})


def metrics() -> Iterator[tuple[Metric, float]]:
    """Every metric of the request's account and region, and the time of its newest sample."""
    with lock:
        stored = list(cloudwatch._metrics.items())
    for (namespace, name, _), points in stored:
        if points:
            newest = max(point["Timestamp"] for point in points)
            yield Metric(namespace=namespace, name=name, dimensions=points[0]["Dimensions"]), newest


def samples(metric: Metric, span: Span, *, unit: str | None = None) -> dict[int, list[Sample]]:
    """The samples by the beginning of their period; those of another unit than ``unit`` are left out."""
    found: dict[int, list[Sample]] = defaultdict(list)
    with lock:
        key = (metric.namespace, metric.name, cloudwatch._dims_key(metric.dimensions))
        for point in points_of(key).within(span.start, span.end) if key in cloudwatch._metrics else ():
            count, total, low, high = cloudwatch._point_stats(point)
            if count > 0 and unit in (None, point["Unit"]):
                time = point["Timestamp"]
                at = span.start + int(time - span.start) // span.period * span.period
                found[at].append(Sample(time=time, unit=point["Unit"], count=count, total=total, low=low, high=high))
    return found


def series(metric: Metric, span: Span, statistic: Statistic, *, label: str, unit: str | None = None) -> Series:
    """The statistic of each period that has samples, and a value for them."""
    values = {time: statistic(many) for time, many in sorted(samples(metric, span, unit=unit).items())}
    points = {time: value for time, value in values.items() if value is not None}
    return Series(label=label, span=span, points=points, is_metric=True)


def forget_old() -> None:
    """Drop samples that are older than is kept, everywhere."""
    oldest = clock.now() - KEPT_SECONDS
    everything = cloudwatch._metrics._data
    with lock:
        for key, points in list(everything.items()):
            if points and points[0]["Timestamp"] < oldest:
                kept = Points(point for point in points if point["Timestamp"] >= oldest)
                if kept:
                    everything[key] = kept
                else:
                    del everything[key]
