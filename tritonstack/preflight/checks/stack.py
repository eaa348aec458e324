"""No stack of the environment is stuck in a state from which it cannot be deployed."""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack.preflight.account_facts import Stack, stack_names
from tritonstack.preflight.result import About, Result
from tritonstack.preflight.subject import Check, Subject

REPLACED_BY_CDK = "ROLLBACK_COMPLETE"
"""CloudFormation refuses to update it; `cdk deploy` deletes it first (aws-cdk 2.1148.1, isCreationFailure)."""
NEVER_EXECUTED = "REVIEW_IN_PROGRESS"
"""A change set made it and was never executed; `cdk deploy` creates the stack over it (aws-cdk 2.1148.1)."""


def check(subject: Subject) -> Iterator[Result]:
    """A result for each stack that a deployment has."""
    for name in stack_names(subject.served):
        about = About(check="stack", subject=name, needed="no stack, or one that can be updated")
        yield from about.look(_look, subject)


def _look(about: About, subject: Subject) -> Result:
    stack = subject.stacks.get(about.subject)
    if stack is None:
        return about.passes("no such stack yet")
    found = f"{stack.status}: {stack.reason}" if stack.reason else stack.status
    region = subject.environment.region
    delete = f"aws cloudformation delete-stack --region {region} --stack-name {about.subject}"
    if stack.status == REPLACED_BY_CDK and stack.protected:
        return about.fails(f"{found}, with termination protection", advice=f"Take the protection off, then {delete}")
    if stack.status in (REPLACED_BY_CDK, NEVER_EXECUTED):
        return about.unknown(
            f"{found}: `cdk deploy` deploys over it, CloudFormation by itself (a pipeline) does not",
            advice=f"Make sure with: {delete}",
        )
    if stack.status.endswith("_IN_PROGRESS"):
        return about.unknown(f"{found}: it changes now", advice="Wait until that has ended, then run it again.")
    if stack.status.endswith("_FAILED"):
        return about.fails(found, advice=_mend(stack, delete, about.subject, region))
    return about.passes(found)


def _mend(stack: Stack, delete: str, name: str, region: str) -> str:
    if stack.status == "UPDATE_ROLLBACK_FAILED":
        return (
            "Mend what its events name, then: "
            f"aws cloudformation continue-update-rollback --region {region} --stack-name {name} "
            "(docs/troubleshooting.md, «A rollback that failed»)"
        )
    return f"Mend what its events name, then: {delete}"


CHECK = Check(name="stack", title="states of the stacks", run=check)
