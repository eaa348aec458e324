"""Target tracking: proportional steps and cooldowns, as the API reference states them."""

from __future__ import annotations

import pytest

from tritonstack.sagemaker_rules.target_tracking import Cooldowns, alarm_high, alarm_low, desired_instances


@pytest.mark.parametrize(
    ("instances", "value", "desired"), [(1, 1100, 2), (2, 700, 3), (4, 15, 1), (3, 600, 3), (3, 600.1, 4)]
)
def test_instances_grow_in_proportion_to_the_metric_and_are_rounded_up(
    instances: int, value: float, desired: int
) -> None:
    assert desired_instances(instances, value=value, target=600) == desired


def test_an_alarm_needs_every_period_and_the_low_one_less_than_nine_tenths() -> None:
    assert alarm_high([101, 102, 101], target=100)
    assert not alarm_high([101, 100, 101], target=100)
    assert alarm_low([89, 1], target=100)
    assert not alarm_low([89, 90], target=100)


def test_only_a_larger_scale_out_comes_during_the_cooldown() -> None:
    cooldowns = Cooldowns()
    assert cooldowns.allow_scale_out(0, added=1, cooldown=300)
    cooldowns.scale_out(0, added=2)
    allowed = [
        cooldowns.allow_scale_out(now, added=added, cooldown=300) for now, added in ((299, 2), (299, 3), (300, 1))
    ]
    assert allowed == [False, True, True]


def test_a_scale_out_ends_the_scale_in_cooldown() -> None:
    cooldowns = Cooldowns(scaled_in=0)
    assert not cooldowns.allow_scale_in(299, cooldown=300)
    assert cooldowns.allow_scale_in(300, cooldown=300)
    cooldowns.scale_out(100, added=1)
    assert cooldowns.allow_scale_in(101, cooldown=300)
