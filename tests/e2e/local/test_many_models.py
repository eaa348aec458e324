"""More archives behind one endpoint than it can hold at once."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.calls import invoke, target_model
from tests.e2e.conftest import MANY, SOME
from tritonstack_local.aws import LocalAws

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


def call_at_random(aws: LocalAws, *, models: int, calls: int, threads: int, dice: random.Random) -> None:
    """Call the first ``models`` models, each at least once, from ``threads`` threads and check every answer."""
    client = aws.client("sagemaker-runtime")
    numbers = dice.sample(range(models), models)
    targets = {number: target_model(aws, endpoint="many", model=f"adds-{number:02}") for number in numbers}
    called = [*numbers, *dice.choices(numbers, k=calls - models)]
    plan = [(number, float(dice.randrange(1000))) for number in called]

    def call(step: tuple[int, float]) -> tuple[float, float]:
        number, value = step
        return invoke(client, endpoint="many", target=targets[number], value=value), value + number

    with ThreadPoolExecutor(threads) as pool:
        wrong = [(answer, right) for answer, right in pool.map(call, plan) if answer != right]
    assert not wrong


def check_fleet(aws: LocalAws) -> None:
    """The limit was held and models were evicted; that none was under a request, the right answers show."""
    found = next(item for item in aws.runtime_status()["endpoints"] if item["name"] == "local-many")
    [fleet] = found["fleets"]
    assert len(fleet["models"]) <= 8
    assert fleet["unloads"] > 0
    assert fleet["errors"] == 0


def test_a_sample_of_models_answers_right_under_eviction(deployed: LocalAws, dice: random.Random) -> None:
    call_at_random(deployed, models=SOME, calls=14, threads=4, dice=dice)
    check_fleet(deployed)


@pytest.mark.long
def test_forty_archives_on_an_endpoint_that_holds_eight_answer_right_from_eight_threads(
    deployed: LocalAws, dice: random.Random
) -> None:
    call_at_random(deployed, models=MANY, calls=50, threads=8, dice=dice)
    check_fleet(deployed)
