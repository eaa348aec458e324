"""The ways of a scenario, measured in turns: cold starts, then load."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import uvloop

from benchmarks.scenarios.served import ColdStart, Served, Way, served
from tritonstack.errors import WorkFailedError
from tritonstack_capacity.bench.container import between

Step = Callable[[], None]
"""Told of each cold start and each turn of load."""


@dataclass(frozen=True, kw_only=True)
class Repeats:
    """How often, and how many call at once."""

    cold_starts: int = 0  # of each way, after one that is left out; 0 where the ways do not differ in them
    turns: int = 0  # of load, of each way; 0 for the cold start alone
    users: int = 1  # of the closed loop

    def steps(self, ways: int) -> int:
        """How many cold starts and turns of load that is."""
        return ways * (self.cold_starts + bool(self.cold_starts) + self.turns)


@dataclass(frozen=True, kw_only=True)
class Load:
    """What came of a way's turns."""

    # answers a second of each turn: the callers by the mean latency, since each calls again at once. A count over so
    # short a time would leave out parts of calls
    rates: list[float]
    # of all turns' calls
    p50_ms: float
    p95_ms: float
    mean_batch: float | None  # inferences in one execution, as Triton counts them; None where it executed nothing


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What came of a way; ``archive_bytes``, ``request_bytes``: of what was loaded and sent."""

    way: str
    archive_bytes: int
    request_bytes: int
    cold: list[ColdStart]
    load: Load | None


def measure(ways: Sequence[Way], *, repeats: Repeats, folder: Path, step: Step) -> list[Measured]:
    """Cold starts, then loads. All take turns, so that what else runs on this machine meets each of them alike.

    Raises:
        WorkFailedError: a model cannot be made or loaded, or a call fails.
    """
    models = [way.model(folder) for way in ways]
    colds: list[list[ColdStart]] = [[] for _ in ways]
    # The first reads archives and libraries from the disk, which the others find in memory.
    for number in order(len(ways), repeats.cold_starts and repeats.cold_starts + 1):
        with served(ways[number], models[number]) as one:
            colds[number].append(one.cold)
        step()
    loads: list[Load] | list[None] = [None] * len(ways)
    if repeats.turns:
        with contextlib.ExitStack() as stack:
            beside = [stack.enter_context(served(way, model)) for way, model in zip(ways, models, strict=True)]
            loads = uvloop.run(_loads(beside, repeats=repeats, step=step))
    return [
        Measured(
            way=way.name,
            archive_bytes=model.archive.stat().st_size,
            request_bytes=len(model.body.content),
            cold=cold[1:],
            load=load,
        )
        for way, model, cold, load in zip(ways, models, colds, loads, strict=True)
    ]


def order(ways: int, turns: int) -> list[int]:
    """Which way's turn it is: every other time the other way round, so that none is always the first."""
    there = list(range(ways))
    return [number for number_of_turn in range(turns) for number in there[:: -1 if number_of_turn % 2 else 1]]


async def _loads(beside: Sequence[Served], *, repeats: Repeats, step: Step) -> list[Load]:
    latencies: list[list[list[float]]] = [[] for _ in beside]
    before = [one.counters() for one in beside]
    async with contextlib.AsyncExitStack() as stack:
        callers = [await stack.enter_async_context(one.caller(repeats.users)) for one in beside]
        for number in order(len(beside), repeats.turns):
            try:
                latencies[number].append(await turn(callers[number], users=repeats.users))
            except* WorkFailedError as group:
                raise WorkFailedError(f"{beside[number].name}: {group.exceptions[0]}") from None
            step()
    loads = []
    for one, counted, turns in zip(beside, before, latencies, strict=True):
        gained = between(counted, one.counters())
        mean_batch = gained[0].mean_batch or None if gained else None
        loads.append(load_of(turns, users=repeats.users, mean_batch=mean_batch))
    return loads


def load_of(turns: Sequence[Sequence[float]], *, users: int, mean_batch: float | None) -> Load:
    """The figures of the latencies (seconds) of each turn."""
    p50, p95 = np.percentile(np.concatenate([np.asarray(one) for one in turns]), (50, 95)) * 1000
    rates = [users * len(one) / math.fsum(one) for one in turns]
    return Load(rates=rates, p50_ms=float(p50), p95_ms=float(p95), mean_batch=mean_batch)


Ask = Callable[[], Awaitable[str | None]]
"""Makes one call. Gives None for a right answer, else in a few words what went wrong."""
WARM_UP_SECONDS, SECONDS = 0.5, 1.5


async def turn(
    ask: Ask,
    *,
    users: int,
    warm_up: float = WARM_UP_SECONDS,
    seconds: float = SECONDS,
    now: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """The latencies, in seconds, of the calls that began within so many seconds after the warm-up; at least one.

    All go on calling until the last of these is answered, so that none of them has the server more to itself than the
    others had.

    Raises WorkFailedError: a call failed.
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

    async with asyncio.TaskGroup() as group:
        for _ in range(users):
            group.create_task(user())
    return latencies
