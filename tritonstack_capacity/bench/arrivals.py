"""When the calls of an open loop are due."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tritonstack_capacity.bench.load import Rate


def due_times(rate: Rate, *, seed: int) -> Iterator[float]:
    """Seconds from the beginning, without an end; the same for the same seed."""
    if rate.arrivals == "even":
        number = 0
        while True:
            yield number / rate.per_second
            number += 1
    dice = random.Random(seed)  # noqa: S311 - nothing is secret about a load
    moment = 0.0
    while True:
        moment += dice.expovariate(rate.per_second)
        yield moment
