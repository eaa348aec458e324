"""More archives behind one endpoint than it can hold at once."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.calls import invoke, target_model
from tests.e2e.conftest import HELD, MANY
from tritonstack_local.aws import LocalAws

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


def test_models_answer_right_from_four_threads_under_eviction(deployed: LocalAws, dice: random.Random) -> None:
    """The limit holds and models are evicted; that none was under a request, the right answers show."""
    client = deployed.client("sagemaker-runtime")
    numbers = dice.sample(range(MANY), MANY)
    targets = {number: target_model(deployed, endpoint="many", model=f"adds-{number:02}") for number in numbers}
    plan = [(number, float(dice.randrange(1000))) for number in (*numbers, *dice.choices(numbers, k=4))]

    def call(step: tuple[int, float]) -> tuple[float, float]:
        number, value = step
        return invoke(client, endpoint="many", target=targets[number], value=value), value + number

    with ThreadPoolExecutor(4) as pool:
        assert [(answer, right) for answer, right in pool.map(call, plan) if answer != right] == []
    found = next(item for item in deployed.runtime_status()["endpoints"] if item["name"] == "local-many")
    [fleet] = found["fleets"]
    assert len(fleet["models"]) <= HELD
    assert fleet["unloads"] > 0
    assert fleet["errors"] == 0
