"""After events in any order, the registered scaling is that of the template in force, on the live variant."""

from __future__ import annotations

import importlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

world: Any = importlib.import_module("tests.lambda.scaling_world")
handler: Any = importlib.import_module("lambda.scaling.handler")
clients: Any = importlib.import_module("lambda.shared.clients")
live_variant: Any = importlib.import_module("lambda.scaling.live_variant")
calling: Any = importlib.import_module("tests.lambda.calling")
target: Any = importlib.import_module("lambda.scaling.target")
deployment: Any = importlib.import_module("lambda.scaling.deployment")
operation: Any = importlib.import_module("lambda.shared.operation")
custom_resource: Any = importlib.import_module("lambda.shared.custom_resource")
Stack, Template, check = world.Stack, world.Template, world.check

NATIVE = {"target", "policy"}
"""Failures before After was touched, with B registered: what a rollback from the last resource on would not undo."""
FAILURES = ["before", "endpoint", "cancelled", "silent", "target", "policy", "after", "later"]
A = Template(targets=(60, 600), schedules=("cron(0 7 ? * * *)",))
B = world.replace(A, variant="b")
WAYS = [(backwards, updates_replaced) for backwards in (False, True) for updates_replaced in (False, True)]


@pytest.fixture(
    params=WAYS, ids=lambda way: f"{'backwards' if way[0] else 'forwards'}-{'told' if way[1] else 'untold'}"
)
def stack(request: pytest.FixtureRequest) -> Any:
    """A stack with A deployed and scaled to 3, whose rollbacks go either way."""
    made = Stack(backwards=request.param[0], updates_replaced=request.param[1])
    assert made.deploy(A)
    check(made, A)
    assert made.aws.log == [], "nothing was registered or put by the function"
    made.aws.count = 3
    return made


WANTED: dict[str, Any] = {
    "TargetValue": 60,
    "Metric": {"Dimensions": [{"Name": "a", "Value": "1"}, {"Name": "b", "Value": "2"}]},
}


@pytest.mark.parametrize(
    ("found", "holds"),
    [
        (WANTED, True),
        ({**WANTED, "TargetValue": 60.0, "DisableScaleIn": False}, True),
        ({**WANTED, "Metric": {"Dimensions": WANTED["Metric"]["Dimensions"][::-1], "Unit": "None"}}, True),
        ({**WANTED, "TargetValue": 61}, False),
        ({**WANTED, "Metric": {"Dimensions": WANTED["Metric"]["Dimensions"][:1]}}, False),
        ({**WANTED, "Metric": None}, False),
        ({"TargetValue": 60}, False),
        (None, False),
    ],
    ids=[
        "the same",
        "more members",
        "another order",
        "another value",
        "fewer items",
        "nothing",
        "fewer members",
        "none",
    ],
)
def test_a_description_holds_the_settings_whatever_else_it_holds(found: Any, holds: bool) -> None:
    assert target.holds(WANTED, found) is holds


def test_an_update_that_comes_again_after_its_undo_changes_nothing(stack: Any) -> None:
    assert not stack.deploy(B, fails="later")
    stack.aws.stack.becomes("UPDATE_ROLLBACK_COMPLETE")
    stack.aws.log.clear()
    late = world.event_of("Before", "Update", B, A)
    with pytest.raises(operation.SupersededError):
        deployment.act(late, stack.aws.function_clients, in_force=target.Wanted.of(B.text))
    assert "DeregisterScalableTarget" not in stack.aws.log
    check(stack, A)


def test_a_slow_run_that_the_undo_overtakes_leaves_what_is_in_force(stack: Any) -> None:
    """It looked at the endpoint before the undo began, and would deregister the variant that serves."""
    forward = world.event_of("Before", "Update", B, A)
    stack.aws.stack.becomes("UPDATE_IN_PROGRESS")
    stack.aws.stack.begins(forward)
    undone = []

    def overtaken(request: dict[str, Any]) -> Any:
        if not stack.aws.stack.status.startswith("UPDATE_ROLLBACK_"):
            undo = world.event_of("Before", "Update", A, B)
            stack.aws.stack.becomes("UPDATE_ROLLBACK_IN_PROGRESS")
            stack.aws.stack.begins(undo)
            undone.append(deployment.act(undo, stack.aws.function_clients, in_force=target.Wanted.of(A.text)))
        return stack.aws.emulated("sagemaker", "ListTags", **request)

    stack.aws.responses["sagemaker.ListTags"] = overtaken
    with pytest.raises(operation.SupersededError):
        deployment.act(forward, stack.aws.function_clients, in_force=target.Wanted.of(B.text))
    assert undone
    assert "RegisterScalableTarget" not in stack.aws.log, "the variant that serves was never deregistered"
    check(stack, A)


