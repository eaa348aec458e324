"""Loads on an endpoint: users or arrivals a second, the loops that generate requests, and a sample of each request."""

from __future__ import annotations

import asyncio
import random
from array import array
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

Arrivals = Literal["poisson", "even"]
SECONDS_A_MINUTE = 60.0
SHORTEST_STEP = 1e-6
"""Seconds. What is left of a phase by rounding alone is no step."""


@dataclass(frozen=True, kw_only=True)
class Users:
    """A closed loop: each user sends a request as soon as its previous one is done."""

    count: int

    @property
    def name(self) -> str:
        """Name in tables."""
        return f"{self.count} user{'' if self.count == 1 else 's'}"


@dataclass(frozen=True, kw_only=True)
class Rate:
    """An open loop: requests begin when they are due, whether the ones before are done or not."""

    per_second: float  # how many requests are due in a second, on average
    # ``poisson``: independent of each other, as those of many callers are; ``even``: one like another
    arrivals: Arrivals = "poisson"

    @property
    def name(self) -> str:
        """Name in tables."""
        return f"{self.per_second:g}/s {self.arrivals}"


@dataclass(frozen=True, kw_only=True)
class Phase:
    """One phase of a ramp, with the members of Inference Recommender's ``Phase``."""

    initial_users: int  # with which it begins
    users_per_minute: float  # how many come to them
    seconds: float  # how long it lasts


@dataclass(frozen=True, kw_only=True)
class RampStep:
    """A part of a ramp with the same number of users. Seconds are counted from the ramp's beginning."""

    users: int
    begin: float
    end: float


def steps(phases: tuple[Phase, ...]) -> tuple[RampStep, ...]:
    """The parts of a ramp, in order and without a gap."""
    found: list[RampStep] = []
    begin = 0.0
    for phase in phases:
        end = begin + phase.seconds
        gap = SECONDS_A_MINUTE / phase.users_per_minute if phase.users_per_minute else phase.seconds
        added, at = 0, begin
        while at < end:
            following = begin + (added + 1) * gap
            following = end if following > end - SHORTEST_STEP else following
            found.append(RampStep(users=phase.initial_users + added, begin=at, end=following))
            added, at = added + 1, following
        begin = end
    return tuple(found)


Load = Users | Rate


class Budget:
    """Requests and time that are left to a run."""

    def __init__(self, *, calls: int, seconds: float, now: Callable[[], float]) -> None:
        """``now``: seconds of a monotonic clock."""
        self._calls = calls
        self._most = calls
        self._seconds = seconds
        self._now = now
        self._end = now() + seconds

    def take(self, calls: int = 1) -> bool:
        """Take ``calls`` requests from the budget; False, and none taken, where no request or no time is left."""
        if self.spent:
            return False
        self._calls -= calls
        return True

    def count(self, calls: int) -> None:
        """Count requests that were made already, whatever is left."""
        self._calls -= calls

    @property
    def calls(self) -> int:
        """Number of requests that are left; below 0 where more were made."""
        return self._calls

    @property
    def seconds(self) -> float:
        """Time that is left; below 0 where it is over."""
        return self._end - self._now()

    @property
    def spent(self) -> bool:
        """Whether nothing is left."""
        return self.calls <= 0 or self.seconds <= 0

    @property
    def why(self) -> str:
        """Which of the two is used up, in words; empty while both last."""
        if self.calls <= 0:
            return f"all {self._most} requests were sent (--max-calls)"
        return f"{self._seconds:g} s were over (--max-seconds)" if self.seconds <= 0 else ""


Numbers = npt.NDArray[np.float64]
Choice = npt.NDArray[np.bool_]


@dataclass(kw_only=True)
class Samples:
    """Requests in the order in which they ended."""

    due: array[float] = field(default_factory=lambda: array("d"))
    sent: array[float] = field(default_factory=lambda: array("d"))
    ended: array[float] = field(default_factory=lambda: array("d"))
    failed: array[int] = field(default_factory=lambda: array("b"))
    failures: Counter[str] = field(default_factory=Counter)

    def add(self, *, due: float, sent: float, ended: float, failure: str | None) -> None:
        """Keep a request: when it was due (of a closed loop, when it began), began, and was done or given up.

        Times are seconds of one monotonic clock; ``failure``: why it has no successful response.
        """
        self.due.append(due)
        self.sent.append(sent)
        self.ended.append(ended)
        self.failed.append(failure is not None)
        if failure is not None:
            self.failures[failure] += 1

    def __len__(self) -> int:
        """Number of requests that have ended."""
        return len(self.ended)

    def part(self, first: int = 0) -> RequestTimes:
        """The requests that ended as the ``first``-th and later."""
        due, sent, ended = (np.array(each[first:], dtype=np.float64) for each in (self.due, self.sent, self.ended))
        return RequestTimes(due=due, sent=sent, ended=ended, failed=np.array(self.failed[first:], dtype=bool))


