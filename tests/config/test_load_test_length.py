"""A load test's length: the history and the time that its state machine has."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constructs_lib.load_test import definition
from tests.e2e.project import environment_yaml
from tritonstack.catalogue import load_catalogue
from tritonstack.config import LoadTestSettings, load_environment
from tritonstack.config.endpoint import Endpoint
from tritonstack.config.load_test import (
    LONGEST_JOB,
    LONGEST_TEST,
    MOST_EVENTS,
    MOST_JOBS,
    Length,
    check_load_test,
    length_of,
)
from tritonstack.errors import InputError

EVENTS = {
    "Task": ("TaskStateEntered", "TaskScheduled", "TaskStarted", "TaskSucceeded", "TaskStateExited"),
    "Wait": ("WaitStateEntered", "WaitStateExited"),
    "Choice": ("ChoiceStateEntered", "ChoiceStateExited"),
    "Succeed": ("SucceedStateEntered", "SucceedStateExited"),
}
"""Of a state of each type, as the history of an execution has them (API reference: HistoryEvent)."""


def history(machine: dict[str, Any], *, jobs: int, polls: int) -> Iterator[str]:
    """The events of an execution that goes well, from the definition that is deployed."""
    name: str | None = machine["StartAt"]
    asked = 0
    while name is not None:
        state = machine["States"][name]
        if state["Type"] == "Map":
            yield from ("MapStateEntered", "MapStateStarted")
            for _ in range(jobs):
                yield "MapIterationStarted"
                yield from history(state["ItemProcessor"], jobs=jobs, polls=polls)
                yield "MapIterationSucceeded"
            yield from ("MapStateSucceeded", "MapStateExited")
        else:
            yield from EVENTS[state["Type"]]
        asked += name == "Look"
        if name == "HasItEnded" and asked >= polls:
            [choice] = state["Choices"]
            name = choice["Next"]
        else:
            name = state.get("Next", state.get("Default"))


def whole(*, jobs: int, polls: int) -> int:
    """All events, with the execution's own two."""
    return 2 + len(list(history(dict(definition(at_once=2)), jobs=jobs, polls=polls)))


@pytest.mark.parametrize(("jobs", "polls"), [(1, 1), (1, 5), (7, 3), (24, 75)])
def test_the_events_are_those_of_the_deployed_definition(jobs: int, polls: int) -> None:
    assert Length(jobs=jobs, job_seconds=polls * 60).events(poll_seconds=60) == whole(jobs=jobs, polls=polls)


def test_the_time_is_that_after_which_the_state_machine_ends() -> None:
    assert definition(at_once=1)["TimeoutSeconds"] == LONGEST_TEST


SINGLE = Endpoint.model_validate(
    {"name": "e", "mode": "single-model", "release": "24.09", "instance_type": "ml.g4dn.xlarge", "models": ["m"]}
)


def told(jobs: int, **recommender: Any) -> dict[str, str]:
    """Field → advice, of so many single-model endpoints with a job each."""
    found = check_load_test(
        LoadTestSettings.model_validate({"recommender": recommender}),
        endpoints={f"e{number}": SINGLE for number in range(jobs)},
        names=frozenset({"e"}),
        catalogue=load_catalogue(),
        network=None,
        builds=None,
    )
    return {str(each.location[-1]): each.advice for each in found}


@given(
    jobs=st.integers(1, MOST_JOBS),
    kind=st.sampled_from(["advanced", "default"]),
    duration=st.integers(1500, LONGEST_JOB),
    poll=st.integers(1, 3600),
    at_once=st.integers(1, 40),
)
def test_what_is_taken_ends_in_time_and_what_is_advised_is_taken(
    jobs: int, kind: str, duration: int, poll: int, at_once: int
) -> None:
    given_ = {"job": kind, "duration_seconds": duration}
    settings = LoadTestSettings.model_validate({"recommender": given_}).recommender
    longest = length_of(settings, jobs=jobs).job_seconds
    refused = told(jobs, **given_, poll_seconds=poll, at_once=at_once)

    if "poll_seconds" not in refused:
        assert 25 + jobs * (9 + 9 * math.ceil(longest / poll)) <= 0.9 * MOST_EVENTS
    if "at_once" not in refused:
        assert math.ceil(jobs / at_once) * (longest + poll) <= LONGEST_TEST - 3600
    for advice in refused.values():
        [[seconds, together]] = re.findall(r"poll_seconds: (\d+) and at_once: (\d+)", advice)
        assert int(seconds) >= poll
        assert int(together) >= at_once
        assert told(jobs, **given_, poll_seconds=int(seconds), at_once=int(together)) == {}


def test_the_defaults_take_the_published_variants_on_three_instance_types_and_refuse_more_than_ends_in_time() -> None:
    assert told(8 * 3) == {}
    assert told(32) == {}
    assert list(told(33)) == ["poll_seconds"]
    assert list(told(MOST_JOBS)) == ["poll_seconds", "at_once"]
    assert told(MOST_JOBS, poll_seconds=375, at_once=6) == {}
    assert told(0, poll_seconds=1) == {}


def test_both_are_told_with_what_would_do_before_anything_is_deployed(tmp_path: Path) -> None:
    endpoint = 'mode: single-model, release: "24.09", instance_type: ml.g4dn.xlarge, models: [m]'
    text = environment_yaml(name="many", endpoints=[f"{{name: e{number}, {endpoint}}}" for number in range(40)])
    file = tmp_path / "many.yaml"
    file.write_text(f"{text}load_test: {{recommender: {{poll_seconds: 60, at_once: 1}}}}\n")

    with pytest.raises(InputError) as caught:
        load_environment(file)

    poll, at_once = sorted(caught.value.problems, key=lambda each: each.found)[::-1]
    assert poll.field == "load_test.recommender.poll_seconds"
    assert poll.found.startswith("60, which makes up to 54,385 events")
    assert poll.allowed.startswith("22,500 events")
    assert at_once.field == "load_test.recommender.at_once"
    assert at_once.found.startswith("1, which takes up to 101.7 hours")
    assert at_once.advice == poll.advice
    assert "poll_seconds: 148 and at_once: 3" in poll.advice
