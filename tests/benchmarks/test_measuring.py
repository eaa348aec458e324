"""A turn of load, on a clock of its own, and what is made of its latencies."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.measuring import in_turns, order, ratio, turn
from tests.tritonstack_capacity.bench.virtual_time import Now, run
from tritonstack.errors import WorkFailedError


class Server:
    """Responds to one request after another, each in the given seconds.

    ``came``: arrival times. ``beside``: for each request of the turn's second, the number in the queue at its response.
    """

    def __init__(self, now: Now, *, seconds: float, fails: int | None = None) -> None:
        self._now, self._seconds, self._fails = now, seconds, fails
        self._one = asyncio.Lock()
        self.came: list[float] = []
        self.beside: list[int] = []
        self._there = 0

    async def ask(self) -> str | None:
        """One call."""
        came = self._now()
        self.came.append(came)
        self._there += 1
        async with self._one:
            await asyncio.sleep(self._seconds)
        if 0.5 <= came < 1.5:
            self.beside.append(self._there)
        self._there -= 1
        return "507: no memory" if len(self.came) == self._fails else None


def latencies(*, users: int, seconds: float, fails: int | None = None) -> tuple[list[float], Server]:
    """Of a turn of one second after half a second of warm-up."""

    async def work(now: Now) -> tuple[list[float], Server]:
        server = Server(now, seconds=seconds, fails=fails)
        return await turn(server.ask, users=users, warm_up=0.5, seconds=1.0, now=now), server

    return run(work)


def test_calls_of_the_warm_up_are_left_out() -> None:
    found, server = latencies(users=1, seconds=0.125)
    assert found == [pytest.approx(0.125)] * 8
    assert len(server.came) == 12


def test_several_callers_wait_for_each_other_to_the_last_call_that_counts() -> None:
    found, server = latencies(users=4, seconds=0.0625)
    assert found == [pytest.approx(0.25)] * len(found)
    assert server.beside == [4] * len(found) == [4] * 16


def test_a_call_that_fails_ends_the_turn() -> None:
    with pytest.raises(WorkFailedError, match="507: no memory"):
        latencies(users=2, seconds=0.25, fails=5)


def test_every_other_turn_is_the_other_way_round_and_a_first_round_is_not_counted() -> None:
    assert order(3, 3) == [0, 1, 2, 2, 1, 0, 0, 1, 2]
    seconds = iter([9.0, 9.0, 2.0, 4.0, 6.0, 3.0])
    ours, theirs = in_turns(lambda: next(seconds), lambda: next(seconds), rounds=2)
    assert (ours, theirs) == ([4.0, 6.0], [2.0, 3.0])
    assert ratio(ours, theirs) == 2.0
