"""What holds for every trace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.tritonstack_capacity.simulation.plans import KIND, calls, evicted, hits, loaded, one_by_one, plan, table
from tritonstack_capacity.simulation.answer import call_figures
from tritonstack_capacity.simulation.fleet import simulate
from tritonstack_capacity.simulation.instance import Happening
from tritonstack_capacity.simulation.trace import Trace

MODELS = 6
SEQUENCES = st.lists(st.integers(0, MODELS - 1), min_size=1, max_size=60)
TIMED = st.lists(st.tuples(st.floats(0, 50, allow_nan=False), st.integers(0, MODELS - 1)), min_size=1, max_size=60).map(
    lambda pairs: calls(*sorted(pairs))
)
COLD = tuple(
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
    happening = simulate(plan(most_models=places), table(*[KIND] * MODELS), one_by_one(sequence), seed=0)
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
def test_every_call_is_answered_and_counted_once(trace: Trace, count: int, routing: str) -> None:
    happening = simulate(plan(count=count, routing=routing, **TIGHT), table(*COLD), trace, seed=1)  # type: ignore[arg-type]
    assert not np.isnan(happening.calls.latencies).any()
    found = call_figures(happening, trace, after=0.0)
    assert found.hits + found.waited + found.cold_starts == found.calls == len(trace)
    assert found.cold_starts <= len(loaded(happening))
    assert len(evicted(happening)) <= len(loaded(happening))


@given(trace=TIMED)
def test_no_call_is_faster_than_its_model_alone(trace: Trace) -> None:
    constant = tuple(replace(kind, exponential=False) for kind in COLD)
    happening = simulate(plan(**TIGHT), table(*constant), trace, seed=0)
    alone = np.array([constant[model].fixed + constant[model].per_item for model in trace.models])
    assert (happening.calls.latencies >= alone - 1e-9).all()


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
    first, second = (simulate(plan(count=2, **TIGHT), table(*COLD), trace, seed=seed) for _ in range(2))
    assert bits(first) == bits(second)
