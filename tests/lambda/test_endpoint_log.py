"""The function that makes or adopts an endpoint's log group, over the life cycles of group, endpoint and stack."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

# `lambda` is a keyword: an import statement cannot name the folder.
calling: Any = importlib.import_module("tests.lambda.calling")
clients: Any = importlib.import_module("lambda.shared.clients")
handler: Any = importlib.import_module("lambda.endpoint_log.handler")
operation: Any = importlib.import_module("lambda.shared.operation")
world: Any = importlib.import_module("tests.lambda.log_group_world")

NAME, Group, World, stack_arn = world.NAME, world.Group, world.World, world.stack_arn
ROLLED_BACK = ("ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS")
DESTROYED, REMOVED = "DELETE_IN_PROGRESS", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"


def of_sagemaker(**state: Any) -> Any:
    """A group that was there before the stack."""
    return World(groups={NAME: Group(lines=["of before"], **state)}, exists=True)


@pytest.mark.parametrize(("there", "done"), [(False, "made"), (True, "adopted")])
@pytest.mark.parametrize("request_type", ["Create", "Update"])
def test_a_group_has_retention_key_and_tags_even_if_another_made_it(there: bool, done: str, request_type: str) -> None:
    aws = of_sagemaker() if there else World()
    aws.groups["/another"] = Group()
    assert aws.send(request_type) == done
    assert (aws.group().days, aws.group().key, aws.group().tags["team"]) == (90, "arn:key", "platform")
    assert aws.groups["/another"] == Group()


def test_tags_follow_the_settings_and_those_of_others_stay() -> None:
    aws = World()
    aws.send("Create", Tags='{"team": "platform", "cost": "1"}')
    aws.group().tags["by hand"] = "stays"
    aws.send("Update", old=world.properties(Tags='{"team": "x", "cost": "1"}'))
    mine = {key: value for key, value in aws.group().tags.items() if not key.startswith("tritonstack:")}
    assert mine == {"team": "platform", "by hand": "stays"}


def test_a_group_that_the_stack_made_goes_with_it_and_a_retained_one_stays() -> None:
    for retain, left in (("false", set()), ("true", {NAME})):
        aws = World()
        aws.send("Create", Retain=retain)
        aws.send("Create", Retain=retain)  # delivered again
        aws.status = DESTROYED
        aws.send("Delete", Retain=retain)
        aws.send("Delete", Retain=retain)
        assert set(aws.groups) == left, retain


@pytest.mark.parametrize("status", [*ROLLED_BACK, REMOVED, DESTROYED])
@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("retain", ["true", "false"])
def test_an_adopted_group_is_never_deleted(status: str, exists: bool, retain: str) -> None:
    aws = of_sagemaker()
    aws.send("Create", Retain=retain)
    aws.send("Update", Retain=retain)
    aws.status, aws.exists = status, exists
    aws.send("Delete", Retain=retain)
    assert aws.group().lines == ["of before"]


@pytest.mark.parametrize("status", [REMOVED, DESTROYED])
def test_a_group_whose_endpoint_exists_is_given_back_without_retention_and_key(status: str) -> None:
    """As when ``logs.endpoint_days`` leaves the file, or the endpoint is kept when its stack is deleted."""
    aws = World()
    aws.send("Create")
    aws.status, aws.exists = status, True
    assert aws.send("Delete") == "given back"
    assert (aws.group().days, aws.group().key) == (None, None)


@pytest.mark.parametrize("status", ROLLED_BACK)
def test_an_adopted_group_has_its_retention_and_key_again_after_a_rollback(status: str) -> None:
    """Else lines older than the new retention expire by a deployment that failed."""
    for days, key in ((None, None), (365, None), (365, "arn:own")):
        aws = of_sagemaker(days=days, key=key)
        aws.send("Create", RetentionInDays="1")
        aws.send("Create", RetentionInDays="1")
        assert aws.group().days == 1
        aws.status = status
        aws.send("Delete", RetentionInDays="1")
        assert (aws.group().days, aws.group().key, aws.group().tags) == (days, key, {"team": "platform"})


def test_a_key_that_is_gone_meanwhile_is_not_set_again() -> None:
    aws = of_sagemaker(key="arn:own")
    aws.send("Create")
    aws.gone_keys.add("arn:own")
    aws.status = REMOVED
    assert aws.send("Delete") == "given back"
    assert aws.group().key is None


def test_the_group_of_a_failed_first_deployment_stays_and_goes_with_the_stack_of_the_next() -> None:
    aws = World()
    aws.send("Create")
    aws.group().lines.append("CUDA out of memory")
    aws.status = "ROLLBACK_IN_PROGRESS"
    assert aws.send("Delete") == "kept"
    assert (aws.group().lines, aws.group().days) == (["CUDA out of memory"], 90)
    second = stack_arn(2)
    aws.status = "CREATE_IN_PROGRESS"
    assert aws.send("Create", stack=second) == "adopted"
    aws.status = DESTROYED
    assert aws.send("Delete") == "kept", "a Delete of the failed stack that is delivered again"
    assert aws.send("Delete", stack=second) == "deleted"


def test_a_retained_group_has_no_owner_afterwards() -> None:
    aws = World()
    aws.send("Create", Retain="true")
    aws.status = DESTROYED
    aws.send("Delete", Retain="true")
    assert set(aws.group().tags) == {"team", handler.RETENTION_BEFORE}
    second = stack_arn(2)
    aws.status = "CREATE_IN_PROGRESS"
    aws.send("Create", stack=second)
    aws.status = DESTROYED
    aws.send("Delete", stack=second)
    assert NAME in aws.groups


@pytest.mark.parametrize("before", [None, 365])
def test_the_setting_of_an_earlier_stack_is_not_given_back_when_it_is_removed(before: int | None) -> None:
    """Deployed, destroyed with the group retained, deployed again, and the setting removed."""
    aws = of_sagemaker(days=before, key="arn:own") if before else World()
    aws.send("Create", Retain="true")
    aws.status, aws.exists = DESTROYED, False
    for _ in range(2):
        aws.send("Delete", Retain="true")
    assert aws.group().days == 90
    aws.status, aws.exists = "CREATE_IN_PROGRESS", True
    aws.send("Create", stack=stack_arn(2), Retain="true")
    aws.status = REMOVED
    assert aws.send("Delete", stack=stack_arn(2), Retain="true") == "given back"
    assert (aws.group().days, aws.group().key) == (before, "arn:own" if before else None)


def test_an_update_that_is_delivered_after_its_rollback_sets_nothing() -> None:
    aws = World(exists=True)
    aws.send("Create")
    late = {
        "RequestType": "Update",
        "StackId": stack_arn(),
        "ResourceProperties": world.properties(RetentionInDays="1"),
    }
    aws.status = "UPDATE_IN_PROGRESS"
    aws.send("Update", RetentionInDays="1", old=world.properties())
    aws.status = "UPDATE_ROLLBACK_IN_PROGRESS"
    aws.send("Update", old=world.properties(RetentionInDays="1"))
    for status in ("UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE", "UPDATE_IN_PROGRESS"):
        aws.status = status
        with pytest.raises(operation.SupersededError):
            handler.apply({**late, "LogicalResourceId": "Group"}, clients.Aws(aws.client))
    assert aws.group().days == 90


def test_properties_and_groups_of_earlier_versions_are_taken() -> None:
    before = world.properties()
    del before["Tags"], before["LogGroupArn"]
    aws = of_sagemaker()
    event = {"RequestType": "Update", "StackId": stack_arn(), "ResourceProperties": before}
    aws.deliver(event)
    aws.send("Update", old=before)
    aws.status, aws.exists = DESTROYED, False
    assert aws.deliver(event | {"RequestType": "Delete"}) == "kept"
    assert aws.send("Delete") == "kept"
    assert aws.group().days == 90


def test_a_group_that_is_gone_is_deleted() -> None:
    assert World(status=DESTROYED).send("Delete") == "deleted"


# What may happen to a stack and its endpoint: deployments that succeed or fail, with and without the setting, a
# deletion; each event of CloudFormation may be delivered again.
STEPS = st.lists(
    st.sampled_from(["SageMaker makes it", "deploy", "deploy and fail", "remove setting", "destroy"]), max_size=8
)


@given(steps=STEPS, again=st.booleans(), retain=st.sampled_from(["true", "false"]))
@example(steps=["deploy", "destroy", "deploy", "remove setting"], again=False, retain="true")
def test_no_history_deletes_a_group_that_another_made_or_whose_endpoint_exists(
    steps: list[str], again: bool, retain: str
) -> None:
    aws, number, created, set_up = World(), 0, False, False

    def event(request: str, status: str) -> None:
        aws.status = status
        for _ in range(1 + again):
            aws.send(request, stack=stack_arn(number), Retain=retain)

    for step in steps:
        held = aws.groups.get(NAME)
        foreign, existed = held is not None and held.lines == ["of before"], aws.exists
        if step == "SageMaker makes it":
            aws.groups.setdefault(NAME, Group(lines=["of before"]))
        elif step.startswith("deploy"):
            failing = step.endswith("fail")
            number += not created
            if not set_up:
                event("Create", "UPDATE_IN_PROGRESS" if created else "CREATE_IN_PROGRESS")
                if failing:
                    event("Delete", "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS" if created else ROLLED_BACK[0])
            if not failing:
                created = set_up = aws.exists = True
            assert NAME in aws.groups, "what a deployment wrote, even one that failed, can be read"
        elif step == "remove setting" and set_up:
            event("Delete", REMOVED)
            set_up = False
            assert aws.group().days is None, "no line expires by a setting that was removed"
        elif step == "destroy" and created:
            aws.exists = existed = False
            if set_up:
                event("Delete", DESTROYED)
            created = set_up = False
        if foreign or (held is not None and existed):
            assert aws.groups.get(NAME) is held


def test_a_refusal_is_reported_to_cloudformation(monkeypatch: pytest.MonkeyPatch) -> None:
    responses = calling.record_responses(monkeypatch)
    aws = World(gone_keys={"arn:key"})
    monkeypatch.setattr(clients, "connect", aws.client)
    event = {**calling.IDS, "RequestType": "Create", "ResourceProperties": world.properties(), "StackId": stack_arn()}
    aws.begin(event)
    handler.handler(event, calling.context())
    assert (responses[0]["Status"], responses[0]["PhysicalResourceId"]) == ("FAILED", NAME)
    assert "KMS key does not exist" in responses[0]["Reason"]
