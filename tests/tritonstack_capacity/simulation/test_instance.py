"""An instance: loads and evictions beyond test_local_cache.py, queues that have a formula, laws of any trace."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.tritonstack_capacity.simulation.fleets import (
    KIND,
    calls,
    evicted,
    fleet,
    hits,
    loaded,
    one_by_one,
    poisson,
    table,
)
from tritonstack_capacity.simulation.fleet import simulate
from tritonstack_capacity.simulation.instance import DOWNLOADED, FROM_DISK, HIT, WAITED, Happening
from tritonstack_capacity.simulation.result import call_figures
from tritonstack_capacity.simulation.trace import ModelKind, Trace

COLD = replace(KIND, download_seconds=2.0, load_seconds=3.0, fixed=0.1)


def test_a_cold_call_waits_for_download_load_and_execution_and_others_of_its_model_share_that() -> None:
    happening = simulate(fleet(), table(COLD), calls((1.0, 0), (2.0, 0), (7.0, 0)), seed=0)
    assert list(happening.calls.latencies) == pytest.approx([5.1, 4.2, 0.1])
    assert list(happening.calls.outcomes) == [DOWNLOADED, WAITED, HIT]
    assert loaded(happening) == [0]


def test_files_of_an_evicted_model_spare_the_download_where_they_stay() -> None:
    trace = one_by_one([0, 1, 0], apart=20.0)
    kept = simulate(fleet(most_models=1), table(COLD, COLD), trace, seed=0)
    assert list(kept.calls.outcomes) == [DOWNLOADED, DOWNLOADED, FROM_DISK]
    assert kept.calls.latencies[2] == pytest.approx(3.1)
    deleted = simulate(fleet(most_models=1, keep_on_disk=False), table(COLD, COLD), trace, seed=0)
    assert list(deleted.calls.outcomes) == [DOWNLOADED] * 3


def test_a_full_disk_loses_the_files_that_were_used_least_recently_and_are_not_loaded() -> None:
    sequence = [0, 1, 2, 0, 1, 3, 0, 2]
    happening = simulate(fleet(most_models=1, disk=3), table(*[COLD] * 4), one_by_one(sequence, apart=20.0), seed=0)
    again = [FROM_DISK, FROM_DISK, DOWNLOADED, FROM_DISK, DOWNLOADED]
    assert list(happening.calls.outcomes) == [DOWNLOADED] * 3 + again


def test_a_model_that_is_never_idle_takes_no_new_requests_after_a_while_and_loads_again() -> None:
    busy = replace(KIND, fixed=1.0, load_seconds=0.5)
    steady = [(1.0 + 0.9 * place, 0) for place in range(10)]
    trace = calls(*sorted([*steady, (2.0, 1)]))
    happening = simulate(fleet(most_models=1, patience=2.0), table(busy, busy), trace, seed=0)
    assert loaded(happening) == [0, 1, 0]
    assert evicted(happening) == [0, 1]
    assert WAITED in happening.calls.outcomes
    patient = simulate(fleet(most_models=1, patience=100.0), table(busy, busy), trace, seed=0)
    assert loaded(patient)[:2] == [0, 1]
    assert patient.calls.latencies[2] > happening.calls.latencies[2] > 2.0


def test_without_a_cache_every_call_that_meets_no_other_loads_anew_and_downloads() -> None:
    disabled = fleet(cached=False, keep_on_disk=False)
    happening = simulate(disabled, table(COLD), calls((1.0, 0), (10.0, 0), (30.0, 0)), seed=0)
    assert list(happening.calls.outcomes) == [DOWNLOADED] * 3
    assert list(happening.calls.latencies) == pytest.approx([5.1] * 3)
    assert evicted(happening) == [0, 0, 0]


def erlang_c(*, servers: int, load: float) -> float:
    """The probability to wait in M/M/c; ``load`` in Erlang (A. K. Erlang, 1917)."""
    terms = [load**n / math.factorial(n) for n in range(servers)]
    last = load**servers / math.factorial(servers) * servers / (servers - load)
    return last / (sum(terms) + last)


def mean_latency(kind: ModelKind, *, rate: float, count: int, executions: int = 1, seed: int = 11) -> float:
    """Seconds, of calls after the first tenth."""
    happening = simulate(
        fleet(executions=executions), table(kind), poisson(rate=rate, count=count, seed=seed), seed=seed
    )
    return float(happening.calls.latencies[count // 10 :].mean())


def test_exponential_executions_wait_as_by_erlang_c() -> None:
    servers, load, mean = 3, 2.0, 0.1
    kind = replace(KIND, fixed=mean, exponential=True, copies=servers)
    expected = mean + erlang_c(servers=servers, load=load) * mean / (servers - load)
    found = mean_latency(kind, rate=load / mean, count=400_000, executions=servers)
    assert found == pytest.approx(expected, rel=0.01)


def test_constant_executions_wait_as_by_pollaczek_and_khinchine() -> None:
    seconds, busy = 0.1, 0.6
    expected = seconds * busy / (2 * (1 - busy))
    found = mean_latency(replace(KIND, fixed=seconds), rate=busy / seconds, count=300_000) - seconds
    assert found == pytest.approx(expected, rel=0.01)


def test_a_full_queue_is_worked_off_in_full_batches() -> None:
    kind = replace(KIND, fixed=0.010, per_item=0.002, max_batch=8)
    happening = simulate(fleet(), table(kind), calls(*((1.0, 0) for _ in range(33))), seed=0)
    latencies = happening.calls.latencies
    # The first goes alone: nothing else was there yet, and it does not wait for others.
    assert latencies[0] == pytest.approx(0.012)
    assert latencies[1:9] == pytest.approx(0.012 + 0.026)
    assert latencies[25:33] == pytest.approx(0.012 + 4 * 0.026)


def test_a_delay_holds_a_request_for_others_at_most_so_long() -> None:
    kind = replace(KIND, fixed=0.010, per_item=0.0, max_batch=4, delay=0.005)
    happening = simulate(
        fleet(), table(kind), calls((1.0, 0), (2.0, 0), (2.001, 0), (3.0, 0), *[(3.002, 0)] * 3), seed=0
    )
    # Alone: the delay and the execution. Two: both go when the first one's delay is over. Four: at once when full.
    expected = [0.015, 0.015, 0.014, 0.012, 0.010, 0.010, 0.010]
    assert list(happening.calls.latencies) == pytest.approx(expected)


@pytest.mark.parametrize(("copies", "executions", "last"), [(1, 2, 0.4), (2, 1, 0.4), (2, 2, 0.2)])
def test_two_executions_at_once_need_two_instances_of_the_model_and_a_gpu_that_does_both(
    copies: int, executions: int, last: float
) -> None:
    kind = replace(KIND, fixed=0.1, copies=copies)
    happening = simulate(fleet(executions=executions), table(kind), calls(*[(1.0, 0)] * 4), seed=0)
    assert happening.calls.latencies[-1] == pytest.approx(last)


MODELS = 6
SEQUENCES = st.lists(st.integers(0, MODELS - 1), min_size=1, max_size=60)
TIMED = st.lists(st.tuples(st.floats(0, 50, allow_nan=False), st.integers(0, MODELS - 1)), min_size=1, max_size=60).map(
    lambda pairs: calls(*sorted(pairs))
)
KINDS = tuple(
    replace(
        KIND,
        memory=1 + number % 3,
        disk=2 + number % 2,
        download_seconds=0.5,
        load_seconds=1.0 + number / 4,
        fixed=0.25,
        per_item=0.125,
        max_batch=1 + number % 3,
        delay=0.25 * (number % 2),
        exponential=number == 4,
    )
    for number in range(MODELS)
)
TIGHT: dict[str, Any] = {"memory": 6, "disk": 9, "patience": 1.0, "unload_seconds": 0.5}


@given(sequence=SEQUENCES, places=st.integers(1, MODELS))
def test_hits_are_those_of_the_plainest_lru(sequence: list[int], places: int) -> None:
    happening = simulate(fleet(most_models=places), table(*[KIND] * MODELS), one_by_one(sequence), seed=0)
    stack: list[int] = []
    expected, gone = [], []
    for model in sequence:
        expected.append(model in stack)
        if model in stack:
            stack.remove(model)
        elif len(stack) == places:
            gone.append(stack.pop())
        stack.insert(0, model)
    assert hits(happening) == expected
    assert evicted(happening) == gone


@given(trace=TIMED, count=st.integers(1, 3), routing=st.sampled_from(["random", "least_outstanding", "loaded"]))
@example(trace=calls((0.0, 0), (0.0, 1), (0.0, 2), (0.0, 3)), count=1, routing="random")
def test_every_request_gets_a_response_and_is_counted_once(trace: Trace, count: int, routing: str) -> None:
    happening = simulate(fleet(count=count, routing=routing, **TIGHT), table(*KINDS), trace, seed=1)  # type: ignore[arg-type]
    assert not np.isnan(happening.calls.latencies).any()
    found = call_figures(happening, trace, after=0.0)
    assert found.hits + found.waited + found.cold_starts == found.calls == len(trace)
    assert found.cold_starts <= len(loaded(happening))
    assert len(evicted(happening)) <= len(loaded(happening))


def bits(happening: Happening) -> tuple[bytes, ...]:
    events = happening.events
    arrays = (events.seconds, events.kinds, events.models, events.instances)
    return (
        happening.calls.latencies.tobytes(),
        happening.calls.outcomes.tobytes(),
        *(each.tobytes() for each in arrays),
    )


@given(trace=TIMED, seed=st.integers(0, 2**32))
@settings(max_examples=30)
def test_a_seed_gives_the_same_bits(trace: Trace, seed: int) -> None:
    first, second = (simulate(fleet(count=2, **TIGHT), table(*KINDS), trace, seed=seed) for _ in range(2))
    assert bits(first) == bits(second)
