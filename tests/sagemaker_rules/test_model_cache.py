"""Eviction: which model goes for another one."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tritonstack.sagemaker_rules.model_cache import ModelState, model_to_evict, model_to_retire, unloads_when_idle

LOADING, LOADED, RETIRING, UNLOADING = ModelState


@dataclass
class Model:
    name: str
    state: ModelState = LOADED
    in_flight: int = 0


@pytest.mark.parametrize(
    ("oldest_first", "evicted", "retired"),
    [
        ([Model("a"), Model("b")], "a", None),
        ([Model("a", in_flight=1), Model("b")], "b", None),
        ([Model("a", LOADING), Model("b", UNLOADING), Model("c", in_flight=1)], None, None),
        ([Model("a", RETIRING, in_flight=1), Model("b", in_flight=1)], None, None),
        ([Model("a", LOADING), Model("b", in_flight=1), Model("c", in_flight=2)], None, "b"),
        ([], None, None),
    ],
    ids=["the oldest", "none in flight", "one leaves already", "one is retired already", "all busy", "no model"],
)
def test_the_least_recently_used_idle_model_is_evicted_and_only_where_none_is_idle_one_is_retired(
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