def test_what_is_deployed_next_leaves_the_config_as_it_is(stack: Any) -> None:
    assert stack.deploy(B)
    config = stack.books.config
    assert config == ("b", 3)
    assert stack.deploy(world.replace(B, targets=(70,)))
    assert stack.books.config == config
    assert stack.deploy(world.replace(B, targets=(70,), initial=2))
    assert stack.books.config == ("b", 2)


@pytest.mark.parametrize("fails", FAILURES)
def test_another_type_that_fails_leaves_the_old_variant_scaled_and_the_next_deployment_works(
    fails: str, stack: Any
) -> None:
    if stack.backwards and fails in NATIVE:
        stack.backwards = False
    assert not stack.deploy(B, fails=fails, breaks_after=1)
    check(stack, A)
    assert stack.aws.count == 3
    changed = world.replace(A, targets=(70, 600), minimum=2)
    assert stack.deploy(changed)
    check(stack, changed)
    assert stack.deploy(B)
    check(stack, B)


@settings(max_examples=60)
@given(
    deployments=st.lists(
        st.tuples(
            st.builds(
                Template,
                variant=st.sampled_from(["a", "b", "c+d", "c+e"]),
                targets=st.lists(st.sampled_from([60, 70]), max_size=2).map(tuple),
                minimum=st.integers(1, 2),
                maximum=st.integers(3, 5),
                initial=st.integers(1, 3),
                model=st.integers(1, 2),
            ),
            st.sampled_from(["", "", "", *FAILURES]),
            st.integers(0, 3),
            st.integers(1, 5),
        ),
        max_size=7,
    ),
    backwards=st.booleans(),
    updates_replaced=st.booleans(),
    twice=st.booleans(),
)
def test_after_any_deployments_the_live_variant_is_scaled_as_in_the_template_in_force(
    deployments: list[tuple[Any, str, int, int]], backwards: bool, updates_replaced: bool, twice: bool
) -> None:
    stack = Stack(backwards=backwards, updates_replaced=updates_replaced, twice=twice)
    in_force = Template()
    assert stack.deploy(in_force)
    for template, fails, breaks_after, count in deployments:
        stack.aws.count = count
        stack.backwards = backwards and fails not in NATIVE
        was = dict(stack.aws.counts)
        if stack.deploy(template, fails=fails, breaks_after=breaks_after):
            in_force = template
            gone = sum(was[name] for name in was.keys() - set(template.variants))
            for name, found in stack.aws.counts.items():
                assert found == was.get(name, max(template.initial, min(gone, template.maximum)))
        else:  # no request was lost
            assert all(found >= min(was[name], in_force.maximum) for name, found in stack.aws.counts.items())
        check(stack, in_force)


@pytest.mark.parametrize("fails", ["", "endpoint", "later"])
def test_an_experiment_begins_and_ends_on_a_scaled_endpoint_in_one_deployment_each(fails: str, stack: Any) -> None:
    experiment = world.replace(A, variant="current+candidate")
    assert stack.deploy(experiment, fails=fails) is (not fails)
    if fails:
        check(stack, A)
        assert stack.aws.counts == {"a": 3}
        assert stack.deploy(experiment)
    check(stack, experiment)
    assert stack.aws.counts == {"current": 3, "candidate": 3}  # by its weight either may get all that "a" got
    stack.aws.counts = {"current": 4, "candidate": 2}
    other_type = world.replace(experiment, variant="current+candidate-large")
    assert not stack.deploy(other_type, fails="later")
    check(stack, experiment)
    assert stack.aws.counts == {"current": 4, "candidate": 3}  # its config began with 3
    assert stack.deploy(other_type)
    check(stack, other_type)
    assert stack.aws.counts == {"current": 4, "candidate-large": 3}
    assert stack.deploy(A)
    check(stack, A)
    assert stack.aws.counts == {"a": 7}


