"""The clock that tests can move."""

from __future__ import annotations

import threading

import pytest

from tests.tritonstack_local.emulator.running import Emulator
from tritonstack_local.emulator.clock import Clock

LONG = 3600.0


def test_moving_the_clock_passes_a_deadline_and_wakes_who_waits_for_it() -> None:
    clock = Clock()
    deadline = clock.deadline(LONG)
    answers: list[bool] = []
    waiter = threading.Thread(target=lambda: answers.append(clock.wait_for(lambda: False, deadline)))
    waiter.start()
    clock.advance(LONG / 2)
    assert not deadline.passed
    assert waiter.is_alive()
    clock.advance(LONG / 2)
    waiter.join(timeout=10)
    assert (answers, deadline.passed, deadline.remaining) == ([False], True, 0)


def test_what_happens_before_the_deadline_ends_the_wait() -> None:
    clock, happened = Clock(), threading.Event()
    answers: list[bool] = []
    waiter = threading.Thread(target=lambda: answers.append(clock.wait_for(happened.is_set, clock.deadline(LONG))))
    waiter.start()
    with clock.condition:
        happened.set()
        clock.condition.notify_all()
    waiter.join(timeout=10)
    assert answers == [True]


def test_waiters_on_other_conditions_are_notified_of_every_move() -> None:
    clock, told = Clock(), []
    clock.on_advance(lambda: told.append(clock.now()))
    clock.advance(LONG)
    assert len(told) == 1


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_the_clock_moves_only_forward_and_not_for_ever(seconds: float) -> None:
    with pytest.raises(ValueError, match="moves forward"):
        Clock().advance(seconds)


def test_the_emulators_clock_is_read_and_moved_over_http(aws: Emulator) -> None:
    before = aws.get("/_tritonstack/clock")["now"]
    assert before + LONG <= aws.advance(LONG) <= aws.get("/_tritonstack/clock")["now"]


@pytest.mark.parametrize("body", [b"", b"[]", b'{"advance_seconds": "soon"}', b'{"advance_seconds": -1}', b"{}"])
def test_what_is_no_move_of_the_clock_is_refused(aws: Emulator, body: bytes) -> None:
    assert aws._http("POST", "/_tritonstack/clock", body)[0] == 400
