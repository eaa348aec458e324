"""How benchmarks measure, in turns, so that other load on this machine meets all alike; figures and their bounds."""

from __future__ import annotations

import asyncio
import math
import os
import statistics
import subprocess
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tritonstack.errors import WorkFailedError
from tritonstack.paths import REPOSITORY
from tritonstack_capacity.bench import bench

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


def timed(command: Sequence[str], *, folder: Path = REPOSITORY, **variables: str) -> tuple[float, str]:
    """Seconds of a program, and its standard output. Raises WorkFailedError, with its errors too, where it fails."""
    environment = {**os.environ, **variables}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    started = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - started
    if done.returncode != 0:
        raise WorkFailedError(f"{command[0]} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return seconds, done.stdout


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
    """The latencies, in seconds, of the requests sent within ``seconds`` after the warm-up; at least one.

    All users go on until the last of these has its response, so that the load is the same for all of them.

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


@dataclass(frozen=True)
class Figure:
    """What was measured, in words and in ``unit``, and the most (or least) that it must keep; None: no bound."""

    what: str
    value: float
    unit: str
    bound: float | None = None
    at_least: bool = field(default=False, kw_only=True)

    @property
    def verdict(self) -> str:
        """``PASS``, ``FAIL``, or nothing without a bound."""
        if self.bound is None:
            return ""
        return "PASS" if (self.value >= self.bound if self.at_least else self.value <= self.bound) else "FAIL"


@cache
def machine() -> dict[str, str]:
    """The machine that the figures are of, and the commit of the code when it was first read."""
    known = bench.versions()
    return {**bench.machine(), "python": known["python"], "commit": known["commit"]}


def tell(name: str, figures: Sequence[Figure]) -> int:
    """Print the figures. Returns 0 where every bound is kept, else 1."""
    table = Table("figure", "value", "bound", "", title=name, title_justify="left")
    for figure in figures:
        colour = {"PASS": "green", "FAIL": "red", "": ""}[figure.verdict]
        value = f"{figure.value:,.0f} {figure.unit}" if figure.value >= 1000 else f"{figure.value:.3g} {figure.unit}"
        bound = "" if figure.bound is None else f"{'≥' if figure.at_least else '≤'} {figure.bound:g} {figure.unit}"
        table.add_row(figure.what, value, bound, figure.verdict, style=colour)
    console = Console(highlight=False)
    console.print(table)
    console.print(", ".join(f"{key} {value}" for key, value in machine().items()), soft_wrap=True)
    return 1 if any(figure.verdict == "FAIL" for figure in figures) else 0
