"""Rounds until they agree, warm-up left out, ramps step by step, and what ends them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tests.tritonstack_capacity.bench.virtual_time import Now, run
from tritonstack_capacity.bench.load import Budget, Phase, Rate, Users
from tritonstack_capacity.bench.measuring import Measuring, PointPart, StabilityRule, StopConditions, Timing

RULE = StabilityRule(within=0.1, confidence=0.95, least=3, most=6, percentile=95.0)
Seconds = Callable[[float], float]
"""How long a call takes that begins at a second."""


def measuring(
    now: Now, seconds: Seconds, *, warm_up: float = 1.0, calls: int = 100_000, most_seconds: float = 1e6
) -> Measuring:
    async def ask() -> str | None:
        await asyncio.sleep(seconds(now()))
        return None

    return Measuring(
        ask,
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


def test_rounds_that_never_agree_end_after_the_most_of_them_and_say_so() -> None:
    point = whole(level(Users(count=1), lambda at: 0.01 if int((at - 1) / 2) % 2 else 0.05))

    assert len(point.rounds) == RULE.most
    assert not point.stable


def test_a_call_that_is_under_way_at_the_end_is_no_rate_but_a_latency() -> None:
    point = whole(level(Users(count=1), lambda at: 0.01 if at < 5.0 else 30.0, warm_up=0.0))

    assert point.all.most_ms == pytest.approx(30_000)
    assert point.rounds[2].most_ms == pytest.approx(30_000), "the round in which it was due"
    assert [one.answered for one in point.rounds[3:]] == [0, 0, 0]
    assert point.all.answered - round(point.all.per_minute * point.all.seconds / 60) == 1


def test_a_call_of_the_warm_up_that_ends_later_is_no_latency() -> None:
    point = whole(level(Users(count=1), lambda at: 0.7 if at < 1.0 else 0.01))

    assert point.all.most_ms == pytest.approx(10), "the one that began at 0.7 ended within the first round"


def test_each_call_is_of_one_round() -> None:
    point = whole(level(Users(count=3), lambda at: 0.3 + at % 0.7))

    assert sum(one.answered for one in point.rounds) == point.all.answered


def test_a_budget_that_is_spent_leaves_the_whole_rounds_or_nothing() -> None:
    assert level(Users(count=1), lambda _: 0.01, most_seconds=2.0) is None
    assert len(whole(level(Users(count=1), lambda _: 0.01, most_seconds=5.5)).rounds) == 2


def test_an_open_loop_answers_what_it_was_asked() -> None:
    point = whole(level(Rate(per_second=50, arrivals="even"), lambda _: 0.2))

    assert point.all.per_minute == pytest.approx(3000, rel=0.02)
    assert point.all.percentiles_ms["50"] == pytest.approx(200)
    assert point.rate_per_second == 50


def ramp(
    phases: tuple[Phase, ...], seconds: Callable[[int], float], stop: StopConditions
) -> list[tuple[PointPart, str | None]]:
    """``seconds``: of a call while so many are under way."""

    async def work(now: Now) -> list[tuple[PointPart, str | None]]:
        under_way = 0

        async def ask() -> str | None:
            nonlocal under_way
            under_way += 1
            await asyncio.sleep(seconds(under_way))
            under_way -= 1
            return None

        one = measuring(now, lambda _: 0.0, warm_up=0.0)
        one._ask = ask
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


def test_a_step_tells_its_own_failures_alone() -> None:
    async def work(now: Now) -> list[dict[str, int]]:
        async def ask() -> str | None:
            await asyncio.sleep(1.0)
            return "503: busy" if now() < 10 else None

        one = measuring(now, lambda _: 0.0, warm_up=0.0)
        one._ask = ask
        phases = (Phase(initial_users=1, users_per_minute=3, seconds=60),)
        never = StopConditions(failed_share=1.0)
        return [point.failures async for point, _ in one.ramp(phases, never)]

    assert run(work) == [{"503: busy": 9}, {}, {}]


def test_a_cancelled_level_leaves_no_call_behind() -> None:
    async def work(now: Now) -> int:
        task = asyncio.create_task(measuring(now, lambda _: 100.0).level(Users(count=5)))
        await asyncio.sleep(1.5)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await asyncio.sleep(0)
        return len(asyncio.all_tasks())

    assert run(work) == 1, "but for the test's own"
