"""Puts a load on an endpoint and measures it: rounds until they agree, or a ramp step by step."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass

import numpy as np

from tritonstack.bench.arrivals import due_times
from tritonstack.bench.budget import Budget
from tritonstack.bench.closed_loop import Ask, ClosedLoop
from tritonstack.bench.figures import SHARES, Figures, figures
from tritonstack.bench.load import Load, Phase, Rate, Users, steps
from tritonstack.bench.open_loop import OpenLoop
from tritonstack.bench.samples import Numbers, Samples
from tritonstack.bench.stability import Agreement, StabilityRule, agreement
from tritonstack.bench.stop import StopConditions

TICK_SECONDS = 0.05
"""How often a test looks whether its calls or its time are spent."""


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
    ) -> None:
        """``ask`` makes one call; ``now``: seconds of a monotonic clock."""
        self._ask = ask
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
            cuts = [len(loop.samples)]
            times = [self._now()]
            rounds: list[Figures] = []
            while len(rounds) < self._rule.most and await self._wait(self._timing.round):
                cuts.append(len(loop.samples))
                times.append(self._now())
                rounds.append(self._figures(loop.samples, cuts[-2:], times[-2:]))
                if agreement(rounds, self._rule).stable:
                    break
            await loop.stop()
        except BaseException:
            loop.cancel()
            raise
        if not rounds:
            return None
        # The calls that were under way at the end belong to the last round: they may be its slowest.
        rounds[-1] = self._figures(loop.samples, [cuts[-2], None], times[-2:])
        self._latencies.append(loop.samples.part(cuts[0]).latencies_ms)
        return Point(
            load=load.name,
            users=load.count if isinstance(load, Users) else None,
            rate_per_second=load.per_second if isinstance(load, Rate) else None,
            rounds=tuple(rounds),
            all=self._figures(loop.samples, [cuts[0], None], [times[0], times[-1]]),
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
                first, start = len(loop.samples), self._now()
                whole = await self._wait(max(0.0, began + step.end - self._now()))
                if not whole:
                    break
                found = self._figures(loop.samples, [first, None], [start, self._now()])
                self._latencies.append(loop.samples.part(first).latencies_ms)
                reason = stop.reason(found)
                yield self._step(step.users, found, loop.samples), reason
                if reason is not None:
                    break
            await loop.stop()
        except BaseException:
            loop.cancel()
            raise

    def _step(self, users: int, found: Figures, samples: Samples) -> Point:
        return Point(
            load=Users(count=users).name,
            users=users,
            rate_per_second=None,
            rounds=(found,),
            all=found,
            agreement=agreement([found], self._rule),
            failures=dict(samples.failures),
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

    def _figures(self, samples: Samples, cuts: list[int] | list[int | None], times: list[float]) -> Figures:
        part = samples.part(cuts[0] or 0, cuts[1])
        return figures(part, begin=times[0], end=times[1], shares=self._shares)

    async def _wait(self, seconds: float) -> bool:
        """Let the load go on for so long; False where the budget was spent meanwhile."""
        end = self._now() + seconds
        while (left := end - self._now()) > 0:
            if self._budget.spent:
                return False
            await asyncio.sleep(min(left, TICK_SECONDS))
        return True
