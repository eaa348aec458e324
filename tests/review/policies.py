"""Small stacks of roles and policies, and the permissions that change between two of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.review.small import Template, of, resource, stack
from tritonstack.review.access.permissions import Direction, PermissionChange, permission_changes
from tritonstack.review.snapshot import EnvironmentSnapshot, Findings

Statement = Mapping[str, Any]
WIDER, NARROWER, OTHER = Direction.WIDER, Direction.NARROWER, Direction.OTHER
TRUST = {
    "Statement": {"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"}
}


def allow(action: Any, on: Any = "arn:aws:s3:::b/*", **members: Any) -> dict[str, Any]:
    """A statement that allows."""
    return {"Effect": "Allow", "Action": action, "Resource": on, **members}


def deny(action: Any, on: Any = "arn:aws:s3:::b/*", **members: Any) -> dict[str, Any]:
    """A statement that denies."""
    return {"Effect": "Deny", "Action": action, "Resource": on, **members}


def role(*statements: Statement, **members: Any) -> Template:
    """A role with these statements in one policy."""
    return {
        "Role": resource("AWS::IAM::Role", {"AssumeRolePolicyDocument": TRUST, **members}),
        **({"Access": policy(*statements)} if statements else {}),
    }


def policy(*statements: Statement) -> dict[str, Any]:
    """A policy of the role."""
    return resource("AWS::IAM::Policy", {"PolicyDocument": {"Statement": list(statements)}, "Roles": [{"Ref": "Role"}]})


def bucket(*statements: Statement) -> Template:
    """A bucket with these statements in its policy; without any, with none."""
    document = {"Bucket": {"Ref": "Bucket"}, "PolicyDocument": {"Statement": list(statements)}}
    return {
        "Bucket": resource("AWS::S3::Bucket"),
        **({"Policy": resource("AWS::S3::BucketPolicy", document)} if statements else {}),
    }


def environment(template: Template | None, *, findings: Findings | None = None, **members: Any) -> EnvironmentSnapshot:
    """An environment of one stack; without resources, of one that has none."""
    return of(stack(template or {}, **members), findings=findings).environments["dev"]


def changes(before: Template | None, after: Template | None, **members: Any) -> tuple[PermissionChange, ...]:
    """What changes between two templates of one stack."""
    return permission_changes(environment(before, **members), environment(after, **members))


def reported(before: Template | None, after: Template | None, **members: Any) -> list[tuple[str, str]]:
    """Direction and sentence of each change."""
    return [(each.kind, each.statement) for each in changes(before, after, **members)]
