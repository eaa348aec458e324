"""What is claimed of two ways to serve a model, and whether the figures bear it out."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from benchmarks.scenarios.measuring import Measured
from benchmarks.scenarios.served import ColdStart

CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A median and its confidence interval at ``CONFIDENCE``; None where there are too few values."""

    median: float
    low: float | None
    high: float | None


def median_interval(values: Sequence[float]) -> Interval:
    """The median and its interval from the values' own order: between the k-th least and the k-th greatest.

    For any distribution, an independent value is below the median with probability one half: the binomial distribution
    gives how often both ends are on one side of it. Six values give least to greatest (97 %), twelve the third from
    either end (96 %). Five are too few.

    Raises ValueError: no value.
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


class Figure(StrEnum):
    """What a claim is about. Of rates more is better, of times less."""

    RATE = "responses/s"
    COLD_START = "s cold start"
    UNPACK = "s unpacking"
    FIRST_CALL = "ms first call"


class Verdict(StrEnum):
    """Where the ratio's interval lies against what is claimed."""

    HOLDS = "holds"
    FAILS = "does not hold here"
    NO_DIFFERENCE = "no difference that this machine shows"
    OPEN = "open"


COLD_PARTS: Mapping[Figure, Callable[[ColdStart], float]] = {
    Figure.COLD_START: lambda one: one.whole,
    Figure.UNPACK: lambda one: one.unpack,
    Figure.FIRST_CALL: lambda one: one.first_call * 1000,
}


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One way is better than another."""

    said: str  # the claim in words
    # the ways' names
    better: str
    than: str
    by: Figure  # the figure
    # how many times better at least: 1 where the claim is better at all; below 1 where the claim is that it costs
    # little
    times: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Tried:
    """A claim and what came of it."""

    claim: Claim
    # the medians of the figure
    better: float
    than: float
    ratio: Interval  # how many times better, of the turns' own ratios

    @property
    def verdict(self) -> Verdict:
        """It holds where the whole interval is at or above what is claimed, and does not where all of it is below."""
        low, high, times = self.ratio.low, self.ratio.high, self.claim.times
        if low is None or high is None:
            return Verdict.OPEN
        if low >= times and (low > 1 or times != 1):
            return Verdict.HOLDS
        if high < times:
            return Verdict.FAILS
        return Verdict.NO_DIFFERENCE if times == 1 else Verdict.OPEN


def tried(claim: Claim, found: Mapping[str, Measured]) -> Tried:
    """Compare a claim with the measurements; turns are compared in pairs of neighbours.

    Raises:
        KeyError: a way was not measured, or not by this figure.
    """
    better, than = (_values(found[name], claim.by) for name in (claim.better, claim.than))
    upwards = claim.by is Figure.RATE
    ratios = [own / other if upwards else other / own for own, other in zip(better, than, strict=True)]
    return Tried(
        claim=claim,
        better=median_interval(better).median,
        than=median_interval(than).median,
        ratio=median_interval(ratios),
    )


def _values(measured: Measured, figure: Figure) -> list[float]:
    if figure is not Figure.RATE:
        return [COLD_PARTS[figure](one) for one in measured.cold]
    if measured.load is None:
        raise KeyError(figure)
    return list(measured.load.rates)
