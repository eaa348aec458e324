"""A rollout against every fleet that it may meet: the sizes of its steps, its waits, and how long it may take."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.config.environment_file import write_environment
from tests.config.test_rollout import CANARY
from tritonstack.config import Endpoint, Rollout, load_environment
from tritonstack.config.rollout import check_rollout
from tritonstack.errors import InputError


def scaled_endpoint(rollout: dict[str, object], *, smallest: int, largest: int, initial: int) -> Endpoint:
    """A single-model endpoint with this rollout; scaled where its limits differ."""
    scaling = {"minimum": smallest, "maximum": largest, "invocations_per_instance": 100.0}
    return Endpoint.model_validate(
        {
            "name": "e",
            "mode": "single-model",
            "release": "24.09",
            "instance_type": "ml.g5.xlarge",
            "initial_instance_count": initial,
            "models": ["m"],
            "rollout": Rollout.model_validate(rollout),
            "scaling": None if smallest == largest else scaling,
        }
    )


def check(endpoint: Endpoint) -> list[str]:
    """What is refused of an endpoint's rollout."""
    return [f"{each.found} | {each.allowed} | {each.advice}" for each in check_rollout(endpoint=endpoint, location=())]


LEAST = {"canary": 0, "linear": 10, "rolling": 5}


@given(
    smallest=st.integers(1, 30),
    more=st.integers(0, 40),
    initial=st.integers(0, 40),
    kind=st.sampled_from(sorted(LEAST)),
    size=st.tuples(st.none() | st.integers(1, 50), st.none() | st.integers(1, 70)),
)
def test_a_step_is_accepted_where_every_fleet_that_scaling_may_leave_can_make_it(
    smallest: int, more: int, initial: int, kind: str, size: tuple[int | None, int | None]
) -> None:
    percent, number = size
    rollout: dict[str, object] = {"kind": kind, "size_percent": percent, "size_instances": number, "wait_seconds": 120}
    endpoint = scaled_endpoint(
        rollout, smallest=smallest, largest=smallest + more, initial=smallest + min(initial, more)
    )
    refused = check(endpoint)
    if (percent is None) == (number is None):
        assert refused
        return

    def possible(count: int) -> bool:
        share = percent if percent is not None else 100 * (number or 0) / count
        return count * share / 100 >= 1 and LEAST[kind] <= share <= 50

    assert bool(refused) != all(possible(count) for count in range(smallest, smallest + more + 1))


@given(
    count=st.integers(2, 60),
    percent=st.none() | st.integers(1, 100),
    number=st.none() | st.integers(1, 70),
)
def test_a_rollback_batch_that_is_accepted_moves_one_instance_or_more_and_no_more_than_there_are(
    count: int, percent: int | None, number: int | None
) -> None:
    rollout = {
        "kind": "rolling",
        "size_percent": 50,
        "wait_seconds": 120,
        "rollback_size_percent": percent,
        "rollback_size_instances": number,
    }
    refused = check(scaled_endpoint(rollout, smallest=count, largest=count, initial=count))
    if percent is not None and number is not None:
        assert refused
        return
    batch = number if number is not None else count * (100 if percent is None else percent) / 100
    assert bool(refused) != (1 <= batch <= count)


@given(wait=st.integers(0, 3600), kind=st.sampled_from(sorted(LEAST)), last=st.integers(0, 3600))
def test_no_accepted_wait_is_over_before_an_alarm_of_our_own_can_fire(wait: int, kind: str, last: int) -> None:
    last = 0 if kind == "rolling" else last
    rollout = {"kind": kind, "size_percent": 50, "wait_seconds": wait, "termination_wait_seconds": last}
    refused = check(scaled_endpoint(rollout, smallest=2, largest=2, initial=2))
    assert bool(refused) == (wait < 120 or 0 < last < 120)


def test_a_step_that_the_first_fleet_can_make_and_the_scaled_one_cannot_is_refused_with_both(tmp_path: Path) -> None:
    path = write_environment(
        tmp_path,
        endpoint="mode: multi-model\ninitial_instance_count: 4\n"
        'scaling: {minimum: 2, maximum: 40, gpu_utilization: 60, schedules: [{name: n, when: "cron(0 1 * * ? *)", '
        "maximum: 60}]}\n"
        f"rollout: {{{CANARY.replace('canary', 'linear').replace('size_percent: 50', 'size_instances: 1')}}}",
    )
    with pytest.raises(InputError) as caught:
        load_environment(path)
    [problem] = caught.value.problems
    assert "1 of 60 instances, which is 2 % of the fleet; scaling leaves it between 2 and 60" in problem.found
    assert "10 to 50 % of 60 instances: 6 to 30" in problem.allowed
    assert "No number of instances suits them all (6 or more for 60, 1 or fewer for 2)" in problem.advice
    assert "size_percent from 50 to 50" in problem.advice


def test_the_longest_of_all_fleets_must_end_in_time() -> None:
    rollout = {"kind": "linear", "size_percent": 40, "wait_seconds": 600, "maximum_execution_minutes": 20}
    [refused] = check(scaled_endpoint(rollout, smallest=3, largest=4, initial=3))
    assert "the steps of 4 instances together take 1800 s" in refused


def test_a_slowest_load_of_a_single_model_endpoint_is_refused() -> None:
    rollout = {"kind": "canary", "size_percent": 50, "wait_seconds": 120, "slowest_load_seconds": 5.0}
    [refused] = check(scaled_endpoint(rollout, smallest=2, largest=2, initial=2))
    assert "5 on a single-model endpoint" in refused
