"""The ways of a scenario, measured in turns: cold starts, then load."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import uvloop

from benchmarks.measuring import order, rate_of, turn
from benchmarks.scenarios.served import ColdStart, Served, Way, served
from tritonstack.errors import WorkFailedError
from tritonstack_capacity.bench.container import between


@dataclass(frozen=True, kw_only=True)
class Repeats:
    """How often, and how many call at once."""

    cold_starts: int = 0  # of each way, after one that is left out; 0 where the ways do not differ in them
    turns: int = 0  # of load, of each way; 0 for the cold start alone
    users: int = 1  # of the closed loop


@dataclass(frozen=True, kw_only=True)
class Load:
    """What came of a way's turns."""

    rates: list[float]  # requests a second of each turn
    # of all turns' requests
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


def measure(ways: Sequence[Way], *, repeats: Repeats, folder: Path) -> list[Measured]:
    """Cold starts, then loads. All take turns, so that what else runs on this machine meets each of them alike.

    Raises:
        WorkFailedError: a model cannot be made or loaded, or a request fails.
    """
    models = [way.model(folder) for way in ways]
    colds: list[list[ColdStart]] = [[] for _ in ways]
    # The first reads archives and libraries from the disk, which the others find in memory.
    for number in order(len(ways), repeats.cold_starts and repeats.cold_starts + 1):
        with served(ways[number], models[number]) as one:
            colds[number].append(one.cold)
    loads: list[Load] | list[None] = [None] * len(ways)
    if repeats.turns:
        with contextlib.ExitStack() as stack:
            served_ways = [stack.enter_context(served(way, model)) for way, model in zip(ways, models, strict=True)]
            loads = uvloop.run(_loads(served_ways, repeats=repeats))
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


async def _loads(served_ways: Sequence[Served], *, repeats: Repeats) -> list[Load]:
    latencies: list[list[list[float]]] = [[] for _ in served_ways]
    before = [one.counters() for one in served_ways]
    async with contextlib.AsyncExitStack() as stack:
        callers = [await stack.enter_async_context(one.caller(repeats.users)) for one in served_ways]
        for number in order(len(served_ways), repeats.turns):
            try:
                latencies[number].append(await turn(callers[number], users=repeats.users))
            except WorkFailedError as error:
                raise WorkFailedError(f"{served_ways[number].name}: {error}") from error
    loads = []
    for one, counted, turns in zip(served_ways, before, latencies, strict=True):
        gained = between(counted, one.counters())
        mean_batch = gained[0].mean_batch or None if gained else None
        loads.append(load_of(turns, users=repeats.users, mean_batch=mean_batch))
    return loads


def load_of(turns: Sequence[Sequence[float]], *, users: int, mean_batch: float | None) -> Load:
    """The figures of the latencies (seconds) of each turn."""
    p50, p95 = np.percentile(np.concatenate([np.asarray(one) for one in turns]), (50, 95)) * 1000
    rates = [rate_of(one, users=users) for one in turns]
    return Load(rates=rates, p50_ms=float(p50), p95_ms=float(p95), mean_batch=mean_batch)