def test_a_move_that_failed_long_ago_does_not_decide_the_instances_of_the_next_one(stack: Any) -> None:
    stack.aws.count = 4
    assert not stack.deploy(world.replace(A, variant="b"), fails="before")
    stack.aws.count = 1  # scaled in since
    assert stack.deploy(world.replace(A, variant="b"))
    assert stack.aws.count == 1


def test_a_policy_that_another_made_stays(stack: Any) -> None:
    stack.aws.put_policy("a", "by-hand", Template(targets=(5,)).policies["tritonstack-metric0-5"])
    assert stack.deploy(world.replace(A, targets=(70,)))
    assert ("a", "by-hand") in stack.aws.policies
    assert set(stack.aws.names("a")) == {"by-hand", "tritonstack-metric0-70"}


def test_a_target_that_was_deregistered_by_hand_is_registered_again(stack: Any) -> None:
    stack.aws.deregister("a")
    changed = world.replace(A, minimum=2)
    assert stack.deploy(changed)
    check(stack, changed)


def test_a_time_that_is_past_does_not_hold_the_deployment_up(stack: Any) -> None:
    past = world.replace(A, schedules=("at(2020-01-01T00:00:00)", "cron(0 7 ? * * *)"))
    assert stack.deploy(past)
    assert not stack.deploy(world.replace(past, variant="b"), fails="endpoint")
    assert {name for _, name in stack.aws.schedules} == {"cron(0 7 ? * * *)"}


def test_scaling_that_comes_with_another_type_is_refused_before_anything_is_touched() -> None:
    aws = world.ScaledEndpoint(begin=("a", 1))
    stack = Stack(aws=aws)
    with pytest.raises(
        custom_resource.NotDoneError, match=r"from a to b in the same deployment.*Deploy one of the two"
    ):
        stack.send("Before", "Create", B, in_force=B)
    assert aws.log == []


def test_scaling_that_comes_to_the_same_type_is_taken() -> None:
    stack = Stack(aws=world.ScaledEndpoint(begin=("a", 1)))
    response = stack.send("Before", "Create", A, in_force=A)
    assert response == {"InitialInstanceCount": "1", "TrafficRouting": world.CANARY}


def test_steps_are_for_the_same_variant_and_another_type_goes_all_at_once_without_their_size(stack: Any) -> None:
    there = stack.send("Before", "Update", B, A, in_force=B)["TrafficRouting"]
    assert there == {"Type": "ALL_AT_ONCE", "WaitIntervalInSeconds": 0}
    assert stack.send("Before", "Update", A, B, in_force=A)["TrafficRouting"] == world.CANARY


@pytest.mark.parametrize(("before", "meant"), [("CANARY", {"Type": "CANARY"}), ("", {})])
def test_a_routing_that_an_earlier_version_wrote_as_its_type_is_read(before: str, meant: dict[str, str]) -> None:
    text = json.dumps({**json.loads(A.text), "routing": before})
    assert world.target.Wanted.of(text).routing == meant


@pytest.mark.parametrize("kind", ["Before", "Settled", "After"])
def test_a_stack_that_goes_or_loses_its_scaling_is_left_to_cloudformation(kind: str, stack: Any) -> None:
    assert stack.send(kind, "Delete", A, in_force=A) == {}
    assert stack.aws.log == []


@pytest.mark.parametrize("status", ["Failed", "Deleting", "OutOfService"])
def test_an_endpoint_that_serves_nothing_is_not_scaled(status: str) -> None:
    stack = Stack(aws=world.ScaledEndpoint(begin=("a", 1)))
    stack.aws.status = status
    stack.send("After", "Update", A, A, in_force=A)
    assert stack.aws.targets == {}


