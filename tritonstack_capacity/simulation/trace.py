"""The calls: when, and of which model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tritonstack_capacity.simulation.model_table import Floats, Integers
from tritonstack_capacity.simulation.scenario import RatePoint

MINUTE = 60.0


@dataclass(frozen=True, kw_only=True)
class Trace:
    """Calls in the order of time.

    Attributes:
        times: seconds from the beginning, not falling.
        models: numbers of models.
        seconds: how long calls come: at least until the last one.
    """

    times: Floats
    models: Integers
    seconds: float

    def __len__(self) -> int:
        """How many calls."""
        return len(self.times)

    def only(self, chosen: Integers) -> Trace:
        """The calls of the models whose number is at True in ``chosen``."""
        kept = chosen[self.models].astype(bool)
        return Trace(times=self.times[kept], models=self.models[kept], seconds=self.seconds)


def expected_calls(curve: tuple[RatePoint, ...], *, seconds: float) -> float:
    """The number of calls of a curve, on average."""
    _, sums = _cumulative(curve, seconds=seconds)
    return float(sums[-1])


def trace_of_curve(
    curve: tuple[RatePoint, ...], *, seconds: float, poisson: bool, popularity: Floats, random: np.random.Generator
) -> Trace:
    """Calls at the rates of ``curve``, of models by ``popularity``.

    Poisson: the number is Poisson-distributed, and the moments are independent of each other with the curve as their
    density, which is the same as a Poisson process with that rate (Ross, Introduction to Probability Models, ch. 5).
    """
    edges, sums = _cumulative(curve, seconds=seconds)
    total = sums[-1]
    if poisson:
        marks = np.sort(random.random(int(random.poisson(total)))) * total
    else:
        marks = np.arange(int(total), dtype=np.float64) + 0.5
    times = _invert(marks, edges=edges, sums=sums)
    return Trace(times=times, models=draw_models(len(times), popularity=popularity, random=random), seconds=seconds)


def draw_models(count: int, *, popularity: Floats, random: np.random.Generator) -> Integers:
    """Numbers of models, each independently of the others (the independent reference model)."""
    bounds = np.cumsum(popularity)
    bounds[-1] = 1.0
    return np.searchsorted(bounds, random.random(count), side="right").astype(np.int64)


def _cumulative(curve: tuple[RatePoint, ...], *, seconds: float) -> tuple[Floats, Floats]:
    """Where the rate changes, and the calls until there."""
    starts = [point for point in curve if point.minute * MINUTE < seconds]
    edges = np.array([point.minute * MINUTE for point in starts] + [seconds])
    rates = np.array([point.per_minute / MINUTE for point in starts])
    return edges, np.concatenate(([0.0], np.cumsum(np.diff(edges) * rates)))


def _invert(marks: Floats, *, edges: Floats, sums: Floats) -> Floats:
    """Where so many calls have come, though no calls come for a while: a mark belongs to the interval that rises."""
    place = np.clip(np.searchsorted(sums, marks, side="right") - 1, 0, len(edges) - 2)
    width = sums[place + 1] - sums[place]
    share = np.where(width > 0, (marks - sums[place]) / np.where(width > 0, width, 1.0), 0.0)
    times: Floats = edges[place] + share * (edges[place + 1] - edges[place])
    return times
