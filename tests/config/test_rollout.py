"""``rollout``: its own fields, and the fleets that it is split over."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.config.environment_file import write_environment
from tritonstack.config import Endpoint, Rollout, load_environment
from tritonstack.config.rollout import check_rollout
from tritonstack.errors import InputError, Problem

ALARMS = "rollback_alarms: [digits-5xx]"
CANARY = f"kind: canary, size_percent: 50, wait_seconds: 600, {ALARMS}, accept_multi_model: true"


def endpoint_lines(rollout: str, *, instances: int = 2, mode: str = "multi-model") -> str:
    """The endpoint's lines with this rollout."""
    return f"mode: {mode}\ninitial_instance_count: {instances}\nrollout: {{{rollout}}}"


def problems_of(folder: Path, rollout: str, *, instances: int = 2, mode: str = "multi-model") -> list[Problem]:
    """What is wrong with an environment whose one endpoint has this rollout."""
    path = write_environment(folder, endpoint=endpoint_lines(rollout, instances=instances, mode=mode))
    with pytest.raises(InputError) as caught:
        load_environment(path)
    return list(caught.value.problems)


def loaded(folder: Path, rollout: str, *, instances: int = 2, mode: str = "multi-model") -> Rollout:
    """The rollout as it was read."""
    path = write_environment(folder, endpoint=endpoint_lines(rollout, instances=instances, mode=mode))
    found = load_environment(path).endpoints[0].rollout
    assert found is not None
    return found


def test_without_a_rollout_there_is_none(tmp_path: Path) -> None:
    assert load_environment(write_environment(tmp_path)).endpoints[0].rollout is None


def test_a_canary_of_half_of_two_instances_is_read(tmp_path: Path) -> None:
    found = loaded(tmp_path, CANARY)
    assert (found.kind, found.size_percent, found.wait_seconds) == ("canary", 50, 600)
    assert found.rollback_alarms == ("digits-5xx",)
    assert found.termination_wait_seconds == 0


def test_all_at_once_needs_neither_size_nor_wait_nor_alarm(tmp_path: Path) -> None:
    assert loaded(tmp_path, "kind: all-at-once", instances=1, mode="single-model").kind == "all-at-once"


def test_linear_steps_of_one_of_ten_instances_are_read(tmp_path: Path) -> None:
    given_rollout = f"kind: linear, size_instances: 1, wait_seconds: 120, {ALARMS}"
    assert loaded(tmp_path, given_rollout, instances=10, mode="single-model").watched_seconds(10) == 1080


def test_rolling_batches_are_read_and_each_of_them_is_waited_for(tmp_path: Path) -> None:
    found = loaded(tmp_path, f"{ROLLING}, rollback_size_percent: 50", instances=4)
    assert (found.kind, found.rollback_instances(4)) == ("rolling", 2)
    assert found.watched_seconds(4) == 2400, "the last batch is watched, too"


def test_our_own_alarms_are_there_unless_they_are_switched_off(tmp_path: Path) -> None:
    assert loaded(tmp_path, CANARY).own_alarms is not None
    assert loaded(tmp_path, CANARY + ", alarms: null").own_alarms is None
    assert loaded(tmp_path, "kind: all-at-once, accept_multi_model: true").own_alarms is None, "nothing is watched"


def test_a_wait_as_long_as_the_slowest_load_is_enough(tmp_path: Path) -> None:
    assert loaded(tmp_path, CANARY + ", slowest_load_seconds: 600").slowest_load_seconds == 600


