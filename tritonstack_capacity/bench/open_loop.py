"""Calls that begin when they are due, whether the ones before are answered or not.

A latency counts from when the call was due. A server that stalls makes later calls wait, and a generator that waits
with it and counts from when it sent would leave out just those («coordinated omission»).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from tritonstack_capacity.bench.budget import Budget
from tritonstack_capacity.bench.closed_loop import Ask
from tritonstack_capacity.bench.samples import Call, Samples

NOT_BEGUN = "not begun: so many calls were under way (--most-under-way)"
"""Why a call failed that was due and had no turn. To leave such calls out would leave out the slowest."""


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
        self._began = self._next = 0.0

    def start(self) -> None:
        """Begin the schedule now."""
        self._began = self._now()
        self._schedule = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Begin no further call, and wait for those under way. What was due by now and not begun has failed."""
        if self._schedule is not None:
            behind = not self._schedule.done()
            self._schedule.cancel()
            await asyncio.gather(self._schedule, return_exceptions=True)
            if behind:
                self._give_up(self._now())
        await asyncio.gather(*self._calls)

    def cancel(self) -> None:
        """Give up the calls under way."""
        for task in (self._schedule, *self._calls):
            if task is not None:
                task.cancel()

    async def _run(self) -> None:
        for offset in self._due:
            self._next = self._began + offset
            wait = self._next - self._now()
            if wait > 0:
                await asyncio.sleep(wait)
            await self._room.acquire()
            if not self._budget.take():
                return
            task = asyncio.create_task(self._one(self._next))
            self._calls.add(task)
            task.add_done_callback(self._calls.discard)

    async def _one(self, due: float) -> None:
        try:
            sent = self._now()
            failure = await self._ask()
            self.samples.add(Call(due=due, sent=sent, ended=self._now(), failure=failure))
        finally:
            self._room.release()

    def _give_up(self, now: float) -> None:
        due: float | None = self._next
        while due is not None and due < now and self._budget.calls > 0:
            self.samples.add(Call(due=due, sent=now, ended=now, failure=NOT_BEGUN))
            offset = next(self._due, None)
            due = None if offset is None else self._began + offset
