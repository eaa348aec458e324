"""Stack events tell which operation they are of."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from tests.tritonstack_local.emulator.running import Emulator

PARAMETER = {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": "1"}}
REFUSED = {"Type": "AWS::CloudFormation::WaitCondition", "Properties": {"Handle": "none", "Timeout": "43201"}}


def test_each_operation_and_each_rollback_has_an_id_of_its_own(aws: Emulator, name: str) -> None:
    assert aws.deploy(name, {"First": PARAMETER}) == "CREATE_COMPLETE"
    for number in range(2):
        broken = {"First": PARAMETER, f"Second{number}": PARAMETER, "Wait": REFUSED}
        assert aws.deploy(name, broken) == "UPDATE_ROLLBACK_COMPLETE"
    operations = operations_of(aws, name)
    assert len({operation for operation, _ in operations}) == len(operations) == 5
    statuses = [status for _, status in operations]
    update, rollback = "UPDATE_IN_PROGRESS", "UPDATE_ROLLBACK_IN_PROGRESS"
    assert statuses == ["CREATE_IN_PROGRESS", update, rollback, update, rollback]


def operations_of(aws: Emulator, stack: str) -> list[tuple[str, str]]:
    """The operations' ids, oldest first, and with which status of the stack each began."""
    events: list[dict[str, Any]] = aws.client("cloudformation").describe_stack_events(StackName=stack)["StackEvents"]
    assert all(event["OperationId"] for event in events)
    groups = groupby(reversed(events), key=lambda event: str(event["OperationId"]))
    return [(operation, next(group)["ResourceStatus"]) for operation, group in groups]
