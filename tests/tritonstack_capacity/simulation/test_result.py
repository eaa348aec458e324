"""What a simulation sums up to: requests, loads, percentiles, cost, assumptions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.tritonstack_capacity.simulation.fleets import KIND, calls, fleet, one_by_one, table
from tests.tritonstack_capacity.simulation.test_scenario_file import GOOD, read
from tritonstack_capacity.simulation.fleet import simulate
from tritonstack_capacity.simulation.report import sentences
from tritonstack_capacity.simulation.result import (
    LoadFigures,
    SimulationResult,
    call_figures,
    load_figures,
    simulation_result,
    thrash_times,
)


def simulated(folder: Path, *changes: tuple[str, str], text: str = GOOD) -> SimulationResult:
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    return simulation_result(read(folder, text), seed=0)


def test_loads_are_counted_by_minute_and_those_that_come_again_soon_by_themselves() -> None:
    trace = one_by_one([0, 1, 0, 1, 1, 2, 2, 2, 0], apart=25.0)
    happening = simulate(fleet(most_models=1), table(KIND, KIND, KIND), trace, seed=0)

    def figures(*, after: float, within: float) -> LoadFigures:
        thrash = thrash_times(happening, within=within)
        return load_figures(happening, after=after, thrash=thrash, thrash_seconds=within)

    found = figures(after=0.0, within=100.0)
    assert (found.loads, found.evictions, found.peak_loads_per_minute) == (6, 5, 2)
    assert found.again == 2  # the second 0 and the second 1; the last 0 was gone for 125 s
    assert figures(after=0.0, within=200.0).again == 3
    assert figures(after=60.0, within=200.0).loads == 4
    assert figures(after=130.0, within=200.0).again == 1


def test_percentiles_are_measured_values_and_the_warm_up_is_left_out() -> None:
    cold = replace(KIND, load_seconds=80.0, fixed=1.0)
    trace = calls((1.0, 0), *[(200.0 + 10 * place, 0) for place in range(19)])
    happening = simulate(fleet(), table(cold), trace, seed=0)
    everyone = call_figures(happening, trace, after=0.0)
    assert everyone.everyone.percentiles[95] == pytest.approx(1000.0)
    assert everyone.everyone.percentiles[99] == pytest.approx(81_000.0)
    assert everyone.warm.percentiles[99] == pytest.approx(1000.0)
    assert (everyone.late, everyone.cold_starts, everyone.hit_ratio) == (1, 1, 0.95)
    assert call_figures(happening, trace, after=100.0).hit_ratio == 1.0


def test_an_unknown_price_is_reported_and_never_zero(tmp_path: Path) -> None:
    unknown = simulated(tmp_path, ("xlarge}", "xlarge, region: af-south-1}"))
    assert unknown.cost.total is None
    assert unknown.cost.per_million is None
    [line] = [each for each in sentences(unknown) if each.startswith("cost")]
    assert "unknown" in line
    assert "af-south-1" in line
    known = simulated(tmp_path, ("xlarge}", "xlarge, usd_per_hour: 6, count: 2}"))
    assert known.cost.total == pytest.approx(6 * 2 * 10 / 60)
    assert known.cost.per_million == pytest.approx(2e6 / len(known.trace))


def test_more_requests_than_the_gpus_can_execute_are_reported_as_too_much(tmp_path: Path) -> None:
    busy = simulated(
        tmp_path, ("per_minute: 600", "per_minute: 60000"), ("duration_minutes: 10", "duration_minutes: 1")
    )
    assert busy.busiest > 1
    assert any("that is too much" in line for line in sentences(busy))
    assert not any("too much" in line for line in sentences(simulated(tmp_path)))


def test_without_a_model_cache_models_are_unloaded_and_not_evicted(tmp_path: Path) -> None:
    short = ("duration_minutes: 10", "duration_minutes: 2")
    found = simulated(tmp_path, short, ("arrivals:", "model_cache: disabled\narrivals:"))
    cached = simulated(tmp_path, short)
    assert found.calls.hit_ratio is not None and cached.calls.hit_ratio is not None
    assert found.calls.hit_ratio < 0.5 < cached.calls.hit_ratio
    assert (found.steady, found.split) == (None, None)
    words = " ".join([*sentences(found), *found.assumptions])
    assert "evict" not in words
    assert "endpoints" not in words
    assert "models on an instance" in " ".join(sentences(cached))
