"""The simulated cache against the local runtime's: one trace, played for real and simulated."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.e2e.calls import invoke, target_model
from tests.e2e.conftest import HELD, MANY
from tritonstack.naming import ArchiveName
from tritonstack_capacity.simulation.fleet import simulate
from tritonstack_capacity.simulation.instance import EVICTION, HIT
from tritonstack_capacity.simulation.scenario_file import prepare
from tritonstack_local.aws import LocalAws

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(1200)]

CALLS = 30
APART = 30.0
"""Seconds between simulated calls: longer than a load, since the real ones follow each other's answers."""
SCENARIO = f"""
instance: {{type: ml.g4dn.xlarge, max_loaded_models: {HELD}}}
models: [{{name: adds, count: {MANY}, gpu_memory_mib: 1, disk_mib: 1, service: {{fixed_ms: 20}}}}]
arrivals: {{trace: trace.csv}}
cold_start: {{load_seconds: 3, keep_on_disk: false}}
"""


@dataclass(frozen=True)
class TraceStep:
    """What one call did: whether its model was there, and which models went for it."""

    model: int
    hit: bool
    evicted: frozenset[int]


def test_a_trace_hits_and_evicts_the_same_call_by_call(deployed: LocalAws, dice: random.Random, tmp_path: Path) -> None:
    numbers = dice.sample(range(MANY), MANY)
    weights = [1 / (place + 1) for place in range(MANY)]
    # The first calls fill the cache, so that it does not matter what other tests left in it.
    trace = [*numbers[:HELD], *dice.choices(numbers, weights, k=CALLS)]
    real, simulated = played(deployed, trace)[HELD:], simulated_steps(trace, tmp_path)[HELD:]
    assert real == simulated
    assert {step.hit for step in real} == {True, False}
    assert len({model for step in real for model in step.evicted}) > 3


def played(aws: LocalAws, trace: list[int]) -> list[TraceStep]:
    """Each call for real, and what the runtime held before and after it."""
    client = aws.client("sagemaker-runtime")
    targets = {number: target_model(aws, endpoint="many", model=f"adds-{number:02}") for number in set(trace)}
    steps, before = [], held(aws)
    for number in trace:
        assert invoke(client, endpoint="many", target=targets[number], value=1.0) == 1.0 + number
        after = held(aws)
        steps.append(TraceStep(number, number in before, frozenset(before - after)))
        before = after
    return steps


def held(aws: LocalAws) -> set[int]:
    """Numbers of the models that the endpoint's container holds."""
    [fleet] = next(item for item in aws.runtime_status()["endpoints"] if item["name"] == "local-many")["fleets"]
    archives = [ArchiveName.parse(each["target_model"]) for each in fleet["models"]]
    return {int(archive.model.removeprefix("adds-")) for archive in archives if archive is not None}


def simulated_steps(trace: list[int], folder: Path) -> list[TraceStep]:
    """The same calls in a simulation, from an empty cache."""
    (folder / "scenario.yaml").write_text(SCENARIO)
    lines = [f"{APART * (call + 1)},adds-{number}" for call, number in enumerate(trace)]
    (folder / "trace.csv").write_text("\n".join(["time_seconds,model", *lines]) + "\n")
    prepared = prepare(folder / "scenario.yaml", seed=0)
    happening = simulate(prepared.fleet, prepared.models, prepared.trace, seed=0)
    seconds, models, _ = happening.events.of_kind(EVICTION)
    # An eviction belongs to the last call before it.
    call_of = np.searchsorted(prepared.trace.times, seconds, side="right") - 1
    return [
        TraceStep(number, happening.calls.outcomes[call] == HIT, frozenset(models[call_of == call].tolist()))
        for call, number in enumerate(trace)
    ]
