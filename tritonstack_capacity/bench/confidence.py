"""How sure a mean is: Student's t interval, whose quantiles are computed, not looked up."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A mean and half the width of its confidence interval; None where one value alone says nothing of it."""

    mean: float
    half_width: float | None

    @property
    def share(self) -> float | None:
        """Half the width as a share of the mean; None where it is not known, or the mean is 0."""
        return None if self.half_width is None or self.mean == 0 else self.half_width / abs(self.mean)


def mean_interval(values: Sequence[float], *, confidence: float) -> Interval:
    """The mean of independent values and its two-sided interval at ``confidence`` (0.95).

    Raises:
        ValueError: no value.
    """
    if not values:
        raise ValueError("no values")
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return Interval(mean=mean, half_width=None)
    spread = statistics.stdev(values) / math.sqrt(len(values))
    return Interval(mean=mean, half_width=t_quantile((1 + confidence) / 2, len(values) - 1) * spread)


@cache
def t_quantile(probability: float, freedom: int) -> float:
    """Below which Student's t with so many degrees of freedom lies with ``probability`` (0.5 to below 1)."""
    low, high = 0.0, 1.0
    while _central(high, freedom) < 2 * probability - 1:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if _central(middle, freedom) < 2 * probability - 1:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _central(t: float, freedom: int) -> float:
    """The probability of lying between -t and t: Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    angle = math.atan(t / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2 == 1
    term = cosine if odd else 1.0
    total = term if freedom > 1 else 0.0
    for number in range(3 if odd else 2, freedom, 2):
        term *= cosine * cosine * (number - 1) / number
        total += term
    return 2 / math.pi * (angle + sine * total) if odd else sine * total
