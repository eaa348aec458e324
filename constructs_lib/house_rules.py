"""What an account demands of every role and every function's log, whichever construct makes them."""

from __future__ import annotations

import aws_cdk as cdk
import jsii
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import IConstruct


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
