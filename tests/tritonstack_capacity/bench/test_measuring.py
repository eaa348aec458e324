"""Loops on a clock of their own, rounds until they agree, ramps, and arithmetic against values computed elsewhere."""

from __future__ import annotations

import asyncio
import itertools
import statistics
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.tritonstack_capacity.bench.virtual_time import Now, run
from tritonstack_capacity.bench.load import (
    NOT_BEGUN,
    Budget,
    ClosedLoop,
    OpenLoop,
    Phase,
    Rate,
    RequestTimes,
    Samples,
    Users,
    due_times,
    steps,
)
from tritonstack_capacity.bench.measuring import (
    Measuring,
    PointPart,
    StabilityRule,
    StopConditions,
    Timing,
    figures,
    mean_interval,
)

RULE = StabilityRule(within=0.1, least=3, most=6, percentile=95.0)
Seconds = Callable[[float], float]
"""How long a call takes that begins at a second."""


def measuring(
    now: Now, seconds: Seconds, *, warm_up: float = 1.0, calls: int = 100_000, most_seconds: float = 1e6
) -> Measuring:
    async def request() -> str | None:
        await asyncio.sleep(seconds(now()))
        return None

    return Measuring(
        request,
        timing=Timing(warm_up=warm_up, round=2.0),
        rule=RULE,
        budget=Budget(calls=calls, seconds=most_seconds, now=now),
        seed=0,
        most_under_way=100,
        now=now,
    )


def level(load: Users | Rate, seconds: Seconds, **options: float) -> PointPart | None:
    async def work(now: Now) -> PointPart | None:
        return await measuring(now, seconds, **options).level(load)  # type: ignore[arg-type]  # all are numbers

    return run(work)


def whole(point: PointPart | None) -> PointPart:
    assert point is not None
    return point


def test_rounds_that_agree_end_after_the_least_of_them() -> None:
    point = whole(level(Users(count=2), lambda _: 0.01))

    assert len(point.rounds) == RULE.least
    assert point.stable
    assert point.all.per_minute == pytest.approx(12_000, rel=0.02)
    assert point.all.percentiles_ms["95"] == pytest.approx(10)


def test_rounds_that_never_agree_end_at_the_maximum_and_are_reported() -> None:
    point = whole(level(Users(count=1), lambda at: 0.01 if int((at - 1) / 2) % 2 else 0.05))

    assert len(point.rounds) == RULE.most
    assert not point.stable


def test_a_call_that_is_under_way_at_the_end_is_no_rate_but_a_latency() -> None:
    point = whole(level(Users(count=1), lambda at: 0.01 if at < 5.0 else 30.0, warm_up=0.0))

    assert point.all.most_ms == pytest.approx(30_000)
    assert point.rounds[2].most_ms == pytest.approx(30_000), "the round in which it was due"
    assert [one.answered for one in point.rounds[3:]] == [0, 0, 0]
    assert point.all.answered - round(point.all.per_minute * point.all.seconds / 60) == 1


def test_a_budget_that_is_spent_leaves_the_whole_rounds_or_nothing() -> None:
    assert level(Users(count=1), lambda _: 0.01, most_seconds=2.0) is None
    assert len(whole(level(Users(count=1), lambda _: 0.01, most_seconds=5.5)).rounds) == 2


def ramp(
    phases: tuple[Phase, ...], seconds: Callable[[int], float], stop: StopConditions
) -> list[tuple[PointPart, str | None]]:
    """``seconds``: of a call while so many are under way."""

    async def work(now: Now) -> list[tuple[PointPart, str | None]]:
        under_way = 0

        async def request() -> str | None:
            nonlocal under_way
            under_way += 1
            await asyncio.sleep(seconds(under_way))
            under_way -= 1
            return None

        one = measuring(now, lambda _: 0.0, warm_up=0.0)
        one._ask = request
        return [found async for found in one.ramp(phases, stop)]

    return run(work)


