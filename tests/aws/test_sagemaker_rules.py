"""Rules of SageMaker: which model is evicted for another one; proportional scaling and cooldowns."""

from __future__ import annotations

import pytest
from pydantic.dataclasses import dataclass

from tests.cases import cases
from tritonstack.aws.sagemaker_rules import (
    Cooldowns,
    ModelState,
    desired_instances,
    model_to_evict,
    model_to_retire,
    unloads_when_idle,
    wanted_instances,
)

LOADING, LOADED, RETIRING, _ = ModelState


@dataclass(config={"extra": "forbid"})
class Model:
    name: str
    state: ModelState = LOADED
    in_flight: int = 0


@cases("oldest_first, evicted, retired")
def test_the_least_recently_used_idle_model_is_evicted_or_one_is_retired_if_none_is_idle(
    oldest_first: list[Model], evicted: str | None, retired: str | None
) -> None:
    chosen, next_one = model_to_evict(oldest_first), model_to_retire(oldest_first)
    assert (chosen and chosen.name, next_one and next_one.name) == (evicted, retired)


@pytest.mark.parametrize(
    ("state", "cache_enabled", "unloads"),
    [(LOADED, True, False), (LOADED, False, True), (RETIRING, True, True), (LOADING, False, False)],
)
def test_a_model_is_unloaded_after_its_last_request_if_retired_or_without_a_cache(
    state: ModelState, cache_enabled: bool, unloads: bool
) -> None:
    assert unloads_when_idle(Model("a", state), cache_enabled=cache_enabled) is unloads


@pytest.mark.parametrize(
    ("instances", "value", "desired"), [(1, 1100, 2), (2, 700, 3), (4, 15, 1), (3, 600, 3), (3, 600.1, 4)]
)
def test_instances_grow_in_proportion_to_the_metric_and_are_rounded_up(
    instances: int, value: float, desired: int
) -> None:
    assert desired_instances(instances, value=value, target=600) == desired


@cases("more, fewer, wanted")
def test_any_policy_adds_instances_and_all_must_agree_to_remove_some(
    more: list[int | None], fewer: list[int | None], wanted: int
) -> None:
    assert wanted_instances(4, more=more, fewer=fewer) == wanted


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
