"""Policy statements and permissions boundaries of roles; settings and tags that an account demands of resources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import aws_cdk as cdk
import jsii
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct, IConstruct

from tritonstack import naming


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


@jsii.implements(cdk.IAspect)
class HouseRules:
    """Sets the path of every role, and the retention of every log group whose name is generated: those of functions.

    An aspect, so that a role which is added later cannot be forgotten. It visits every construct, which takes a tenth
    of a second; apps without such rules do without it.
    """

    def __init__(self, *, role_path: str | None = None, function_log_days: int | None = None) -> None:
        """Rules; None leaves what the constructs say."""
        self._role_path = role_path
        self._days = function_log_days

    def visit(self, node: IConstruct) -> None:
        """Called by the CDK with each construct."""
        if isinstance(node, iam.CfnRole) and self._role_path is not None:
            node.path = self._role_path
        elif isinstance(node, logs.CfnLogGroup) and self._days is not None and _generated(node.log_group_name):
            node.retention_in_days = self._days


def _generated(name: str | None) -> bool:
    """Whether CloudFormation makes the name: the construct above then gives a token that resolves to nothing."""
    return name is None or bool(cdk.Token.is_unresolved(name))


ENVIRONMENT_TAG = naming.ENVIRONMENT_TAG
ENDPOINT_TAG = naming.ENDPOINT_TAG
LOCAL_MAX_LOADED_MODELS_TAG = naming.LOCAL_MAX_LOADED_MODELS_TAG


def tag_all(scope: IConstruct, tags: Mapping[str, str]) -> None:
    """Put tags on every resource under ``scope`` that takes tags."""
    for key in sorted(tags):
        cdk.Tags.of(scope).add(key, tags[key])
