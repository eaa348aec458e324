"""Calls as figures: rates and percentiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tritonstack.bench.load import SECONDS_A_MINUTE
from tritonstack.bench.samples import Numbers, Part

SHARES = (50.0, 90.0, 95.0, 99.0)
"""The percentiles that are kept."""


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What some time of load came to. Latencies are milliseconds, of right answers alone, from when each was due.

    Attributes:
        seconds: how long it was.
        answered: right answers.
        failed: calls without one.
        per_minute: right answers a minute.
        mean_ms, least_ms, most_ms: None where nothing was answered.
        percentiles_ms: percentile → latency (linear between the two nearest calls, as NumPy does); empty likewise.
        late_ms: the 99th percentile of how much later than due calls began: the generator's own share.
    """

    seconds: float
    answered: int
    failed: int
    per_minute: float
    mean_ms: float | None
    least_ms: float | None
    most_ms: float | None
    percentiles_ms: Mapping[float, float]
    late_ms: float


def percentiles(values: Numbers, shares: tuple[float, ...] = SHARES) -> dict[float, float]:
    """Percentile → value; empty without values."""
    if not len(values):
        return {}
    return dict(zip(shares, (float(value) for value in np.percentile(values, shares)), strict=True))


def figures(part: Part, *, begin: float, end: float, shares: tuple[float, ...] = SHARES) -> Figures:
    """The figures of the calls of a time (seconds of their clock).

    The rate counts what was answered within it. Calls that ended after it have their place in the latencies: to leave
    them out would leave out the slowest.
    """
    latencies = part.latencies_ms
    inside = int(np.count_nonzero((part.ended <= end) & ~part.failed))
    seconds = end - begin
    some = len(latencies) > 0
    return Figures(
        seconds=seconds,
        answered=len(latencies),
        failed=int(np.count_nonzero(part.failed)),
        per_minute=inside / seconds * SECONDS_A_MINUTE if seconds > 0 else 0.0,
        mean_ms=float(latencies.mean()) if some else None,
        least_ms=float(latencies.min()) if some else None,
        most_ms=float(latencies.max()) if some else None,
        percentiles_ms=percentiles(latencies, shares),
        late_ms=percentiles(part.lateness_ms, (99.0,)).get(99.0, 0.0),
    )
