"""Events of an update, of resources that it changes and of those that it leaves as they are."""

from __future__ import annotations

from typing import Any

from tests.tritonstack_local.emulator.running import Emulator


def parameter(value: Any) -> dict[str, Any]:
    """An SSM parameter of this value."""
    return {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": value}}


def events(aws: Emulator, stack: str) -> list[tuple[str, str]]:
    """Logical id and status of every event of a stack's resources, oldest first."""
    found = aws.client("cloudformation").describe_stack_events(StackName=stack)["StackEvents"]
    return [
        (each["LogicalResourceId"], each["ResourceStatus"])
        for each in reversed(found)
        if each["LogicalResourceId"] != stack
    ]


def test_a_resource_that_an_update_leaves_as_it_is_has_no_event(aws: Emulator, name: str) -> None:
    follows = parameter({"Fn::GetAtt": ["Changed", "Value"]})
    aws.create_stack(name, {"Changed": parameter("1"), "Follows": follows, "Left": parameter("1")})
    assert aws.settled(name)["StackStatus"] == "CREATE_COMPLETE"
    before = len(events(aws, name))
    aws.update_stack(name, {"Changed": parameter("2"), "Follows": follows, "Left": parameter("1")})
    assert aws.settled(name)["StackStatus"] == "UPDATE_COMPLETE"
    assert events(aws, name)[before:] == [
        ("Changed", "UPDATE_IN_PROGRESS"),
        ("Changed", "UPDATE_COMPLETE"),
        ("Follows", "UPDATE_IN_PROGRESS"),
        ("Follows", "UPDATE_COMPLETE"),
    ]
    aws.update_stack(name, {"Changed": parameter("2"), "Follows": follows, "Left": parameter("3")})
    assert aws.settled(name)["StackStatus"] == "UPDATE_COMPLETE"
    assert events(aws, name)[-2:] == [("Left", "UPDATE_IN_PROGRESS"), ("Left", "UPDATE_COMPLETE")]
