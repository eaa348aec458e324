"""A statistic of the samples of one period: the five of old, and percentiles.

Source: CloudWatch user guide, "CloudWatch statistics definitions", and API reference, MetricDatum. Percentiles need raw
values: samples written as a statistic set give none, unless all their values are equal; nor do negative values. How
CloudWatch interpolates is UNVERIFIED: here linearly between the two nearest ranks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tritonstack_local.emulator.cloudwatch.expression_syntax import ExpressionError

_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d{1,10})?|100)")
_TRIMMED = re.compile(r"(TM|TC|TS|WM|PR|tm|tc|ts|wm)[\d(].*|IQM|iqm")


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A value written ``count`` times, or a statistic set.

    Attributes:
        time: seconds since the epoch.
        unit: as written, or ``None`` (the word).
    """

    time: float
    unit: str
    count: float
    total: float
    low: float
    high: float

    @property
    def value(self) -> float | None:
        """The value that all its samples have; None where they differ or nobody knows."""
        return self.low if self.low == self.high and math.isclose(self.total, self.low * self.count) else None


Statistic = Callable[[Iterable[Sample]], float | None]
"""Of at least one sample; None where it has no value for them."""


def _average(samples: Iterable[Sample]) -> float | None:
    many = list(samples)
    return math.fsum(sample.total for sample in many) / math.fsum(sample.count for sample in many)


_BASIC: dict[str, Statistic] = {
    "SampleCount": lambda samples: math.fsum(sample.count for sample in samples),
    "Sum": lambda samples: math.fsum(sample.total for sample in samples),
    "Average": _average,
    "Minimum": lambda samples: min(sample.low for sample in samples),
    "Maximum": lambda samples: max(sample.high for sample in samples),
}
BASIC = tuple(_BASIC)


def statistic(name: str) -> Statistic:
    """The statistic of that name; raises ``ExpressionError`` for none, and for those that the local AWS lacks."""
    if name in _BASIC:
        return _BASIC[name]
    share = percentile_share(name)
    if share is not None:
        return lambda samples: _percentile(samples, share)
    if _TRIMMED.fullmatch(name):
        raise ExpressionError(f"Statistic {name} is not in the local AWS; it has {', '.join(_BASIC)} and percentiles")
    raise ExpressionError(f"{name} is no statistic: {', '.join(_BASIC)}, or a percentile as p99")


def percentile_share(name: str) -> float | None:
    """0.99 for ``p99``; None for what is no percentile."""
    found = _PERCENTILE.fullmatch(name)
    return float(found[1]) / 100 if found else None


def _percentile(samples: Iterable[Sample], share: float) -> float | None:
    many = list(samples)
    known = sorted((sample.value, sample.count) for sample in many if sample.value is not None)
    if len(known) != len(many) or known[0][0] < 0:
        return None
    rank = share * (math.fsum(count for _, count in known) - 1)
    low, part = _at_rank(known, math.floor(rank)), rank - math.floor(rank)
    return low + part * (_at_rank(known, math.floor(rank) + 1) - low) if part else low


def _at_rank(ordered: list[tuple[float, float]], rank: float) -> float:
    """The value with so many smaller ones before it."""
    seen = 0.0
    for value, count in ordered:
        seen += count
        if rank < seen:
            return value
    return ordered[-1][0]
