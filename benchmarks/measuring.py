"""How benchmarks measure: what is compared takes turns, so that other load on this machine meets all of it alike."""

from __future__ import annotations

import asyncio
import math
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from tritonstack.errors import WorkFailedError

CALLERS = 16
Ask = Callable[[], Awaitable[str | None]]
"""Sends one request. Gives None for a right response, else in a few words what went wrong."""
WARM_UP_SECONDS, SECONDS = 0.5, 1.5


def order(ways: int, turns: int) -> list[int]:
    """Which way's turn it is: every other time the other way round, so that none is always the first."""
    there = list(range(ways))
    return [number for number_of_turn in range(turns) for number in there[:: -1 if number_of_turn % 2 else 1]]


def in_turns(*ways: Callable[[], float], rounds: int) -> list[list[float]]:
    """What each way gives (seconds), round by round, after a round that is not counted."""
    found: list[list[float]] = [[] for _ in ways]
    for number in order(len(ways), rounds + 1):
        found[number].append(ways[number]())
    return [seconds[1:] for seconds in found]


def ratio(mine: Sequence[float], other: Sequence[float]) -> float:
    """The median of the ratios, round by round."""
    return statistics.median(one / two for one, two in zip(mine, other, strict=True))


async def turn(
    ask: Ask,
    *,
    users: int,
    warm_up: float = WARM_UP_SECONDS,
    seconds: float = SECONDS,
    now: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """The latencies, in seconds, of the requests sent within so many seconds after the warm-up; at least one.

    All users go on until the last of these is answered, so that none of them has the server more to itself than the
    others had.

    Raises WorkFailedError: a request failed.
    """
    begin = now() + warm_up
    end = begin + seconds
    latencies: list[float] = []
    under_way = 0

    async def user() -> None:
        nonlocal under_way
        while now() < end or under_way or not latencies:
            sent = now()
            counts = sent >= begin and (sent < end or not latencies)
            under_way += counts
            failure = await ask()
            under_way -= counts
            if failure is not None:
                raise WorkFailedError(failure)
            if counts:
                latencies.append(now() - sent)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(users):
                group.create_task(user())
    except* WorkFailedError as failures:
        raise failures.exceptions[0] from None
    return latencies


def rate_of(latencies: Sequence[float], *, users: int) -> float:
    """Requests a second of a closed loop: a count over so short a time would leave out parts of requests."""
    return users * len(latencies) / math.fsum(latencies)


@dataclass(frozen=True, kw_only=True)
class Loads:
    """What came of one way, round by round."""

    ms: list[float]  # the median latency of one caller
    rates: list[float]  # requests a second of ``CALLERS``


async def compared(*ways: tuple[Ask, Ask], rounds: int) -> list[Loads]:
    """Each way with one caller, which sends by its first, and with ``CALLERS``, which send by its second; in turns.

    Raises WorkFailedError: a request failed.
    """
    found = [Loads(ms=[], rates=[]) for _ in ways]
    for number in order(len(ways), rounds):
        one, several = ways[number]
        found[number].ms.append(statistics.median(await turn(one, users=1)) * 1000)
        found[number].rates.append(rate_of(await turn(several, users=CALLERS), users=CALLERS))
    return found
