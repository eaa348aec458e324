"""How sure a median of turns is, without a guess at how they are spread."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A median and between what it lies with ``CONFIDENCE``; None where there are too few values to say."""

    median: float
    low: float | None
    high: float | None

    @property
    def share(self) -> float | None:
        """Half the width as a share of the median; None where it is not known, or the median is 0."""
        if self.low is None or self.high is None or self.median == 0:
            return None
        return (self.high - self.low) / 2 / self.median


def median_interval(values: Sequence[float]) -> Interval:
    """The median and its interval from the values' own order: between the k-th least and the k-th greatest.

    Whatever the distribution, as many independent values as not lie below its median: the binomial distribution says
    how often both ends lie on one side of it. Six values give least to greatest (97 %), twelve the third from either
    end (96 %). Five are too few.

    Raises:
        ValueError: no value.
    """
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    enough = [ends for ends in range(1, len(values) // 2 + 1) if _covered(len(values), ends) >= CONFIDENCE]
    middle = statistics.median(ordered)
    if not enough:
        return Interval(median=middle, low=None, high=None)
    return Interval(median=middle, low=ordered[enough[-1] - 1], high=ordered[-enough[-1]])


def _covered(count: int, ends: int) -> float:
    """How often the median lies between the ``ends``-th least and the ``ends``-th greatest of so many values."""
    return 1 - sum(math.comb(count, below) for below in range(ends)) / 2.0 ** (count - 1)