ROLLING = "kind: rolling, size_instances: 1, wait_seconds: 600, accept_multi_model: true"
STEPS = f"wait_seconds: 120, {ALARMS}, accept_multi_model: true"
REFUSED = {
    "unknown kind": (CANARY.replace("canary", "blue"), 2, "kind", ("blue", "'rolling'")),
    "unknown field": (CANARY + ", colour: red", 2, "colour", ("Remove it",)),
    "wait over an hour": (CANARY.replace("600", "3601"), 2, "wait_seconds", ("3601", "3600 or less")),
    "termination wait over an hour": (
        CANARY + ", termination_wait_seconds: 3601",
        2,
        "termination_wait_seconds",
        ("3600 or less",),
    ),
    "limit below ten minutes": (CANARY + ", maximum_execution_minutes: 9", 2, "maximum_execution_minutes", ("10",)),
    "limit over eight hours": (
        CANARY + ", maximum_execution_minutes: 481",
        2,
        "maximum_execution_minutes",
        ("480",),
    ),
    "canary above half": (CANARY.replace("50", "51"), 2, "size_percent", ("51", "50 or less")),
    "canary of a tenth of two": (
        CANARY.replace("50", "10"),
        2,
        "size_percent",
        ("10 % of 2 instances, which is 0.2 of an instance", "50 % or more of 2", "size_instances: 1"),
    ),
    "canary of a third of two": (CANARY.replace("50", "33"), 2, "size_percent", ("0.66 of an instance",)),
    "canary as large as the fleet": (
        f"kind: canary, size_instances: 2, {STEPS}",
        2,
        "size_instances",
        ("2 of 2 instances, which is 100 % of the fleet", "at most 50 % of 2 instances: 1 to 1"),
    ),
    "canary larger than the fleet": (
        f"kind: canary, size_instances: 5, {STEPS}",
        4,
        "size_instances",
        ("5 of 4 instances", "1 to 2"),
    ),
    "canary of one instance": (
        f"kind: canary, size_instances: 1, {STEPS}",
        1,
        "size_instances",
        ("a fleet of 1 instance", "50 % of 1 is half an instance", "initial_instance_count: 2"),
    ),
    "linear step below a tenth": (
        f"kind: linear, size_instances: 1, {STEPS}",
        11,
        "size_instances",
        ("1 of 11 instances, which is 9 % of the fleet", "10 to 50 % of 11 instances: 2 to 5"),
    ),
    "linear step of nine percent": (
        f"kind: linear, size_percent: 9, {STEPS}",
        100,
        "size_percent",
        ("9 % of 100 instances", "10 to 50 %"),
    ),
    "both sizes": (CANARY + ", size_instances: 1", 2, "size_percent", ("both", "exactly one")),
    "no size": (f"kind: linear, {STEPS}", 2, "size_percent", ("neither", "exactly one")),
    "no wait": (CANARY.replace("wait_seconds: 600, ", ""), 2, "wait_seconds", ("null", "slowest model")),
    "no alarm": (CANARY.replace(ALARMS, "alarms: null"), 2, "rollback_alarms", ("1 to 10", "Without an alarm")),
    "blank alarm": (CANARY.replace("digits-5xx", '" "'), 2, "rollback_alarms[0]", ("not blank",)),
    "alarm by its ARN": (
        CANARY.replace("digits-5xx", '"arn:aws:cloudwatch:us-east-1:123456789012:alarm:a"'),
        2,
        "rollback_alarms",
        ("an alarm's name", ":alarm:"),
    ),
    "alarm twice": (CANARY.replace("digits-5xx", "a, a"), 2, "rollback_alarms", ("a 2 times",)),
    "eleven alarms": (
        CANARY.replace("digits-5xx", ", ".join(f"a{number}" for number in range(11))),
        2,
        "rollback_alarms",
        ("10",),
    ),
    "multi-model without saying so": (
        CANARY.replace(", accept_multi_model: true", ""),
        2,
        "accept_multi_model",
        ("feature matrix", "nobody depends on"),
    ),
    "size of all at once": (
        f"kind: all-at-once, size_percent: 50, {ALARMS}, accept_multi_model: true",
        2,
        "size_percent",
        ("50 with kind: all-at-once", "kind: canary"),
    ),
    "wait of all at once": (
        f"kind: all-at-once, wait_seconds: 5, {ALARMS}, accept_multi_model: true",
        2,
        "wait_seconds",
        ("termination_wait_seconds",),
    ),
    "watching without an alarm": (
        "kind: all-at-once, termination_wait_seconds: 60, alarms: null, accept_multi_model: true",
        2,
        "rollback_alarms",
        ("1 to 10",),
    ),
    "nine names and two of our own": (
        CANARY.replace("digits-5xx", ", ".join(f"a{number}" for number in range(9))),
        2,
        "rollback_alarms",
        ("9 names, and 2 alarms of the stack's own: 11", "8 names"),
    ),
    "over before our own alarms can fire": (
        CANARY.replace("600", "119"),
        2,
        "wait_seconds",
        ("119 seconds", "120 seconds or more", "up to 60 until CloudWatch", "alarms: null"),
    ),
    "last wait over before our own alarms can fire": (
        "kind: all-at-once, termination_wait_seconds: 60, accept_multi_model: true",
        2,
        "termination_wait_seconds",
        ("60 seconds", "120 seconds or more"),
    ),
    "alarms that are none": (
        CANARY.replace(ALARMS, "alarms: {server_error_percent: null, model_error_percent: null}"),
        2,
        "rollback_alarms",
        ("none of the stack's own",),
    ),
    "wait shorter than the slowest load": (
        CANARY + ", slowest_load_seconds: 610.5",
        2,
        "wait_seconds",
        ("600 seconds, and the slowest load took 610.5", "over 10.5 seconds before", "611 seconds or more"),
    ),
    "watching for less than the slowest load": (
        "kind: all-at-once, termination_wait_seconds: 120, slowest_load_seconds: 121, accept_multi_model: true",
        2,
        "termination_wait_seconds",
        ("the slowest load took 121",),
    ),
    "rolling batch of all": (
        ROLLING.replace("size_instances: 1", "size_instances: 2"),
        2,
        "size_instances",
        ("2 of 2 instances, which is 100 % of the fleet", "5 to 50 % of 2 instances: 1 to 1"),
    ),
    "rolling batch below a twentieth": (
        ROLLING,
        21,
        "size_instances",
        ("1 of 21 instances, which is 5 % of the fleet", "5 to 50 % of 21 instances: 2 to 10"),
    ),
    "rolling batch of one instance": (ROLLING, 1, "size_instances", ("a batch of a fleet of 1 instance",)),
    "rolling with a wait that it has not": (
        ROLLING + ", termination_wait_seconds: 120",
        2,
        "termination_wait_seconds",
        ("120 with kind: rolling", "wait_seconds follows the last one too"),
    ),
    "rollback batch larger than the fleet": (
        ROLLING + ", rollback_size_instances: 3",
        2,
        "rollback_size_instances",
        ("3 of 2 instances", "1 to 2 instances, or 50 to 100 %"),
    ),
    "rollback batch of less than an instance": (
        ROLLING + ", rollback_size_percent: 20",
        4,
        "rollback_size_percent",
        ("20 % of 4: 0.8 instances", "25 to 100 %"),
    ),
    "two rollback batches": (
        ROLLING + ", rollback_size_percent: 50, rollback_size_instances: 1",
        2,
        "rollback_size_percent",
        ("both rollback_size_percent and rollback_size_instances",),
    ),
    "rollback batch of a canary": (
        CANARY + ", rollback_size_instances: 1",
        2,
        "rollback_size_instances",
        ("1 with kind: canary", "kind: rolling"),
    ),
    "rolling waits longer than the limit": (
        ROLLING + ", maximum_execution_minutes: 20",
        2,
        "maximum_execution_minutes",
        ("the steps of 2 instances together take 1200 s",),
    ),
    "waits longer than the limit": (
        CANARY + ", termination_wait_seconds: 300, maximum_execution_minutes: 15",
        2,
        "maximum_execution_minutes",
        ("15 (900 s)", "together take 900 s", "more than 15 minutes"),
    ),
    "linear waits longer than the limit": (
        f"kind: linear, size_percent: 25, maximum_execution_minutes: 15, {STEPS.replace('120', '300')}",
        4,
        "maximum_execution_minutes",
        ("the steps of 4 instances together take 900 s",),
    ),
}


@pytest.mark.parametrize(("rollout", "instances", "field", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_is_refused_with_the_arithmetic(
    rollout: str, instances: int, field: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    problems = problems_of(tmp_path, rollout, instances=instances)
    assert {problem.field for problem in problems} == {f"endpoints[0].rollout.{field}"}
    for word in words:
        assert word in "\n".join(map(str, problems))


def test_every_problem_of_a_rollout_is_told_at_once(tmp_path: Path) -> None:
    problems = problems_of(tmp_path, "kind: canary, size_percent: 10, alarms: null, maximum_execution_minutes: 10")
    assert {(problem.field or "").rpartition(".")[2] for problem in problems} == {
        "accept_multi_model",
        "size_percent",
        "wait_seconds",
        "rollback_alarms",
    }


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
