"""The stack that an event comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_boto3_cloudformation.client import CloudFormationClient


def rolls_back(event: Mapping[str, Any], cloudformation: CloudFormationClient) -> bool:
    """Whether an event undoes an update: it is an Update as well, and only the stack's status tells.

    An event may be delivered again when all is over, so the statuses after the rollback count, too.
    """
    if event["RequestType"] != "Update":
        return False
    [stack] = cloudformation.describe_stacks(StackName=event["StackId"])["Stacks"]
    return stack["StackStatus"].startswith("UPDATE_ROLLBACK_")
