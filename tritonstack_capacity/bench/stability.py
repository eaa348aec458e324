"""When the rounds of a load agree well enough to believe their mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tritonstack_capacity.bench.confidence import Interval, mean_interval
from tritonstack_capacity.bench.figures import Figures


@dataclass(frozen=True, kw_only=True)
class StabilityRule:
    """Rounds are repeated until rate and latency are known so well.

    Attributes:
        within: half of the confidence interval's width, as a share of the mean (0.1).
        confidence: of the interval (0.95).
        least, most: rounds.
        percentile: of the latency that must be known.
    """

    within: float
    confidence: float
    least: int
    most: int
    percentile: float


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """How well rounds agree: invocations a minute, and the latency's percentile in ms (None without answers)."""

    per_minute: Interval
    latency_ms: Interval | None
    stable: bool


def agreement(rounds: Sequence[Figures], rule: StabilityRule) -> Agreement:
    """Of at least one round. One round alone is never stable."""
    rates = mean_interval([one.per_minute for one in rounds], confidence=rule.confidence)
    known = [one.percentiles_ms[rule.percentile] for one in rounds if rule.percentile in one.percentiles_ms]
    latencies = mean_interval(known, confidence=rule.confidence) if known else None
    intervals = [rates, latencies] if len(known) == len(rounds) else []
    enough = len(rounds) >= rule.least
    close = [one is not None and one.share is not None and one.share <= rule.within for one in intervals]
    return Agreement(per_minute=rates, latency_ms=latencies, stable=enough and bool(close) and all(close))
