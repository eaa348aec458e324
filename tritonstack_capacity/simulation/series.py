"""What happened over time, in equal periods, for plots."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tritonstack_capacity.simulation.happening import HIT, LOAD, Happening
from tritonstack_capacity.simulation.model_table import Floats, Integers
from tritonstack_capacity.simulation.trace import MINUTE, Trace

MOST_PERIODS = 240
"""About one for each pixel and a half of a plot."""
Points = list[tuple[float, float]]
"""Seconds (the middle of the period) and value; a period without a value is left out."""


@dataclass(frozen=True, kw_only=True)
class Series:
    """A value for each period.

    Attributes:
        period: seconds.
        calls, loads: a minute.
        thrash: the loads among them of models that were evicted shortly before.
        hit_ratio: percent.
        median, p95, warm_p95: latency in milliseconds.
        serving, paid: instances, as steps.
        held: models on an instance, on average.
    """

    period: float
    calls: Points
    loads: Points
    thrash: Points
    hit_ratio: Points
    median: Points
    p95: Points
    warm_p95: Points
    serving: Points
    paid: Points
    held: Points


def series(happening: Happening, trace: Trace, *, thrash: Floats) -> Series:
    """The simulation's course while calls came. ``thrash``: see ``thrash_times``."""
    seconds = happening.seconds
    period = max(MINUTE * np.ceil(seconds / MINUTE / MOST_PERIODS), 1.0) if seconds >= 10 * MINUTE else seconds / 20
    count = max(1, int(np.ceil(seconds / period)))
    middles = (np.arange(count) + 0.5) * period
    place = np.minimum((trace.times // period).astype(np.int64), count - 1)
    calls = np.bincount(place, minlength=count)
    hits = np.bincount(place[happening.calls.outcomes == HIT], minlength=count)

    def a_minute(moments: Floats) -> Points:
        counted = np.bincount((moments[moments < seconds] // period).astype(np.int64), minlength=count)[:count]
        return _points(middles, counted * MINUTE / period)

    edges = np.searchsorted(place, np.arange(count + 1))
    warm = happening.calls.outcomes == HIT
    fleet = [*happening.fleet]
    ends = [min(each.seconds, seconds) for each in fleet[1:]] + [seconds]
    return Series(
        period=period,
        calls=_points(middles, calls * MINUTE / period),
        loads=a_minute(happening.events.of_kind(LOAD)[0]),
        thrash=a_minute(thrash),
        hit_ratio=[(float(t), 100 * float(h) / float(n)) for t, h, n in zip(middles, hits, calls, strict=True) if n],
        median=_percentile(happening.calls.latencies, edges, middles, 50),
        p95=_percentile(happening.calls.latencies, edges, middles, 95),
        warm_p95=_percentile(np.where(warm, happening.calls.latencies, np.nan), edges, middles, 95),
        serving=_steps([(each.seconds, end, each.serving) for each, end in zip(fleet, ends, strict=True)]),
        paid=_steps([(each.seconds, end, each.paid) for each, end in zip(fleet, ends, strict=True)]),
        held=[(now, loaded / serving) for now, loaded, _, serving in happening.loaded if now <= seconds],
    )


def _points(times: Floats, values: Floats) -> Points:
    return [(float(time), float(value)) for time, value in zip(times, values, strict=True)]


def _steps(lasting: list[tuple[float, float, int]]) -> Points:
    """Of (start, end, value)."""
    return [(at, float(value)) for start, end, value in lasting if end > start for at in (start, end)]


def _percentile(latencies: Floats, edges: Integers, middles: Floats, percent: int) -> Points:
    found = []
    for place, middle in enumerate(middles):
        inside = latencies[int(edges[place]) : int(edges[place + 1])]
        inside = inside[~np.isnan(inside)]
        if len(inside):
            found.append((float(middle), float(np.percentile(inside, percent, method="inverted_cdf")) * 1000))
    return found