def test_a_ramp_has_a_point_for_each_number_of_users() -> None:
    phases = (
        Phase(initial_users=1, users_per_minute=6, seconds=30),
        Phase(initial_users=10, users_per_minute=0, seconds=5),
    )

    found = ramp(phases, lambda _: 0.1, StopConditions())

    assert [point.users for point, _ in found] == [1, 2, 3, 10]
    assert [round(point.all.per_minute) for point, _ in found] == pytest.approx([600, 1200, 1800, 6000], rel=0.03)
    assert [reason for _, reason in found] == [None] * 4


@pytest.mark.parametrize(
    ("seconds", "stop", "users", "why"),
    [
        (lambda users: 0.05 * users, StopConditions(latency_ms=220.0), 5, "p95 250 ms is above 220 ms"),
        (lambda _: 0.1, StopConditions(per_minute=1150), 2, "1188 a minute reach 1150"),
    ],
    ids=["latency", "rate"],
)
def test_a_ramp_stops_where_it_must(
    seconds: Callable[[int], float], stop: StopConditions, users: int, why: str
) -> None:
    found = ramp((Phase(initial_users=1, users_per_minute=6, seconds=600),), seconds, stop)

    assert [point.users for point, _ in found] == list(range(1, users + 1))
    assert found[-1][1] == why


def test_the_interval_of_a_mean_is_scipys() -> None:
    # scipy.stats.t.interval(0.95, 4, loc=mean(x), scale=sem(x)) of these five: (8.834365521916686, 15.165634478083314)
    found = mean_interval([10.0, 12.0, 9.0, 14.0, 15.0])

    assert found.mean == 12.0
    assert found.half_width == pytest.approx(3.165634478083314, rel=1e-3)
    assert mean_interval([3.0]).half_width is None, "one value says nothing of its mean"


def test_latencies_are_of_the_calls_that_were_due_in_its_time() -> None:
    samples = Samples()
    for due, ended in ((0.9, 1.5), (1.2, 1.3), (1.9, 4.0), (2.0, 2.1)):
        samples.add(due=due, sent=due, ended=ended, failure=None)

    by_due = figures(samples.part(), begin=1.0, end=2.0)
    by_end = figures(samples.part(), begin=1.0, end=2.0, by="ended")

    assert (by_due.answered, by_end.answered) == (2, 2)
    assert by_due.most_ms == pytest.approx(2100)
    assert by_end.most_ms == pytest.approx(600)
    assert by_due.per_minute == by_end.per_minute == 120

    samples.add(due=1.5, sent=1.6, ended=1.7, failure="503")
    found = figures(samples.part(), begin=1.0, end=2.0)
    assert (found.answered, found.failed, found.per_minute) == (2, 1, 120)
    assert found.late_ms == pytest.approx(98)


def test_the_published_ramp_goes_from_two_users_to_fifty_one() -> None:
    found = steps((Phase(initial_users=2, users_per_minute=2, seconds=1500),))

    assert [step.users for step in found] == list(range(2, 52))
    assert (found[0].begin, found[-1].end) == (0.0, 1500.0)
    assert all(step.end - step.begin == pytest.approx(30) for step in found)


@given(st.floats(min_value=0, max_value=200), st.floats(min_value=1, max_value=3600), st.integers(1, 50))
@example(199.0, 900.0, 1)  # whose steps do not add up to 900 but for rounding
def test_the_steps_of_a_ramp_fill_it_without_a_gap(rate: float, seconds: float, users: int) -> None:
    found = steps((Phase(initial_users=users, users_per_minute=rate, seconds=seconds),) * 2)

    assert found[0].begin == 0
    assert found[-1].end == pytest.approx(2 * seconds)
    assert all(one.end == two.begin for one, two in itertools.pairwise(found))
    assert all(step.end - step.begin > 5e-7 for step in found), "what rounding leaves is no step"


class Server:
    """Responds after the given seconds; during a stall, every request waits for the stall's end."""

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
    part: RequestTimes = samples.part(0)
    return [round(float(value), 3) for value in sorted(part.ended - part.due)]


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


def test_each_user_sends_its_next_request_at_once_and_stops_where_it_is_too_many() -> None:
    samples, most, _ = closed(0.25, (3, 2.1))
    assert (len(samples), most) == (27, 3)
    fewer, _, _ = closed(1.0, (3, 1.5), (1, 2.0))
    assert sorted(fewer.sent) == [0, 0, 0, 1, 1, 1, 2, 3]


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
