"""Closed and open loops on a clock of their own: when calls begin, and from when their latency counts."""

from __future__ import annotations

import asyncio
import itertools
import statistics
from typing import Any

import pytest

from tests.tritonstack_capacity.bench.virtual_time import Now, run
from tritonstack_capacity.bench.load import NOT_BEGUN, Budget, ClosedLoop, OpenLoop, Part, Rate, Samples, due_times


class Server:
    """Answers after so many seconds; while it stalls, everyone waits for the stall's end."""

    def __init__(self, now: Now, *, seconds: float, stall: tuple[float, float] = (0.0, 0.0)) -> None:
        self.now, self.seconds, self.stall = now, seconds, stall
        self.under_way = self.most = 0

    async def __call__(self) -> str | None:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        begin, end = self.stall
        if begin <= self.now() < end:
            await asyncio.sleep(end - self.now())
        await asyncio.sleep(self.seconds)
        self.under_way -= 1
        return None


def budget(now: Now, *, calls: int = 100_000, seconds: float = 1e6) -> Budget:
    return Budget(calls=calls, seconds=seconds, now=now)


def opened(
    *, seconds: float, stall: tuple[float, float] = (0.0, 0.0), under_way: int = 1000, calls: int = 40
) -> tuple[Samples, int]:
    """Ten calls a second, evenly; the samples, and how many calls were at the server at once."""

    async def work(now: Now) -> tuple[Samples, int]:
        server = Server(now, seconds=seconds, stall=stall)
        due = itertools.islice(due_times(Rate(per_second=10, arrivals="even"), seed=0), calls)
        loop = OpenLoop(server, due=due, most_under_way=under_way, budget=budget(now), now=now)
        loop.start()
        await asyncio.sleep(20)
        await loop.stop()
        return loop.samples, server.most

    return run(work)


def latencies(samples: Samples) -> list[float]:
    part: Part = samples.part(0)
    return [round(float(value), 3) for value in sorted(part.ended - part.due)]


def test_a_slow_server_makes_no_call_of_an_open_loop_late() -> None:
    samples, most = opened(seconds=1.0)

    assert [round(value, 6) for value in sorted(samples.sent)] == [number / 10 for number in range(40)]
    assert most == 10


def test_calls_that_were_due_during_a_stall_count_from_when_they_were_due() -> None:
    samples, most = opened(seconds=0.01, stall=(0.95, 2.0), under_way=1)

    assert most == 1, "one connection: those that are due meanwhile cannot even begin"
    # Due at 1.0: a second and its own time. Each after it was due 0.1 s later and answered 0.01 s later.
    expected = [1.01 - 0.09 * number for number in range(11)]
    assert [value for value in latencies(samples) if value > 0.1] == pytest.approx(sorted(expected))


def closed(seconds: float, *users: tuple[int, float], calls: int = 100_000, **server: Any) -> tuple[Samples, int, str]:
    """So many users for so many seconds, one after the other; samples, most calls at once, what was spent."""

    async def work(now: Now) -> tuple[Samples, int, str]:
        one, left = Server(now, seconds=seconds, **server), budget(now, calls=calls)
        loop = ClosedLoop(one, budget=left, now=now)
        for count, lasting in users:
            loop.set_users(count)
            await asyncio.sleep(lasting)
        await loop.stop()
        return loop.samples, one.most, left.why

    return run(work)


def test_a_closed_loop_sees_one_slow_call_where_an_open_one_sees_all_that_waited() -> None:
    slow_closed = [value for value in latencies(closed(0.1, (1, 4.0), stall=(1.0, 2.0))[0]) if value > 0.3]
    slow_open = [value for value in latencies(opened(seconds=0.1, stall=(0.95, 2.0))[0]) if value > 0.3]

    assert len(slow_closed) == 1
    assert len(slow_open) == 8


def test_each_user_calls_again_as_soon_as_it_is_answered_and_stops_where_it_is_too_many() -> None:
    samples, most, _ = closed(0.25, (3, 2.1))
    assert (len(samples), most) == (27, 3)
    fewer, _, _ = closed(1.0, (3, 1.5), (1, 2.0))
    assert sorted(fewer.sent) == [0, 0, 0, 1, 1, 1, 2, 3]


def test_no_call_is_made_beyond_the_budget() -> None:
    samples, _, why = closed(0.1, (3, 5.0), calls=7)
    assert (len(samples), why) == (7, "all 7 calls were made (--max-calls)")


def test_users_who_come_back_are_as_many_as_they_should_be() -> None:
    """The fourth of five stops while the fifth is still under way: neither its place nor its return is forgotten."""

    async def work(now: Now) -> int:
        durations = iter([1.0, 1.0, 1.0, 1.0, 50.0, *[1.0] * 1000])
        under_way = 0

        async def ask() -> str | None:
            nonlocal under_way
            under_way += 1
            await asyncio.sleep(next(durations))
            under_way -= 1
            return None

        loop = ClosedLoop(ask, budget=budget(now), now=now)
        loop.set_users(5)
        await asyncio.sleep(0.5)
        loop.set_users(3)
        await asyncio.sleep(2.0)
        loop.set_users(5)
        await asyncio.sleep(0.1)
        found = under_way
        await loop.stop()
        return found

    assert run(work) == 5


def test_calls_that_were_due_and_had_no_turn_have_failed_unless_they_are_beyond_the_budget() -> None:
    """One connection, a server of a second: of ten calls a second nine are not even begun."""

    def begun(calls: int, seconds: float) -> Samples:
        async def work(now: Now) -> Samples:
            due = due_times(Rate(per_second=10, arrivals="even"), seed=0)
            left = budget(now, calls=calls)
            loop = OpenLoop(Server(now, seconds=1.0), due=due, most_under_way=1, budget=left, now=now)
            loop.start()
            await asyncio.sleep(seconds)
            await loop.stop()
            return loop.samples

        return run(work)

    samples = begun(100_000, 3.95)
    assert len(samples) == 40, "every call that was due"
    assert samples.failures == {NOT_BEGUN: 36}
    assert len(samples.part().latencies_ms) == 4
    assert not begun(2, 1.5).failures


def test_poisson_arrivals_are_independent_and_repeatable() -> None:
    def gaps(seed: int) -> list[float]:
        times = list(itertools.islice(due_times(Rate(per_second=50), seed=seed), 20_000))
        return [after - before for before, after in itertools.pairwise(times)]

    found = gaps(7)

    assert statistics.mean(found) == pytest.approx(1 / 50, rel=0.03)
    assert statistics.stdev(found) == pytest.approx(1 / 50, rel=0.03), "of an exponential one, as much as the mean"
    assert gaps(7) == found
    assert gaps(8) != found
