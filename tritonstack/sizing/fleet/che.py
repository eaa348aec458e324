"""Che's approximation: hit ratios of an LRU cache without a replay, at any size.

Each model stays for the same time T after its last call ("characteristic time"), so that it is there with probability
1 - exp(-rate * T), and T is what fills the cache: the sum of size * (1 - exp(-rate * T)) is the capacity (Che, Tung and
Wang, "Hierarchical Web Caching Systems", IEEE JSAC 20(7), 2002; why it is so near: Fricker, Robert and Roberts, "A
versatile and accurate approximation for LRU cache performance", ITC 24, 2012). It holds for independent calls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tritonstack.sizing.fleet.model_table import Floats

NEAR = 1e-9
"""How near the characteristic time is found, relative to itself."""


@dataclass(frozen=True, kw_only=True)
class CheEstimate:
    """An LRU cache in its steady state.

    Attributes:
        seconds: the characteristic time; infinite where all models fit.
        hit_ratio: of all calls.
        held: each model's probability to be there.
    """

    seconds: float
    hit_ratio: float
    held: Floats

    @property
    def models_held(self) -> float:
        """How many models are there, on average."""
        return float(self.held.sum())


def che(rates: Floats, *, limits: tuple[tuple[Floats, float], ...]) -> CheEstimate:
    """The cache at ``rates`` (calls a second of each model, zero or more, some above).

    ``limits``: pairs of the models' sizes and the capacity for them, in one unit each (bytes of GPU memory; ones and
    the greatest number of models). The limit that is reached first decides.
    """
    seconds = min((_characteristic_time(rates, sizes=sizes, capacity=room) for sizes, room in limits), default=math.inf)
    held = (rates > 0).astype(np.float64) if math.isinf(seconds) else -np.expm1(-rates * seconds)
    return CheEstimate(seconds=seconds, hit_ratio=float((rates * held).sum() / rates.sum()), held=held)


def _characteristic_time(rates: Floats, *, sizes: Floats, capacity: float) -> float:
    called = rates > 0
    if float(sizes[called].sum()) <= capacity:
        return math.inf

    def filled(seconds: float) -> float:
        return float((sizes * -np.expm1(-rates * seconds)).sum())

    low, high = 0.0, 1.0 / float(rates.max())
    while filled(high) < capacity:
        low, high = high, high * 2
    while high - low > NEAR * high:
        middle = (low + high) / 2
        low, high = (middle, high) if filled(middle) < capacity else (low, middle)
    return (low + high) / 2
