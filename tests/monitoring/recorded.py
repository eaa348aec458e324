"""Metrics of an hour, made by the local runtime's own recorder and put as it puts them."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Any

from tritonstack import aws_names
from tritonstack.loopback.http_server import InvokeError
from tritonstack_local.runtime.metrics import Dimensions, FleetMetrics, by_namespace

MINUTE = 60


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        """Begins now."""
        self.now = time.time()

    def __call__(self) -> float:
        """Seconds since 1970."""
        return self.now


def hour(
    *, endpoint: str, variant: str, multi_model: bool, minutes: int = 60, gpu: bool = False
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """What an endpoint writes in the last minutes under changing load, by namespace.

    ``gpu`` adds the figures of an instance with a GPU, which the local runtime does not write.
    """
    rng = random.Random(7)
    clock = Clock()
    metrics = FleetMetrics(dimensions=Dimensions(endpoint=endpoint, variant=variant, config="config"), clock=clock)
    last = int(clock.now // MINUTE)
    for number in range(minutes):
        clock.now = (last - minutes + number) * MINUTE + 1.0
        metrics.instance_count = 1 if number < minutes // 2 else 2
        for _ in range(40 + int(60 * number / minutes) + rng.randrange(20)):
            hit = (rng.random() < 0.9) if multi_model else None
            wait = 0.0 if hit is not False else rng.uniform(0.2, 1.4)
            took = rng.lognormvariate(-4.2, 0.5)
            error = InvokeError("ModelError", 424, "no", members={"OriginalStatusCode": 500})
            metrics.invocation(
                in_model=took,
                total=took + wait + rng.uniform(0.001, 0.004),
                error=error if rng.random() < 0.005 else None,
                hit=hit,
                concurrent=rng.randrange(1, 9),
            )
            if hit is False:
                metrics.duration(aws_names.MODEL_LOADING_WAIT_TIME, wait)
                metrics.duration(aws_names.MODEL_DOWNLOADING_TIME, wait * 0.4)
                metrics.duration(aws_names.MODEL_LOADING_TIME, wait * 0.6)
                metrics.duration(aws_names.MODEL_UNLOADING_TIME, 0.05)
        gauges = {"CPUUtilization": 130.0, "MemoryUtilization": 41.0, "DiskUtilization": 12.0}
        gauges |= {"GPUUtilization": 62.0, "GPUMemoryUtilization": 71.0} if gpu else {}
        for name, value in gauges.items():
            metrics.gauge(name, value * rng.uniform(0.85, 1.15))
        if multi_model:
            metrics.gauge("LoadedModelCount", float(min(8, 1 + number // 4)) * metrics.instance_count)
    clock.now = last * MINUTE + 1.0
    for namespace, data in by_namespace(metrics.take(ended=True)).items():
        for start in range(0, len(data), 200):
            yield namespace, data[start : start + 200]