def test_before_waits_for_an_endpoint_that_is_being_changed(stack: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stack.send("Before", "Update", B, A, in_force=B)
    stack.aws.status = "Updating"
    waits = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        stack.aws.status = "InService"
        stack.aws.move(("b", 2))  # a cancelled deployment went on

    monkeypatch.setattr(live_variant.time, "sleep", sleep)
    stack.send("Before", "Update", A, B, in_force=A)
    assert waits == [live_variant.LOOK_SECONDS]
    assert stack.aws.live == "b"


# The response.


def event(kind: str, request: str = "Update") -> dict[str, Any]:
    return {
        "RequestType": request,
        "ResourceType": f"Custom::Scaling{kind}",
        "ResourceProperties": B.properties,
        "PhysicalResourceId": "given",
    }


def test_only_settled_has_an_id_that_changes_with_the_variant() -> None:
    assert handler.physical_id(event("Settled")) == f"Custom::ScalingSettled:{world.ENDPOINT}/b"
    assert handler.physical_id(event("Before")) == f"Custom::ScalingBefore:{world.ENDPOINT}"
    assert handler.physical_id(event("After")) == f"Custom::ScalingAfter:{world.ENDPOINT}"
    of_two = {"Scaling": world.replace(B, variant="b+c").text}
    assert handler.physical_id({**event("Settled"), "ResourceProperties": of_two}).endswith(f"{world.ENDPOINT}/b+c")
    assert handler.physical_id({**event("Settled"), "ResourceProperties": {}}) == "given"
    assert handler.physical_id({**event("Before", "Create"), "ResourceProperties": {}}) == "given"


def test_a_failure_is_reported_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    responses = calling.record_responses(monkeypatch)
    aws = world.ScaledEndpoint(begin=("a", 1))
    monkeypatch.setattr(clients, "connect", aws.client)
    monkeypatch.setenv("SCALING", B.text)
    sent = {**calling.IDS, **world.event_of("Before", "Create", B)}
    aws.stack.becomes("UPDATE_IN_PROGRESS")
    aws.stack.begins(sent)
    handler.handler(sent, calling.context())
    assert responses[0]["Status"] == "FAILED"
    assert "Deploy one of the two" in responses[0]["Reason"]
    sent = {**calling.IDS, **world.event_of("After", "Update", B, A)}
    aws.stack.begins(sent)
    handler.handler(sent, calling.context())
    assert responses[1]["Status"] == "SUCCESS"


@pytest.mark.parametrize("kind", ["Before", "After"])
def test_a_resource_whose_delete_sends_no_request_is_deleted_whatever_fails(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    responses = calling.record_responses(monkeypatch)
    monkeypatch.delenv("SCALING", raising=False)
    handler.handler({**event(kind, "Delete"), "ResourceProperties": {}, **calling.IDS}, calling.context())
    [response] = responses
    assert (response["Status"], response["PhysicalResourceId"]) == ("SUCCESS", "given")


@pytest.mark.parametrize(
    ("before", "wanted"), [("ROLLING", "ROLLING"), ("ROLLING", "ALL_AT_ONCE"), ("CANARY", "ROLLING")]
)
def test_another_type_with_a_rolling_update_in_either_template_is_refused_before_any_change(
    stack: Any, before: str, wanted: str
) -> None:
    stack.aws.log.clear()
    new, old = world.replace(B, routing={"Type": wanted}), world.replace(A, routing={"Type": before})
    with pytest.raises(custom_resource.NotDoneError, match="Deploy another `kind` of rollout alone"):
        stack.send("Before", "Update", new, old, in_force=new)
    assert stack.aws.log == []


def test_a_variant_that_returns_beyond_the_quota_is_scaled_by_its_policies_from_its_count(stack: Any) -> None:
    stack.aws.quota = 2
    assert not stack.deploy(B, fails="later")
    check(stack, A)
    assert stack.aws.count == 1
    stack.aws.quota = None
    assert stack.deploy(B)
    assert stack.aws.count == 1, "what could not be had once is not asked for long after"


def test_the_text_of_a_later_version_is_read_where_it_is_rolled_back() -> None:
    text = json.dumps({**json.loads(A.text), "added": {"later": 1}})
    assert world.target.Wanted.of(text) == world.target.Wanted.of(A.text)
