"""Statements and boundaries of the roles that the constructs make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct


def allow(
    policy: iam.Policy,
    sid: str,
    *,
    actions: Sequence[str],
    resources: Sequence[str],
    conditions: Mapping[str, Mapping[str, object]] | None = None,
) -> None:
    """Add one statement to a policy.

    Args:
        policy: the policy.
        sid: what the statement is for, in CamelCase: a reviewer reads it in the difference of two templates.
        actions: each spelled out; a wildcard in an action would grant what comes to exist later.
        resources: ARNs; for a pattern, say why with ``acknowledge_wildcard``.
        conditions: operator → condition key → value or values.
    """
    policy.add_statements(
        iam.PolicyStatement(sid=sid, actions=list(actions), resources=list(resources), conditions=conditions)
    )


def parameter_arns(scope: Construct, parameters: Mapping[str, str]) -> list[str]:
    """ARNs of SSM parameters in the stack's account and region. ``parameters``: environment variable → name."""
    stack = cdk.Stack.of(scope)
    return [
        stack.format_arn(service="ssm", resource="parameter", resource_name=name.removeprefix("/"))
        for name in sorted(set(parameters.values()))
    ]


def boundary(scope: Construct, arn: str | None) -> iam.IManagedPolicy | None:
    """The managed policy with this ARN, to bound the one role under ``scope`` with; None where there is none."""
    return None if arn is None else iam.ManagedPolicy.from_managed_policy_arn(scope, "PermissionsBoundary", arn)
