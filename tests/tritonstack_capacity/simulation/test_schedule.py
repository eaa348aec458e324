"""Times of scheduled scaling, and what an endpoint does at them."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise

import numpy as np
import pytest

from tests.tritonstack_capacity.simulation.plans import KIND, plan, table
from tritonstack.config.scaling import Scaling, Schedule
from tritonstack_capacity.simulation.autoscaler import LimitChange, limit_changes
from tritonstack_capacity.simulation.fleet import simulate
from tritonstack_capacity.simulation.scenario import Autoscaling
from tritonstack_capacity.simulation.trace import Trace

DAY = 86_400.0
MONDAY = dt.datetime(2026, 3, 2, tzinfo=dt.UTC)


def moments(when: str, *, days: float, starts: dt.datetime = MONDAY, zone: str = "UTC") -> list[str]:
    """The local times that a schedule acts at, as text."""
    schedule = Schedule(name="s", when=when, minimum=1, time_zone=zone)
    changes = limit_changes([schedule], starts=starts, seconds=days * DAY)
    return [(starts + dt.timedelta(seconds=each.seconds)).strftime("%m-%d %H:%M") for each in changes]


@pytest.mark.parametrize(
    ("when", "days", "expected"),
    [
        ("at(2026-03-02T07:30:00)", 1, ["03-02 07:30"]),
        ("at(2026-03-01T07:30:00)", 1, []),  # before the beginning
        ("cron(0 7 * * ? *)", 2, ["03-02 07:00", "03-03 07:00"]),
        ("cron(0/30 6,18 2 * ? *)", 9, ["03-02 06:00", "03-02 06:30", "03-02 18:00", "03-02 18:30"]),
        ("cron(0 0 ? * MON-FRI *)", 6.9, [f"03-0{day} 00:00" for day in (2, 3, 4, 5, 6)]),
        ("cron(0 0 ? * FRI-MON *)", 6.9, [f"03-0{day} 00:00" for day in (2, 6, 7, 8)]),
        ("cron(0 0 ? * 1 *)", 13.9, ["03-08 00:00", "03-15 00:00"]),  # 1 is Sunday
        ("cron(0 0 ? * 6L *)", 40, ["03-27 00:00"]),  # the month's last Friday
        ("cron(0 0 ? * L *)", 6.9, ["03-07 00:00"]),  # Saturday
        ("cron(0 0 ? * 3#2 *)", 40, ["03-10 00:00"]),  # the second Tuesday
        ("cron(0 0 L * ? *)", 40, ["03-31 00:00"]),
        ("cron(0 0 LW 5 ? *)", 120, ["05-29 00:00"]),  # May 31 is a Sunday
        ("cron(0 0 7W * ? *)", 30, ["03-06 00:00"]),  # a Saturday: the Friday before
        ("cron(0 0 8W * ? *)", 30, ["03-09 00:00"]),  # a Sunday: the Monday after
        ("cron(0 0 1W 8 ? *)", 180, ["08-03 00:00"]),  # a Saturday that begins the month: the Monday after
        ("cron(0 0 1 JAN ? *)", 20, []),
        ("cron(0 0 1 APR ? 2027-2030)", 60, []),
        ("cron(0 0 */10 * ? *)", 28, ["03-11 00:00", "03-21 00:00"]),
    ],
)
def test_times_are_those_of_application_auto_scaling(when: str, days: float, expected: list[str]) -> None:
    assert moments(when, days=days) == expected


def test_a_time_zone_moves_the_times_and_follows_its_summer() -> None:
    before_summer = dt.datetime(2026, 3, 28, tzinfo=dt.UTC)  # clocks in Berlin change on the 29th
    found = moments("cron(0 7 * * ? *)", days=3, starts=before_summer, zone="Europe/Berlin")
    assert found == ["03-28 06:00", "03-29 05:00", "03-30 05:00"]


def test_changes_are_in_the_order_of_time_and_leave_out_what_a_schedule_leaves_out() -> None:
    late = Schedule(name="late", when="at(2026-03-02T20:00:00)", maximum=2)
    early = Schedule(name="early", when="at(2026-03-02T06:00:00)", minimum=4, maximum=8)
    found = limit_changes([late, early], starts=MONDAY, seconds=DAY)
    assert found == (
        LimitChange(seconds=6 * 3600.0, minimum=4, maximum=8),
        LimitChange(seconds=20 * 3600.0, minimum=None, maximum=2),
    )


def quiet(minutes: float) -> Trace:
    """A call a minute."""
    times = 60.0 * np.arange(1, minutes)
    return Trace(times=times, models=np.zeros(len(times), dtype=np.int64), seconds=60.0 * minutes)


def test_instances_come_and_go_at_once_when_a_schedule_says_so_and_targets_keep_the_new_limits() -> None:
    scaling = Scaling(minimum=1, maximum=6, invocations_per_instance=100, scale_out_cooldown_seconds=3600)
    changes = (LimitChange(seconds=600.0, minimum=4, maximum=None), LimitChange(seconds=3600.0, minimum=1, maximum=2))
    speed = Autoscaling(startup_seconds=200)
    fleet = simulate(plan(scaling=scaling, speed=speed, changes=changes), table(KIND), quiet(120), seed=0).fleet
    steps = [(after.seconds, after.serving, after.paid) for before, after in pairwise(fleet) if after != before]
    # A call a minute is far below the target; only when the minimum is 1 again may the fleet follow it.
    assert steps[:4] == [(600.0, 1, 4), (800.0, 2, 4), (800.0, 3, 4), (800.0, 4, 4)]
    assert steps[4] == (3600.0, 2, 2)
    assert steps[5][1:] == (1, 1)


def test_a_schedule_waits_for_instances_that_start() -> None:
    scaling = Scaling(minimum=1, maximum=6, invocations_per_instance=100)
    changes = tuple(LimitChange(seconds=moment, minimum=least, maximum=None) for moment, least in ((60, 2), (120, 5)))
    speed = Autoscaling(startup_seconds=300)
    fleet = simulate(plan(scaling=scaling, speed=speed, changes=changes), table(KIND), quiet(20), seed=0).fleet
    assert [(each.seconds, each.paid) for each in fleet][:4] == [(0.0, 1), (60.0, 2), (360.0, 2), (360.0, 5)]
