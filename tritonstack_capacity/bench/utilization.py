"""CPU, memory and GPU utilization during a test: an endpoint's by CloudWatch, a local container's by its processes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import psutil
from botocore.exceptions import BotoCoreError, ClientError

from tritonstack import aws_names
from tritonstack_capacity.bench.measuring import UtilizationPart

METRICS = {
    "cpu_percent": aws_names.CPU_UTILIZATION,
    "memory_percent": aws_names.MEMORY_UTILIZATION,
    "gpu_percent": aws_names.GPU_UTILIZATION,
    "gpu_memory_percent": aws_names.GPU_MEMORY_UTILIZATION,
}
"""Field of ``UtilizationPart`` → the metric that each instance writes once a minute."""
MINUTE = timedelta(minutes=1)


class EndpointUtilization:
    """An endpoint's utilization, minute by minute; of several instances the mean, or the busiest."""

    def __init__(self, cloudwatch: Any, *, endpoint: str, variant: str, begin: datetime, end: datetime) -> None:
        """Read the minutes from ``begin`` to ``end``; none where CloudWatch has none, or gives none to this caller."""
        dimensions = aws_names.dimension_list(aws_names.variant_dimensions(endpoint, variant))
        self._minutes: dict[str, list[dict[str, Any]]] = {}
        for field, metric in METRICS.items():
            try:
                found = cloudwatch.get_metric_statistics(
                    Namespace=aws_names.INSTANCES,
                    MetricName=metric,
                    Dimensions=dimensions,
                    StartTime=begin.replace(second=0, microsecond=0),
                    EndTime=end.replace(second=0, microsecond=0) + MINUTE,
                    Period=int(MINUTE.total_seconds()),
                    Statistics=["Average", "Maximum"],
                )
            except (ClientError, BotoCoreError):
                return
            self._minutes[field] = found["Datapoints"]

    def highest(self) -> UtilizationPart | None:
        """The highest minute of the busiest instance, of each metric."""
        values = {field: [each["Maximum"] for each in minutes] for field, minutes in self._minutes.items()}
        return _part({field: max(found) for field, found in values.items() if found}, source="CloudWatch")

    def during(self, begin: datetime, end: datetime) -> UtilizationPart | None:
        """The mean of the minutes of which at least half lies between ``begin`` and ``end``; None without one."""
        means = {}
        for field, minutes in self._minutes.items():
            values = [
                each["Average"]
                for each in minutes
                if min(end, each["Timestamp"] + MINUTE) - max(begin, each["Timestamp"]) >= MINUTE / 2
            ]
            if values:
                means[field] = sum(values) / len(values)
        return _part(means, source="CloudWatch")


class ContainerUtilization:
    """Utilization of a local container by its processes. It has no GPU, and shares the machine with the generator."""

    def __init__(self, pid: int | None) -> None:
        """Read the processors' times for the first time; ``pid`` None: the container is not on this machine."""
        self._pid = pid
        self._at = time.monotonic()
        self._seconds, _ = self._read()

    def since(self) -> UtilizationPart | None:
        """The CPU's mean since the last reading, and the memory that is resident now; None without a container."""
        now = time.monotonic()
        seconds, resident = self._read()
        spent = sum(max(value - self._seconds.get(pid, 0.0), 0.0) for pid, value in seconds.items())
        elapsed, self._at, self._seconds = now - self._at, now, seconds
        if not seconds or elapsed <= 0:
            return None
        values = {
            "cpu_percent": 100 * spent / elapsed,
            "memory_percent": 100 * resident / psutil.virtual_memory().total,
        }
        return _part(values, source="processes of the container on this machine, which has no GPU")

    def _read(self) -> tuple[dict[int, float], int]:
        """Process → seconds of a core, and resident bytes of all; empty where the container is gone."""
        seconds: dict[int, float] = {}
        resident = 0
        if self._pid is None:
            return seconds, resident
        with contextlib.suppress(psutil.NoSuchProcess):
            root = psutil.Process(self._pid)
            for process in (root, *root.children(recursive=True)):
                with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                    times, memory = process.cpu_times(), process.memory_info()
                    seconds[process.pid] = times.user + times.system
                    resident += memory.rss
        return seconds, resident


def highest_of(parts: Iterable[UtilizationPart | None]) -> UtilizationPart | None:
    """The highest value of each metric; None without any."""
    known = [part for part in parts if part is not None]
    values = {field: [value for part in known if (value := getattr(part, field)) is not None] for field in METRICS}
    return _part(
        {field: max(found) for field, found in values.items() if found}, source=known[0].source if known else ""
    )


def _part(values: dict[str, float], *, source: str) -> UtilizationPart | None:
    return UtilizationPart(source=source, **values) if values else None
