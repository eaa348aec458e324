"""Users that call again as soon as they are answered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tritonstack_capacity.bench.budget import Budget
from tritonstack_capacity.bench.samples import Call, Samples

Ask = Callable[[], Awaitable[str | None]]
"""Makes one call. Gives None for a right answer, else in a few words what went wrong; never raises."""
FAILURE_PAUSE_SECONDS = 0.05
"""An endpoint that refuses at once would else be asked thousands of times a second."""


class ClosedLoop:
    """So many users at once; their number may change while they call."""

    def __init__(self, ask: Ask, *, budget: Budget, now: Callable[[], float]) -> None:
        """``now``: seconds of a monotonic clock."""
        self.samples = Samples()
        self._ask = ask
        self._budget = budget
        self._now = now
        self._users = 0
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def set_users(self, count: int) -> None:
        """Let so many call from now on; who is too many stops when it is answered."""
        self._users = count
        for number in range(count):
            if number not in self._tasks or self._tasks[number].done():
                self._tasks[number] = asyncio.create_task(self._user(number))

    async def stop(self) -> None:
        """Begin no further call, and wait for those under way."""
        self._users = 0
        await asyncio.gather(*self._tasks.values())
        self._tasks = {}

    def cancel(self) -> None:
        """Give up the calls under way."""
        for task in self._tasks.values():
            task.cancel()

    async def _user(self, number: int) -> None:
        while number < self._users and self._budget.take():
            sent = self._now()
            failure = await self._ask()
            self.samples.add(Call(due=sent, sent=sent, ended=self._now(), failure=failure))
            if failure is not None:
                await asyncio.sleep(FAILURE_PAUSE_SECONDS)
