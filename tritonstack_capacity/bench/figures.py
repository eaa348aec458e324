"""Calls as figures: rates and percentiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tritonstack_capacity.bench.load import SECONDS_A_MINUTE
from tritonstack_capacity.bench.samples import Numbers, Part

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


def figures(
    part: Part,
    *,
    begin: float,
    end: float,
    shares: tuple[float, ...] = SHARES,
    by: Literal["due", "ended"] = "due",
) -> Figures:
    """The figures of a time (seconds of the calls' clock).

    The rate counts what was answered within it. Latencies are of the calls that were *due* within it, whenever they
    ended: one that was sent before, as a warm-up's, is not of it, and to leave out those that took longer would leave
    out the slowest. Where calls are still under way, ``by="ended"`` takes those that ended within it.
    """
    moment = part.due if by == "due" else part.ended
    chosen = part.where((moment >= begin) & (moment < end))
    answered_within = (part.ended >= begin) & (part.ended <= end) & ~part.failed
    latencies = chosen.latencies_ms
    seconds = end - begin
    some = len(latencies) > 0
    return Figures(
        seconds=seconds,
        answered=len(latencies),
        failed=int(np.count_nonzero(chosen.failed)),
        per_minute=int(np.count_nonzero(answered_within)) / seconds * SECONDS_A_MINUTE if seconds > 0 else 0.0,
        mean_ms=float(latencies.mean()) if some else None,
        least_ms=float(latencies.min()) if some else None,
        most_ms=float(latencies.max()) if some else None,
        percentiles_ms=percentiles(latencies, shares),
        late_ms=percentiles(chosen.lateness_ms, (99.0,)).get(99.0, 0.0),
    )
