"""What is concluded: figures, cost, what an instance holds, and whether to split."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tritonstack_capacity.simulation.plans import KIND, MACHINE, calls, equal_models, one_by_one, plan, table
from tests.tritonstack_capacity.simulation.test_scenario_file import GOOD, read
from tritonstack_capacity.simulation.answer import Answer, answer
from tritonstack_capacity.simulation.answer_document import answer_document, holding_sentence, sentences, split_sentence
from tritonstack_capacity.simulation.che import Caches
from tritonstack_capacity.simulation.figures import LoadFigures, call_figures, load_figures, thrash_times
from tritonstack_capacity.simulation.fleet import simulate
from tritonstack_capacity.simulation.instance import Machine
from tritonstack_capacity.simulation.page import cost_over_time, simulation_page
from tritonstack_capacity.simulation.scenario import Routing
from tritonstack_capacity.simulation.split import Replayed, SplitAdvice, split_advice, verdict
from tritonstack_capacity.simulation.trace import ModelTable

MACHINE_OF_100 = replace(MACHINE, most_models=100)


def answered(folder: Path, *changes: tuple[str, str], text: str = GOOD) -> Answer:
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    return answer(read(folder, text), seed=0)


def test_loads_are_counted_by_minute_and_those_that_come_again_soon_by_themselves() -> None:
    trace = one_by_one([0, 1, 0, 1, 1, 2, 2, 2, 0], apart=25.0)
    happening = simulate(plan(most_models=1), table(KIND, KIND, KIND), trace, seed=0)

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
    happening = simulate(plan(), table(cold), trace, seed=0)
    everyone = call_figures(happening, trace, after=0.0)
    assert everyone.everyone.percentiles[95] == pytest.approx(1000.0)
    assert everyone.everyone.percentiles[99] == pytest.approx(81_000.0)
    assert everyone.warm.percentiles[99] == pytest.approx(1000.0)
    assert (everyone.late, everyone.cold_starts, everyone.hit_ratio) == (1, 1, 0.95)
    assert call_figures(happening, trace, after=100.0).hit_ratio == 1.0


def test_an_unknown_price_is_said_and_never_zero(tmp_path: Path) -> None:
    unknown = answered(tmp_path, ("xlarge}", "xlarge, region: af-south-1}"))
    assert unknown.cost.total is None
    assert unknown.cost.per_million is None
    [line] = [each for each in sentences(unknown) if each.startswith("cost")]
    assert "unknown" in line
    assert "af-south-1" in line
    known = answered(tmp_path, ("xlarge}", "xlarge, usd_per_hour: 6, count: 2}"))
    assert known.cost.total == pytest.approx(6 * 2 * 10 / 60)
    assert known.cost.per_million == pytest.approx(2e6 / len(known.trace))


def test_an_instance_holds_what_its_tightest_limit_lets_it() -> None:
    kind = replace(KIND, memory=10, disk=20)
    models = equal_models(100, kind=kind, zipf=0.7)

    def held(**machine: Any) -> tuple[str, float]:
        found = Caches(models, plan(**machine).machine, routing="random").holding(1)
        return found.bound, round(found.models, 6)

    assert held(memory=300) == ("GPU memory", 30)
    assert held(memory=300, disk=400) == ("disk", 20)
    assert held(memory=300, disk=400, most_models=10) == ("max_loaded_models", 10)
    assert held() == ("nothing", 100)
    by_memory = Caches(models, plan(memory=300).machine, routing="random").holding(1).by_memory
    ratios = [ratio for _, ratio in by_memory]
    assert ratios == sorted(ratios)
    assert ratios[-1] == 1.0  # four times 30 places hold all hundred


def advice_of(
    models: ModelTable, machine: Machine, *, count: int, routing: Routing = "random", peak_rate: float = 1.0
) -> SplitAdvice | None:
    caches = Caches(models, machine, routing=routing)
    return split_advice(models, machine, count=count, caches=caches, peak_rate=peak_rate)


def advised(models_zipf: float, *, count: int, seconds: float = 0.0, rate: float = 1.0) -> SplitAdvice:
    models = equal_models(1000, kind=replace(KIND, fixed=seconds or 0.001), zipf=models_zipf)
    found = advice_of(models, MACHINE_OF_100, count=count, peak_rate=rate)
    assert found is not None
    return found


def test_a_split_hits_more_where_random_routing_makes_each_instance_hold_the_same() -> None:
    advice = advised(0.9, count=2)
    assert verdict(advice, None).worth_while
    assert advice.best is not None
    assert advice.best.hit_ratio > advice.one + 0.05
    assert advice.best.hot_instances + advice.best.cold_instances == 2
    assert advice.best.hot.sum() == advice.best.hot_models


def test_a_split_gains_less_where_each_model_has_one_home() -> None:
    models = equal_models(1000, zipf=0.9)
    advice = advice_of(models, MACHINE_OF_100, count=4, routing="sticky")
    assert advice is not None
    assert advice.best is not None
    copies = advised(0.9, count=4)
    assert copies.best is not None
    assert advice.best.hit_ratio - advice.one < (copies.best.hit_ratio - copies.one) / 3


def test_neither_side_of_a_split_is_given_more_calls_than_it_can_answer() -> None:
    assert advised(0.0, count=2, seconds=1.0, rate=1.7).best is None
    with_room = advised(0.0, count=3, seconds=1.0, rate=1.7).best
    assert with_room is not None
    share = with_room.hot_models / 1000
    assert share * 1.7 <= 0.8 * with_room.hot_instances
    assert (1 - share) * 1.7 <= 0.8 * with_room.cold_instances


def test_hot_models_that_are_called_much_get_most_of_the_instances() -> None:
    found = advised(1.5, count=5, seconds=1.0, rate=3.0).best
    assert found is not None
    assert found.hot_instances > found.cold_instances


def test_a_split_of_models_that_all_fit_is_not_worth_while() -> None:
    roomy = advice_of(equal_models(50, zipf=0.9), MACHINE_OF_100, count=2)
    assert roomy is not None
    assert (roomy.one, verdict(roomy, None).worth_while) == (1.0, False)


def test_one_called_model_cannot_be_split() -> None:
    only = table(KIND, KIND, popularity=np.array([1.0, 0.0]))
    assert advice_of(only, MACHINE, count=2) is None


def test_a_small_scenario_replays_the_split_and_finds_the_estimate_right(tmp_path: Path) -> None:
    found = answered(
        tmp_path,
        ("count: 3, gpu_memory_mib: 100", "count: 1500, gpu_memory_mib: 100"),
        ("xlarge}", "xlarge, count: 2}\ncold_start: {load_seconds: 0.01, download_mib_per_second: 100000}"),
        ("duration_minutes: 10", "duration_minutes: 90"),
        ("arrivals:", "warm_up_minutes: 30\narrivals:"),
    )
    assert found.split is not None
    assert found.split.best is not None
    assert found.replayed is not None
    assert found.replayed.one == pytest.approx(found.split.one, abs=0.02)
    assert found.replayed.split == pytest.approx(found.split.best.hit_ratio, abs=0.02)


def test_loads_that_take_more_time_than_there_is_are_said(tmp_path: Path) -> None:
    changes = (("count: 3, gpu_memory_mib: 100", "count: 1500, gpu_memory_mib: 100"), ("zipf: 1", "zipf: 0"))
    slow = answered(tmp_path, *changes)
    assert slow.loading > 1
    assert any("loads are too much" in line for line in sentences(slow))
    assert slow.calls.late > 0
    small = answered(tmp_path)
    assert small.loading == 0
    assert not any("too much" in line for line in sentences(small))


def test_the_routing_assumption_is_stated_wherever_several_instances_are_simulated_or_compared(tmp_path: Path) -> None:
    def stated(*changes: tuple[str, str]) -> str:
        assumed = answered(tmp_path, *changes).assumptions
        return " ".join(each for each in assumed if "SageMaker does not publish" in each)

    # One model on one instance: nothing to route, and nothing to split.
    alone = ("  - {name: small, count: 3,", "  # {name: small, count: 3,")
    assert stated(alone) == ""
    assert "an instance that has it loaded" in stated()  # a split is compared with an endpoint of two
    assert "all calls of a model go to one instance" in stated(alone, ("xlarge}", "xlarge, count: 2}\nrouting: sticky"))
    scaled = "scaling: {minimum: 1, maximum: 2, concurrency: 1}\nrouting: random\narrivals:"
    assert "to any instance with equal probability" in stated(alone, ("arrivals:", scaled))


def test_without_a_model_cache_nothing_is_said_of_what_it_would_hold(tmp_path: Path) -> None:
    found = answered(tmp_path, ("arrivals:", "model_cache: disabled\narrivals:"))
    assert (found.holding, found.split, found.replayed) == (None, None, None)
    assert found.calls.hit_ratio is not None
    assert found.calls.hit_ratio < 0.5 < answered(tmp_path).calls.hit_ratio  # type: ignore[operator]  # there are calls
    said = " ".join([*sentences(found), *found.assumptions])
    assert "nothing to gain" in said
    assert "evict" not in said
    document = answer_document(found)
    assert document["holding"]["in_the_long_run"] is None
    page = simulation_page(found)
    assert 'id="calls"' in page
    assert 'id="memory"' not in page
    assert 'id="split"' not in page


def test_loads_that_calls_share_are_no_overload_of_a_fleet_without_a_cache(tmp_path: Path) -> None:
    """Ten calls a second of four models that take seconds to load: each load serves all that came meanwhile."""
    found = answered(tmp_path, ("arrivals:", "model_cache: disabled\ncold_start: {parallel_loads: 8}\narrivals:"))
    assert found.loading == pytest.approx(found.loads.loads_per_minute / 60 * 3.0 / 8, rel=0.15)


def test_the_split_has_a_point_for_each_number_of_hot_models_and_the_best_is_one_of_them() -> None:
    advice = advised(0.9, count=3)
    assert advice.best is not None
    cuts = [cut for cut, _ in advice.by_cut]
    assert cuts == sorted(set(cuts))
    assert max(ratio for _, ratio in advice.by_cut) == advice.best.hit_ratio
    assert dict(advice.by_cut)[advice.best.hot_models] == advice.best.hit_ratio


def test_cost_adds_up_to_the_total_over_time(tmp_path: Path) -> None:
    scaled = (
        "scaling: {minimum: 1, maximum: 3, invocations_per_instance: 300}\n"
        "autoscaling: {startup_seconds: 60}\narrivals:"
    )
    found = answered(tmp_path, ("arrivals:", scaled), ("duration_minutes: 10", "duration_minutes: 40"))
    points = cost_over_time(found)
    assert points[0] == (0.0, 0.0)
    assert points[-1][0] == pytest.approx(40.0)
    assert points[-1][1] == pytest.approx(found.cost.total)
    assert len(points) > 2
    assert cost_over_time(answered(tmp_path, ("xlarge}", "xlarge, region: af-south-1}"))) == []


SLOW = (("count: 3, gpu_memory_mib: 100", "count: 1500, gpu_memory_mib: 100"), ("zipf: 1", "zipf: 0"))
FAST = ("xlarge}", "xlarge, count: 2}\ncold_start: {load_seconds: 0.01, download_mib_per_second: 100000}")
LONG = (("duration_minutes: 10", "duration_minutes: 40"), ("arrivals:", "warm_up_minutes: 10\narrivals:"))


def test_an_estimate_that_the_simulation_contradicts_is_said_in_words_and_json(tmp_path: Path) -> None:
    slow = answered(tmp_path, SLOW[0], *LONG)
    assert slow.compared is not None
    assert slow.compared.estimated - slow.compared.simulated > 0.01
    [line] = [each for each in sentences(slow) if "is off here" in each]
    assert f"{100 * slow.compared.simulated:.2f} %" in line
    assert "came during a load" in line
    assert answer_document(slow)["holding"]["against_simulation"]["agrees"] is False
    fast = answered(
        tmp_path, SLOW[0], *LONG, ("routing: loaded", "routing: sticky"), FAST, text=f"{GOOD}routing: loaded\n"
    )
    assert fast.compared is not None
    assert fast.compared.agrees
    assert not any("is off here" in each for each in sentences(fast))
    assert answer_document(fast)["holding"]["against_simulation"]["agrees"] is True
    assert answered(tmp_path).compared is None  # half of ten minutes' calls are too few


def test_an_upper_bound_is_called_so(tmp_path: Path) -> None:
    several = answered(tmp_path, FAST)
    assert "hit ratio of at most 100.00 %" in holding_sentence(several)
    assert answer_document(several)["holding"]["in_the_long_run"]["is_upper_bound"] is True
    assert "at most 100" not in holding_sentence(answered(tmp_path))


def test_the_simulation_decides_on_a_split_and_not_the_estimate() -> None:
    advice = advised(0.9, count=4)
    assert advice.best is not None
    estimated = verdict(advice, None)
    assert (estimated.simulated, estimated.worth_while) == (False, True)
    alike = Replayed(one=0.70, split=0.705, fewer_one=0.60, fewer=0.65)
    assert (verdict(advice, alike).simulated, verdict(advice, alike).worth_while) == (True, False)
    flat = replace(advice, one=advice.best.hit_ratio, fewer=None)
    assert not verdict(flat, None).worth_while
    assert verdict(flat, replace(alike, split=0.8, fewer_one=None, fewer=None)).worth_while
    smaller = replace(advice, fewer=advice.best)
    assert verdict(smaller, replace(alike, fewer=0.71)).fewer == advice.best
    assert verdict(smaller, replace(alike, fewer=0.71, fewer_one=0.72)).fewer is None  # it does without a split


def test_what_decided_on_a_split_is_said_in_words_and_json(tmp_path: Path) -> None:
    """Slow loads: the estimate sees no difference, and the simulation does."""
    found = answered(tmp_path, *SLOW, ("xlarge}", "xlarge, count: 2}"), *LONG)
    assert found.split is not None
    assert found.replayed is not None
    gain = found.replayed.split - found.replayed.one
    [line] = [each for each in sentences(found) if "over two endpoints" in each]
    assert line.startswith("split" if gain > 0.01 else "do not split")
    assert f"{100 * found.replayed.split:.2f} % hits against {100 * found.replayed.one:.2f} % of one" in line
    document = answer_document(found)["split"]
    assert (document["worth_while"], document["decided_by"]) == (gain > 0.01, "simulation")
    alone = replace(found, replayed=None, verdict=verdict(found.split, None))
    assert "estimated only" in split_sentence(alone)
    assert answer_document(alone)["split"]["decided_by"] == "estimate"
