"""Che's approximation against exact replays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.tritonstack_capacity.simulation.plans import KIND, drawn, equal_models, hits, plan
from tritonstack_capacity.simulation.che import Caches, che
from tritonstack_capacity.simulation.fleet import simulate
from tritonstack_capacity.simulation.trace import Floats, ModelKind, ModelTable

CALLS = 120_000
NEAR = 0.01


def replayed(models: ModelTable, *, calls: int = CALLS, **machine: Any) -> float:
    """Hit ratio of the second half of independent calls; in the first the cache fills."""
    happening = simulate(plan(**machine), models, drawn(models, count=calls, apart=1.0, seed=7), seed=7)
    found = hits(happening)[calls // 2 :]
    return sum(found) / len(found)


@pytest.mark.parametrize(("zipf", "places"), [(0.6, 100), (0.9, 20), (0.9, 200), (1.2, 50)])
def test_che_is_within_a_hundredth_of_an_exact_replay_of_equal_models(zipf: float, places: int) -> None:
    models = equal_models(1000, zipf=zipf)
    estimated = che(models.popularity, limits=((np.ones(1000), float(places)),)).hit_ratio
    assert estimated == pytest.approx(replayed(models, most_models=places), abs=NEAR)


def unequal_models(count: int) -> ModelTable:
    """Sizes from 10 to 100, in an order that has nothing to do with how often models are called."""
    draw = np.random.default_rng(3)
    weights = np.arange(1, count + 1, dtype=np.float64) ** -0.8
    kinds = tuple(
        ModelKind(**{**vars(KIND), "name": f"of-{size}", "memory": size, "disk": size}) for size in range(10, 101)
    )
    return ModelTable(
        kinds=kinds,
        kind_of=draw.integers(0, len(kinds), count),
        popularity=weights / weights.sum(),
        names=tuple(f"m{number}" for number in range(count)),
    )


def test_che_is_within_a_hundredth_of_an_exact_replay_of_unequal_models() -> None:
    models = unequal_models(800)
    sizes: Floats = models.of_each("memory")
    estimated = che(models.popularity, limits=((sizes, 6000.0),)).hit_ratio
    assert estimated == pytest.approx(replayed(models, memory=6000), abs=NEAR)
    blind = che(models.popularity, limits=((np.full(800, 10.0), 6000.0),)).hit_ratio
    assert abs(blind - estimated) > 5 * NEAR  # sizes do matter here


def test_the_limit_that_is_reached_first_decides() -> None:
    models = equal_models(100, zipf=0.8)
    ones = np.ones(100)
    few = che(models.popularity, limits=((ones, 10.0),))
    assert che(models.popularity, limits=((ones, 10.0), (ones, 50.0))).hit_ratio == few.hit_ratio
    assert few.models_held == pytest.approx(10.0)


def test_everything_hits_where_all_called_models_fit() -> None:
    rates = np.array([3.0, 1.0, 0.0])
    found = che(rates, limits=((np.ones(3), 2.0),))
    assert (found.hit_ratio, found.models_held, found.seconds) == (1.0, 2.0, float("inf"))


def test_equal_rates_hit_as_often_as_the_share_that_fits() -> None:
    """By symmetry: whatever the rate, the called model is there with the same probability."""
    found = che(np.full(50, 0.2), limits=((np.ones(50), 20.0),))
    assert found.hit_ratio == pytest.approx(0.4)


@pytest.mark.parametrize(("models", "places", "zipf"), [(60, 16, 0.0), (60, 17, 0.0), (400, 30, 0.8), (400, 70, 0.4)])
def test_sticky_instances_are_each_a_cache_of_the_models_that_belong_to_them(
    models: int, places: int, zipf: float
) -> None:
    """60 models on 4 instances with 16 places: all would fit together, but more than 16 belong to one of them."""
    of_all = equal_models(models, zipf=zipf)
    how = plan(most_models=places, count=4, routing="sticky")
    found = Caches(of_all, how.machine, routing="sticky").estimate(4)
    simulated = replayed(of_all, most_models=places, count=4, routing="sticky")
    assert found.hit_ratio == pytest.approx(simulated, abs=NEAR)
    together = che(of_all.popularity, limits=((np.ones(models), 4.0 * places),)).hit_ratio
    assert together >= found.hit_ratio


def test_models_that_fit_together_but_not_where_they_belong_are_no_full_hit() -> None:
    machine = plan(most_models=16).machine
    caches = Caches(equal_models(60), machine, routing="sticky")
    homes = caches.homes(4)
    assert homes is not None
    most = int(np.bincount(homes).max())
    assert most > 16
    # Equal models hit as often as the share of them that fits, on each instance.
    expected = sum(min(16, int(count)) for count in np.bincount(homes)) / 60
    assert caches.estimate(4).hit_ratio == pytest.approx(expected)
    assert caches.holding(4).bound == "max_loaded_models"


def test_random_instances_are_each_a_cache_of_all_models() -> None:
    models = equal_models(300, zipf=0.8)
    found = Caches(models, plan(most_models=40).machine, routing="random").estimate(4).hit_ratio
    assert found == pytest.approx(replayed(models, most_models=40, count=4, routing="random"), abs=NEAR)


def test_one_cache_of_all_instances_is_at_least_what_loaded_routing_hits() -> None:
    slow = replace(KIND, fixed=2.0, copies=9)
    models = equal_models(100, kind=slow, zipf=1.2)
    caches = Caches(models, plan(most_models=20).machine, routing="loaded")
    found = caches.estimate(3).hit_ratio
    how = {"most_models": 20, "executions": 99, "count": 3, "routing": "loaded", "spill_calls": 1}
    assert replayed(models, calls=30_000, **how) < found - 0.02  # copies of the hottest take places
    assert replayed(models, calls=30_000, **{**how, "spill_calls": 99}) == pytest.approx(found, abs=0.03)
    assert caches.holding(3).at_most
    assert not caches.holding(1).at_most


@pytest.mark.long
def test_che_keeps_its_hundredth_at_ten_thousand_models() -> None:
    models = equal_models(10_000, zipf=0.9)
    estimated = che(models.popularity, limits=((np.ones(10_000), 1000.0),)).hit_ratio
    assert estimated == pytest.approx(replayed(models, calls=1_000_000, most_models=1000), abs=NEAR)
