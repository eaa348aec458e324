"""Puts a load on an endpoint and measures it: rounds until they agree, or a ramp step by step."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tritonstack_capacity.bench.arrivals import due_times
from tritonstack_capacity.bench.budget import Budget
from tritonstack_capacity.bench.closed_loop import Ask, ClosedLoop
from tritonstack_capacity.bench.figures import SHARES, Figures, figures
from tritonstack_capacity.bench.load import Load, Phase, Rate, Users, steps
from tritonstack_capacity.bench.open_loop import OpenLoop
from tritonstack_capacity.bench.samples import Numbers, Part
from tritonstack_capacity.bench.stability import Agreement, StabilityRule, agreement
from tritonstack_capacity.bench.stop import StopConditions

TICK_SECONDS = 0.05
"""How often a test looks whether its calls or its time are spent."""
OnRound = Callable[[str, Sequence[Figures], Agreement], None]
"""Gets a load's name, its rounds so far, and how well they agree."""


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Seconds.

    Attributes:
        warm_up: load before the first round, which is left out.
        round: of one round.
    """

    warm_up: float
    round: float


@dataclass(frozen=True, kw_only=True)
class Point:
    """A load and what it came to.

    Attributes:
        load: in words (``4 users``).
        users: of a closed loop; None of an open one.
        rate_per_second: of an open loop, as it was asked for.
        rounds: each round's figures; a ramp's step has one.
        all: the figures of all rounds' calls together.
        agreement: how well the rounds agree.
        failures: words → how often, of the rounds and the warm-up.
    """

    load: str
    users: int | None
    rate_per_second: float | None
    rounds: tuple[Figures, ...]
    all: Figures
    agreement: Agreement
    failures: dict[str, int]


class Measuring:
    """Measures loads on one target, all within one budget."""

    def __init__(
        self,
        ask: Ask,
        *,
        timing: Timing,
        rule: StabilityRule,
        budget: Budget,
        seed: int,
        most_under_way: int,
        now: Callable[[], float],
        on_round: OnRound = lambda *_: None,
    ) -> None:
        """``ask`` makes one call; ``now``: seconds of a monotonic clock; ``on_round``: told each round of a level."""
        self._ask = ask
        self._on_round = on_round
        self._timing = timing
        self._rule = rule
        self._budget = budget
        self._seed = seed
        self._most_under_way = most_under_way
        self._now = now
        self._shares = tuple(sorted({*SHARES, rule.percentile}))
        self._latencies: list[Numbers] = []

    def latencies_ms(self) -> Numbers:
        """Of every right answer after warm-ups, of all loads so far."""
        return np.concatenate(self._latencies) if self._latencies else np.empty(0)

    async def level(self, load: Load) -> Point | None:
        """Rounds of one load until they agree; None where the budget was spent before a whole round."""
        loop = self._loop(load)
        try:
            await self._wait(self._timing.warm_up)
            times, first = [self._now()], len(loop.samples)
            so_far: list[Figures] = []
            while len(so_far) < self._rule.most and await self._wait(self._timing.round):
                times.append(self._now())
                so_far.append(self._figures(loop.samples.part(first), times[-2:]))
                first = len(loop.samples)
                found = agreement(so_far, self._rule)
                self._on_round(load.name, so_far, found)
                if found.stable:
                    break
            await loop.stop()
        except BaseException:
            loop.cancel()
            raise
        if len(times) < 2:
            return None
        # Once more, with the calls that were under way at each round's end: they may be its slowest.
        part = loop.samples.part()
        rounds = tuple(self._figures(part, both) for both in itertools.pairwise(times))
        self._latencies.append(part.where((part.due >= times[0]) & (part.due < times[-1])).latencies_ms)
        return Point(
            load=load.name,
            users=load.count if isinstance(load, Users) else None,
            rate_per_second=load.per_second if isinstance(load, Rate) else None,
            rounds=rounds,
            all=self._figures(part, [times[0], times[-1]]),
            agreement=agreement(rounds, self._rule),
            failures=dict(loop.samples.failures),
        )

    async def ramp(
        self, phases: tuple[Phase, ...], stop: StopConditions
    ) -> AsyncGenerator[tuple[Point, str | None], None]:
        """A point for each number of users, with why it was the last; the warm-up is a load of the first users."""
        loop = ClosedLoop(self._ask, budget=self._budget, now=self._now)
        try:
            if self._timing.warm_up:
                loop.set_users(phases[0].initial_users)
                await self._wait(self._timing.warm_up)
            began = self._now()
            for step in steps(phases):
                loop.set_users(step.users)
                first, before, start = len(loop.samples), Counter(loop.samples.failures), self._now()
                whole = await self._wait(max(0.0, began + step.end - self._now()))
                if not whole:
                    break
                part = loop.samples.part(first)
                found = self._figures(part, [start, self._now()], by="ended")
                self._latencies.append(part.latencies_ms)
                reason = stop.reason(found)
                yield self._step(step.users, found, dict(loop.samples.failures - before)), reason
                if reason is not None:
                    break
            await loop.stop()
        except BaseException:
            loop.cancel()
            raise

    def _step(self, users: int, found: Figures, failures: dict[str, int]) -> Point:
        return Point(
            load=Users(count=users).name,
            users=users,
            rate_per_second=None,
            rounds=(found,),
            all=found,
            agreement=agreement([found], self._rule),
            failures=failures,
        )

    def _loop(self, load: Load) -> ClosedLoop | OpenLoop:
        if isinstance(load, Users):
            closed = ClosedLoop(self._ask, budget=self._budget, now=self._now)
            closed.set_users(load.count)
            return closed
        opened = OpenLoop(
            self._ask,
            due=due_times(load, seed=self._seed),
            most_under_way=self._most_under_way,
            budget=self._budget,
            now=self._now,
        )
        opened.start()
        return opened

    def _figures(self, part: Part, times: Sequence[float], *, by: Literal["due", "ended"] = "due") -> Figures:
        begin, end = times
        return figures(part, begin=begin, end=end, shares=self._shares, by=by)

    async def _wait(self, seconds: float) -> bool:
        """Let the load go on for so long; False where the budget was spent meanwhile."""
        end = self._now() + seconds
        while (left := end - self._now()) > 0:
            if self._budget.spent:
                return False
            await asyncio.sleep(min(left, TICK_SECONDS))
        return True