@dataclass(frozen=True, kw_only=True)
class RequestTimes:
    """Some requests as arrays of seconds."""

    due: Numbers
    sent: Numbers
    ended: Numbers
    failed: Choice

    def where(self, chosen: Choice) -> RequestTimes:
        """The samples for which ``chosen`` is true."""
        return RequestTimes(
            due=self.due[chosen], sent=self.sent[chosen], ended=self.ended[chosen], failed=self.failed[chosen]
        )

    @property
    def latencies_ms(self) -> Numbers:
        """Latencies of successful responses, from when the request was due: waiting for its turn counts."""
        return (self.ended - self.due)[~self.failed] * 1000

    @property
    def lateness_ms(self) -> Numbers:
        """Delay of each request's start after it was due."""
        return (self.sent - self.due) * 1000


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


Ask = Callable[[], Awaitable[str | None]]
"""Makes one request. Gives None for a successful response, else in a few words what went wrong; never raises."""
FAILURE_PAUSE_SECONDS = 0.05
"""An endpoint that refuses at once would else be asked thousands of times a second."""


class ClosedLoop:
    """A fixed number of concurrent users, which may be changed while they send requests."""

    def __init__(self, ask: Ask, *, budget: Budget, now: Callable[[], float]) -> None:
        """``now``: seconds of a monotonic clock."""
        self.samples = Samples()
        self._ask = ask
        self._budget = budget
        self._now = now
        self._users = 0
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def set_users(self, count: int) -> None:
        """Set the number of users from now on; a surplus user stops when its request is done."""
        self._users = count
        for number in range(count):
            if number not in self._tasks or self._tasks[number].done():
                self._tasks[number] = asyncio.create_task(self._user(number))

    async def stop(self) -> None:
        """Begin no further request, and wait for those under way."""
        self._users = 0
        await asyncio.gather(*self._tasks.values())
        self._tasks = {}

    def cancel(self) -> None:
        """Give up the requests under way."""
        for task in self._tasks.values():
            task.cancel()

    async def _user(self, number: int) -> None:
        while number < self._users and self._budget.take():
            sent = self._now()
            failure = await self._ask()
            self.samples.add(due=sent, sent=sent, ended=self._now(), failure=failure)
            if failure is not None:
                await asyncio.sleep(FAILURE_PAUSE_SECONDS)


# A latency counts from when the request was due. A server that stalls makes later requests wait; a generator that
# counts from when it sends would leave out just those («coordinated omission»).
NOT_BEGUN = "not begun: so many requests were in progress (--most-under-way)"
"""Why a request failed that was due and had no turn. To leave such requests out would leave out the slowest."""


class OpenLoop:
    """Begins requests by a schedule."""

    def __init__(
        self, ask: Ask, *, due: Iterator[float], most_under_way: int, budget: Budget, now: Callable[[], float]
    ) -> None:
        """Takes the schedule: seconds from the beginning, and the most requests that may be under way at once.

        A request that is due while so many are under way begins later; its latency counts from when it was due.
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
        """Begin no further request, and wait for those under way. What was due by now and not begun has failed."""
        if self._schedule is not None:
            behind = not self._schedule.done()
            self._schedule.cancel()
            await asyncio.gather(self._schedule, return_exceptions=True)
            if behind:
                self._give_up(self._now())
        await asyncio.gather(*self._calls)

    def cancel(self) -> None:
        """Give up the requests under way."""
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
            self.samples.add(due=due, sent=sent, ended=self._now(), failure=failure)
        finally:
            self._room.release()

    def _give_up(self, now: float) -> None:
        due: float | None = self._next
        while due is not None and due < now and self._budget.calls > 0:
            self.samples.add(due=due, sent=now, ended=now, failure=NOT_BEGUN)
            offset = next(self._due, None)
            due = None if offset is None else self._began + offset
