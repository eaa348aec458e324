"""Che's approximation against exact replays; models that an instance holds; one endpoint or two."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tritonstack_capacity.simulation.fleets import KIND, drawn, equal_models, fleet, hits
from tests.tritonstack_capacity.simulation.test_result import simulated
from tritonstack_capacity.simulation.fleet import simulate
from tritonstack_capacity.simulation.hit_ratio import estimated_cache, steady_state
from tritonstack_capacity.simulation.report import result_document, sentences
from tritonstack_capacity.simulation.split import Split, SplitAdvice, estimated_splits
from tritonstack_capacity.simulation.trace import ModelTable

ERROR = 0.01


def replayed(models: ModelTable, *, requests: int = 120_000, **how: Any) -> float:
    """Hit ratio of the second half of independent requests; in the first the cache fills."""
    happening = simulate(fleet(**how), models, drawn(models, count=requests, apart=1.0, seed=7), seed=7)
    found = hits(happening)[requests // 2 :]
    return sum(found) / len(found)


@pytest.mark.parametrize(("zipf", "places"), [(0.6, 100), (1.2, 20)])
def test_equal_models_hit_as_often_as_in_an_exact_replay(zipf: float, places: int) -> None:
    models = equal_models(1000, zipf=zipf)
    estimate = estimated_cache(fleet(most_models=places), models)
    assert estimate.hit_ratio == pytest.approx(replayed(models, most_models=places), abs=ERROR)
    assert estimate.models == pytest.approx(places)


def test_unequal_models_hit_as_often_as_in_an_exact_replay_on_an_instance_of_another_size() -> None:
    """Sizes from 10 to 100, in an order that has nothing to do with how often models are requested."""
    size = 4.0
    count, draw = 800, np.random.default_rng(3)
    weights = np.arange(1, count + 1, dtype=np.float64) ** -0.8
    models = ModelTable(
        kinds=tuple(replace(KIND, memory=mib, disk=mib) for mib in range(10, 101)),
        kind_of=draw.integers(0, 91, count),
        popularity=weights / weights.sum(),
        names=tuple(f"m{number}" for number in range(count)),
    )
    estimate = estimated_cache(fleet(memory=6000), models, size=size)
    assert estimate.hit_ratio == pytest.approx(replayed(models, memory=int(size * 6000)), abs=ERROR)


def test_several_instances_with_loaded_routing_have_an_upper_bound() -> None:
    models = equal_models(100, kind=replace(KIND, fixed=2.0, copies=9), zipf=1.2)
    how: dict[str, Any] = {"most_models": 20, "executions": 99, "count": 3, "routing": "loaded"}
    found = steady_state(fleet(**how), models)
    # Copies of the hottest models take places; nearly without copies the bound is reached.
    assert replayed(models, requests=30_000, **how, spill_calls=1) < found.hit_ratio - 0.02
    assert replayed(models, requests=30_000, **how, spill_calls=99) == pytest.approx(found.hit_ratio, abs=0.03)
    assert found.is_upper_bound
    assert found.models == pytest.approx(20)
    assert not steady_state(fleet(**{**how, "count": 1}), models).is_upper_bound


@pytest.mark.parametrize(
    ("machine", "limited_by", "models"),
    [
        ({"memory": 300}, "GPU memory", 30),
        ({"memory": 300, "disk": 400}, "disk", 20),
        ({"memory": 300, "disk": 400, "most_models": 10}, "max_loaded_models", 10),
        ({}, None, 100),
    ],
)
def test_an_instance_holds_what_its_tightest_limit_allows(
    machine: dict[str, Any], limited_by: str | None, models: int
) -> None:
    of_all = equal_models(100, kind=replace(KIND, memory=10, disk=20), zipf=0.7)
    found = steady_state(fleet(**machine), of_all)
    assert found.limited_by == limited_by
    assert found.models == pytest.approx(models)
    ratios = [ratio for _, ratio in found.by_size]
    assert ratios == sorted(ratios)
    assert dict(found.by_size)[1.0] == found.hit_ratio


# One endpoint or two --------------------------------------------------------------------------------------------------


def advice_of(*, zipf: float, seconds: float = 0.001, rate: float = 1.0, models: int = 1000, **how: Any) -> SplitAdvice:
    """Of instances with 100 places each."""
    of_all = equal_models(models, kind=replace(KIND, fixed=seconds), zipf=zipf)
    found = estimated_splits(fleet(most_models=100, **how), of_all, peak_rate=rate)
    assert found is not None
    return found


def best_of(advice: SplitAdvice) -> Split:
    assert advice.best is not None
    return advice.best


def test_a_split_is_advised_where_random_routing_makes_each_instance_hold_the_same() -> None:
    advice = advice_of(zipf=0.9, count=2)
    best = best_of(advice)
    assert advice.worth_while
    assert best.hit_ratio > advice.one + 0.05
    assert (best.hot_instances, best.cold_instances) == (1, 1)
    # The hottest 100 fit on their instance: exactly what the first models of the order are.
    assert best.hot[: best.hot_models].all()
    cuts = [split.hot_models for split in advice.splits]
    assert cuts == sorted(set(cuts))


@pytest.mark.parametrize(
    "how",
    [{"models": 50, "zipf": 0.9, "count": 2}, {"zipf": 0.0, "count": 4, "routing": "loaded"}],
    ids=["all fit", "instances share equal models"],
)
def test_a_split_is_not_advised_where_it_gains_nothing(how: dict[str, Any]) -> None:
    advice = advice_of(**how)
    assert advice.best is not None
    assert not advice.worth_while


MANY = (
    ("count: 3, gpu_memory_mib: 100", "count: 1500, gpu_memory_mib: 100"),
    ("duration_minutes: 10", "duration_minutes: 90"),
)
WARM = ("arrivals:", "warm_up_minutes: 30\narrivals:")
QUICK = "cold_start: {load_seconds: 0.01, download_mib_per_second: 100000}"


def test_loads_that_take_no_time_give_the_estimated_hit_ratios(tmp_path: Path) -> None:
    found = simulated(tmp_path, *MANY, WARM, ("xlarge}", f"xlarge, count: 2}}\nrouting: random\n{QUICK}"))
    assert found.steady is not None and found.split is not None and found.split.simulated is not None
    assert found.calls.hit_ratio == pytest.approx(found.steady.hit_ratio, abs=ERROR)
    assert found.held is not None
    assert found.held[0] == pytest.approx(found.steady.models, rel=0.02)
    assert found.split.simulated == pytest.approx((found.split.one, best_of(found.split).hit_ratio), abs=0.02)
    document = result_document(found)
    assert document["steady_state"]["agrees_with_simulation"] is True
    assert (document["split"]["decided_by"], document["split"]["worth_while"]) == ("simulation", True)
    [line] = [line for line in sentences(found) if line.startswith("split the models over two endpoints")]
    assert f"have {100 * found.split.simulated[1]:.2f} % hits" in line
    assert "1.47 USD an hour" in line  # of two instances, on either side


def test_an_estimate_that_the_simulation_contradicts_is_reported(tmp_path: Path) -> None:
    slow = simulated(tmp_path, *MANY, WARM)
    assert slow.steady is not None and slow.calls.hit_ratio is not None
    assert slow.steady.hit_ratio - slow.calls.hit_ratio > ERROR
    assert any(line.startswith("the two hit ratios differ") for line in sentences(slow))
    assert result_document(slow)["steady_state"]["agrees_with_simulation"] is False
    few = simulated(tmp_path)
    assert few.estimate_agrees is None
    assert not any(line.startswith("the two hit ratios differ") for line in sentences(few))
