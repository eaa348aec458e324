"""Calls that begin when they are due, whether the ones before are answered or not.

A latency counts from when the call was due. A server that stalls makes later calls wait, and a generator that waits
with it and counts from when it sent would leave out just those («coordinated omission»).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from tritonstack.bench.budget import Budget
from tritonstack.bench.closed_loop import Ask
from tritonstack.bench.samples import Call, Samples


class OpenLoop:
    """Begins calls by a schedule."""

    def __init__(
        self, ask: Ask, *, due: Iterator[float], most_under_way: int, budget: Budget, now: Callable[[], float]
    ) -> None:
        """Takes the schedule: seconds from the beginning, and the most calls that may be under way at once.

        A call that is due while so many are under way begins later; its latency counts from when it was due.
        """
        self.samples = Samples()
        self._ask = ask
        self._due = due
        self._room = asyncio.Semaphore(most_under_way)
        self._budget = budget
        self._now = now
        self._calls: set[asyncio.Task[None]] = set()
        self._schedule: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin the schedule now."""
        self._schedule = asyncio.create_task(self._run(self._now()))

    async def stop(self) -> None:
        """Begin no further call, and wait for those under way."""
        if self._schedule is not None:
            self._schedule.cancel()
            await asyncio.gather(self._schedule, return_exceptions=True)
        await asyncio.gather(*self._calls)

    def cancel(self) -> None:
        """Give up the calls under way."""
        for task in (self._schedule, *self._calls):
            if task is not None:
                task.cancel()

    async def _run(self, began: float) -> None:
        for offset in self._due:
            wait = began + offset - self._now()
            if wait > 0:
                await asyncio.sleep(wait)
            await self._room.acquire()
            if not self._budget.take():
                return
            task = asyncio.create_task(self._one(began + offset))
            self._calls.add(task)
            task.add_done_callback(self._calls.discard)

    async def _one(self, due: float) -> None:
        try:
            sent = self._now()
            failure = await self._ask()
            self.samples.add(Call(due=due, sent=sent, ended=self._now(), failure=failure))
        finally:
            self._room.release()
