"""``rollout``: its own fields, and the fleets that it is split over."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.config.environment_file import problems_of, write_environment
from tritonstack.config import EndpointSettings, Rollout, load_environment
from tritonstack.config.rollout import check_rollout

CANARY = "kind: canary, size_percent: 50, wait_seconds: 600, accept_multi_model: true"


def loaded(folder: Path, rollout: str, *, instances: int = 2, mode: str = "multi-model") -> Rollout:
    """The rollout as it was read."""
    lines = f"mode: {mode}\ninitial_instance_count: {instances}\nrollout: {{{rollout}}}"
    found = load_environment(write_environment(folder, endpoint=lines)).endpoints[0].rollout
    assert found is not None
    return found


def test_there_are_alarms_where_something_is_waited_for(tmp_path: Path) -> None:
    assert loaded(tmp_path, CANARY).own_alarms is not None
    assert loaded(tmp_path, "kind: all-at-once, accept_multi_model: true").own_alarms is None, "nothing is watched"


def scaled_endpoint(rollout: dict[str, object], *, smallest: int, largest: int, initial: int) -> EndpointSettings:
    """A single-model endpoint with this rollout; scaled where its limits differ."""
    scaling = {"minimum": smallest, "maximum": largest, "invocations_per_instance": 100.0}
    return EndpointSettings.model_validate(
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


def check(endpoint: EndpointSettings) -> list[str]:
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


@given(wait=st.integers(0, 3600), kind=st.sampled_from(sorted(LEAST)), last=st.integers(0, 3600))
def test_no_accepted_wait_is_over_before_an_alarm_of_our_own_can_fire(wait: int, kind: str, last: int) -> None:
    last = 0 if kind == "rolling" else last
    rollout = {"kind": kind, "size_percent": 50, "wait_seconds": wait, "termination_wait_seconds": last}
    refused = check(scaled_endpoint(rollout, smallest=2, largest=2, initial=2))
    assert bool(refused) == (wait < 120 or 0 < last < 120)


def test_a_step_that_the_first_fleet_can_make_and_the_scaled_one_cannot_is_refused_with_both(tmp_path: Path) -> None:
    [problem] = problems_of(
        tmp_path,
        endpoint="mode: multi-model\ninitial_instance_count: 4\n"
        'scaling: {minimum: 2, maximum: 40, gpu_utilization: 60, schedules: [{name: n, when: "cron(0 1 * * ? *)", '
        "maximum: 60}]}\n"
        f"rollout: {{{CANARY.replace('canary', 'linear').replace('size_percent: 50', 'size_instances: 1')}}}",
    )
    assert "1 of 60 instances, which is 2 % of the fleet; scaling leaves it between 2 and 60" in problem.found
    assert "10 to 50 % of 60 instances: 6 to 30" in problem.allowed
    assert "size_percent from 50 to 50" in problem.advice
