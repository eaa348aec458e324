"""Stack states that a deployment or a deletion cannot go on from, with the remedy of each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tritonstack.deployed.stacks import DeployedStack

# User guide, "Stack status codes". The CDK command line itself deletes a stack in ROLLBACK_COMPLETE or
# ROLLBACK_FAILED before it makes it anew (aws-cdk, StackStatus.isCreationFailure).
_WAY_OUT = {
    "CREATE_FAILED": "its creation failed and was not rolled back: delete it, then deploy again: {delete}",
    "DELETE_FAILED": "its deletion failed: fix the reason, then delete it again: {delete}",
    "UPDATE_ROLLBACK_FAILED": (
        "an update failed, and so did its rollback: fix the reason, then aws cloudformation continue-update-rollback "
        "--stack-name {name}; with --resources-to-skip for what can no longer be rolled back "
        "(tritonstack docs troubleshooting#a-rollback-that-failed)"
    ),
    "UPDATE_FAILED": (
        "an update failed and was not rolled back: aws cloudformation rollback-stack --stack-name {name}, then deploy "
        "again"
    ),
}


@dataclass(frozen=True, kw_only=True)
class StuckStack:
    """A stack whose state a deployment fails at."""

    stack: DeployedStack
    advice: str  # what to do, with the command

    @property
    def sentence(self) -> str:
        """The stack with its state, and CloudFormation's reason."""
        return f"{self.stack.name} is {self.stack.status}{f': {self.stack.reason}' if self.stack.reason else ''}"


def stuck_stacks(stacks: Iterable[DeployedStack]) -> tuple[StuckStack, ...]:
    """The stacks, of some, that cannot be deployed as they are."""
    return tuple(
        StuckStack(
            stack=each,
            advice=_WAY_OUT[each.status].format(
                name=each.name, delete=f"aws cloudformation delete-stack --stack-name {each.name}"
            ),
        )
        for each in stacks
        if each.status in _WAY_OUT
    )
