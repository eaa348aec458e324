"""Requirements of an account on all resources under a scope: role path, permissions boundary, log retention, tags."""

from __future__ import annotations

from collections.abc import Mapping

import aws_cdk as cdk
import jsii
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct, IConstruct

from tritonstack import naming


def apply_account_requirements(
    scope: Construct,
    *,
    stack: cdk.Stack,
    role_path: str | None,
    permissions_boundary_arn: str | None,
    function_log_days: int | None = None,
) -> None:
    """Apply the account's requirements to every role and log group under ``scope``, wherever it is made.

    ``stack``: the stack in ``scope`` that holds the reference to the permissions boundary. ``function_log_days``:
    retention of the functions' log groups, in days; None: as each construct sets it.
    """
    if role_path is not None or function_log_days is not None:
        cdk.Aspects.of(scope).add(_AccountRequirements(role_path, function_log_days))
    if permissions_boundary_arn is not None:
        policy = iam.ManagedPolicy.from_managed_policy_arn(stack, "PermissionsBoundary", permissions_boundary_arn)
        iam.PermissionsBoundary.of(scope).apply(policy)


@jsii.implements(cdk.IAspect)
class _AccountRequirements:
    def __init__(self, role_path: str | None, function_log_days: int | None) -> None:
        self._role_path = role_path
        self._days = function_log_days

    def visit(self, node: IConstruct) -> None:
        """Set path or retention of one construct. Called by the CDK with each."""
        if isinstance(node, iam.CfnRole) and self._role_path is not None:
            node.path = self._role_path
        elif isinstance(node, logs.CfnLogGroup) and self._days is not None:
            name = node.log_group_name  # of a generated one None, or the construct's token that resolves to nothing
            if name is None or cdk.Token.is_unresolved(name) or name.startswith(naming.FUNCTION_LOGS):
                node.retention_in_days = self._days


def tag_all(scope: IConstruct, tags: Mapping[str, str]) -> None:
    """Put tags on every stack and resource under ``scope`` that takes tags."""
    for key in sorted(tags):
        cdk.Tags.of(scope).add(key, tags[key])
        # By the feature flag `explicitStackTags` the line above leaves out stacks, and resources that get only their
        # tags.
        cdk.Tags.of(scope).add(key, tags[key], include_resource_types=["aws:cdk:stack"])
