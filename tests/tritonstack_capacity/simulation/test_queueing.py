"""The simulation against the queues that have a formula (Erlang, Pollaczek and Khinchine)."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tests.tritonstack_capacity.simulation.plans import KIND, calls, plan, poisson, table
from tritonstack_capacity.simulation.fleet import simulate
from tritonstack_capacity.simulation.trace import ModelKind


def erlang_c(*, servers: int, load: float) -> float:
    """The probability to wait in M/M/c; ``load`` in Erlang (A. K. Erlang, 1917)."""
    terms = [load**n / math.factorial(n) for n in range(servers)]
    last = load**servers / math.factorial(servers) * servers / (servers - load)
    return last / (sum(terms) + last)


def mean_latency(kind: ModelKind, *, rate: float, count: int, executions: int = 1, seed: int = 11) -> float:
    """Seconds, of calls after the first tenth."""
    happening = simulate(
        plan(executions=executions), table(kind), poisson(rate=rate, count=count, seed=seed), seed=seed
    )
    return float(happening.calls.latencies[count // 10 :].mean())


def test_erlang_c_itself_is_right_where_it_is_known() -> None:
    assert erlang_c(servers=1, load=0.3) == pytest.approx(0.3)  # M/M/1: the share of time that the server is busy
    assert erlang_c(servers=2, load=1.0) == pytest.approx(1 / 3)


@pytest.mark.parametrize(("servers", "load"), [(1, 0.5), (3, 2.0)])
def test_exponential_executions_wait_as_erlang_c_says(servers: int, load: float) -> None:
    mean = 0.1
    kind = replace(KIND, fixed=mean, exponential=True, copies=servers)
    expected = mean + erlang_c(servers=servers, load=load) * mean / (servers - load)
    found = mean_latency(kind, rate=load / mean, count=400_000, executions=servers)
    assert found == pytest.approx(expected, rel=0.01)


def test_constant_executions_wait_as_pollaczek_and_khinchine_say() -> None:
    seconds, busy = 0.1, 0.6
    expected = seconds * busy / (2 * (1 - busy))
    found = mean_latency(replace(KIND, fixed=seconds), rate=busy / seconds, count=300_000) - seconds
    assert found == pytest.approx(expected, rel=0.01)


@pytest.mark.long
def test_waits_alone_are_within_a_hundredth_of_erlang_c() -> None:
    servers, mean, load = 4, 0.1, 3.2
    kind = replace(KIND, fixed=mean, exponential=True, copies=servers)
    expected = erlang_c(servers=servers, load=load) * mean / (servers - load)
    found = mean_latency(kind, rate=load / mean, count=6_000_000, executions=servers) - mean
    assert found == pytest.approx(expected, rel=0.01)


def test_a_full_queue_is_worked_off_in_full_batches() -> None:
    kind = replace(KIND, fixed=0.010, per_item=0.002, max_batch=8)
    happening = simulate(plan(), table(kind), calls(*((1.0, 0) for _ in range(33))), seed=0)
    latencies = happening.calls.latencies
    # The first goes alone: nothing else was there yet, and it does not wait for others.
    assert latencies[0] == pytest.approx(0.012)
    assert latencies[1:9] == pytest.approx(0.012 + 0.026)
    assert latencies[25:33] == pytest.approx(0.012 + 4 * 0.026)


def test_a_delay_holds_a_request_for_others_at_most_so_long() -> None:
    kind = replace(KIND, fixed=0.010, per_item=0.0, max_batch=4, delay=0.005)
    happening = simulate(
        plan(), table(kind), calls((1.0, 0), (2.0, 0), (2.001, 0), (3.0, 0), *[(3.002, 0)] * 3), seed=0
    )
    # Alone: the delay and the execution. Two: both go when the first one's delay is over. Four: at once when full.
    expected = [0.015, 0.015, 0.014, 0.012, 0.010, 0.010, 0.010]
    assert list(happening.calls.latencies) == pytest.approx(expected)


@pytest.mark.parametrize(("copies", "executions", "last"), [(1, 2, 0.4), (2, 1, 0.4), (2, 2, 0.2)])
def test_two_executions_at_once_need_two_instances_of_the_model_and_a_gpu_that_does_both(
    copies: int, executions: int, last: float
) -> None:
    kind = replace(KIND, fixed=0.1, copies=copies)
    happening = simulate(plan(executions=executions), table(kind), calls(*[(1.0, 0)] * 4), seed=0)
    assert happening.calls.latencies[-1] == pytest.approx(last)


def test_models_take_turns_on_the_gpu() -> None:
    kind = replace(KIND, fixed=0.1)
    happening = simulate(plan(), table(kind, kind), calls((1.0, 0), (1.0, 0), (1.0, 0), (1.0, 1)), seed=0)
    assert list(happening.calls.latencies) == pytest.approx([0.1, 0.3, 0.4, 0.2])


def test_a_model_in_line_does_not_get_in_line_again() -> None:
    quick, slow = replace(KIND, fixed=0.1, copies=2), replace(KIND, fixed=1.0)
    trace = calls((1.0, 0), (1.0, 1), (1.0, 0), (1.0, 0), (1.25, 2))
    happening = simulate(plan(executions=2), table(quick, slow, quick), trace, seed=0)
    assert list(happening.calls.latencies) == pytest.approx([0.1, 1.0, 0.2, 0.3, 0.15])
