"""How an instance loads, evicts and unloads, beyond what test_local_cache.py holds against the local runtime."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.tritonstack_capacity.simulation.plans import KIND, calls, evicted, hits, loaded, one_by_one, plan, table
from tritonstack_capacity.simulation.fleet import simulate
from tritonstack_capacity.simulation.instance import DOWNLOADED, FROM_DISK, HIT, WAITED

COLD = replace(KIND, download_seconds=2.0, load_seconds=3.0, fixed=0.1)


def test_a_cold_call_waits_for_download_load_and_execution_and_others_of_its_model_share_that() -> None:
    happening = simulate(plan(), table(COLD), calls((1.0, 0), (2.0, 0), (7.0, 0)), seed=0)
    assert list(happening.calls.latencies) == pytest.approx([5.1, 4.2, 0.1])
    assert list(happening.calls.outcomes) == [DOWNLOADED, WAITED, HIT]
    assert loaded(happening) == [0]


def test_files_of_an_evicted_model_spare_the_download_where_they_stay() -> None:
    trace = one_by_one([0, 1, 0], apart=20.0)
    kept = simulate(plan(most_models=1), table(COLD, COLD), trace, seed=0)
    assert list(kept.calls.outcomes) == [DOWNLOADED, DOWNLOADED, FROM_DISK]
    assert kept.calls.latencies[2] == pytest.approx(3.1)
    deleted = simulate(plan(most_models=1, keep_on_disk=False), table(COLD, COLD), trace, seed=0)
    assert list(deleted.calls.outcomes) == [DOWNLOADED] * 3


def test_a_full_disk_loses_the_files_that_were_used_least_recently_and_are_not_loaded() -> None:
    sequence = [0, 1, 2, 0, 1, 3, 0, 2]
    happening = simulate(plan(most_models=1, disk=3), table(*[COLD] * 4), one_by_one(sequence, apart=20.0), seed=0)
    again = [FROM_DISK, FROM_DISK, DOWNLOADED, FROM_DISK, DOWNLOADED]
    assert list(happening.calls.outcomes) == [DOWNLOADED] * 3 + again


def test_a_disk_full_of_loaded_models_evicts_one() -> None:
    happening = simulate(plan(disk=2), table(KIND, KIND, KIND), one_by_one([0, 1, 2]), seed=0)
    assert evicted(happening) == [0]


def test_a_load_that_waits_for_disk_holds_up_none_that_has_its_files() -> None:
    one, two = (replace(COLD, memory=size, disk=1) for size in (1, 2))
    happening = simulate(plan(disk=2, memory=2), table(one, two, one), calls((1.0, 0), (1.0, 1), (1.0, 2)), seed=0)
    assert list(happening.calls.latencies) == pytest.approx([5.1, 8.2, 11.3])


def test_a_large_model_evicts_as_many_as_its_memory_needs() -> None:
    large = replace(KIND, memory=3)
    happening = simulate(plan(memory=4), table(KIND, KIND, KIND, large), one_by_one([0, 1, 2, 1, 3]), seed=0)
    assert evicted(happening) == [0, 2]


def test_a_model_that_is_never_idle_takes_no_new_calls_after_the_patience_and_loads_again_for_them() -> None:
    busy = replace(KIND, fixed=1.0, load_seconds=0.5)
    steady = [(1.0 + 0.9 * place, 0) for place in range(10)]
    trace = calls(*sorted([*steady, (2.0, 1)]))
    happening = simulate(plan(most_models=1, patience=2.0), table(busy, busy), trace, seed=0)
    assert loaded(happening) == [0, 1, 0]
    assert evicted(happening) == [0, 1]
    assert WAITED in happening.calls.outcomes
    patient = simulate(plan(most_models=1, patience=100.0), table(busy, busy), trace, seed=0)
    assert loaded(patient)[:2] == [0, 1]
    assert patient.calls.latencies[2] > happening.calls.latencies[2] > 2.0


def test_no_second_model_goes_where_the_memory_of_the_one_that_leaves_will_do() -> None:
    trace = calls((1.0, 0), (2.0, 1), (10.0, 2), (11.0, 1), (20.0, 1))
    happening = simulate(plan(memory=2, unload_seconds=4.0), table(KIND, KIND, KIND), trace, seed=0)
    assert evicted(happening) == [0]
    assert hits(happening) == [False, False, False, True, True]


def test_without_a_cache_every_call_that_meets_no_other_loads_anew_and_downloads() -> None:
    disabled = plan(cached=False, keep_on_disk=False)
    happening = simulate(disabled, table(COLD), calls((1.0, 0), (10.0, 0), (30.0, 0)), seed=0)
    assert list(happening.calls.outcomes) == [DOWNLOADED] * 3
    assert list(happening.calls.latencies) == pytest.approx([5.1] * 3)
    assert evicted(happening) == [0, 0, 0]
