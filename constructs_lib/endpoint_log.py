"""The log group of an endpoint's containers, which SageMaker would make by itself, for ever and without a key."""

from __future__ import annotations

import json
from collections.abc import Mapping

import aws_cdk as cdk
from aws_cdk import aws_logs as logs
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge_wildcard
from constructs_lib.artifact_bucket import ArtifactBucketReference, endpoint_log_name
from constructs_lib.handler_function import HandlerFunction
from constructs_lib.permission import allow


class EndpointLog(Construct):
    """A custom resource that makes the log group or adopts it, and sets its retention, its key and its tags.

    No ``AWS::Logs::LogGroup``: that fails where the group exists, as after a deletion that retained it, or where the
    endpoint was there before this. See ``docs/decisions/0012-an-endpoints-log-group-is-adopted.md``.

    Attributes:
        log_group_name: the group's name.
        resource: the custom resource, which the endpoint waits for.
        function: what answers it.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint_name: str,
        days: int,
        retain: bool,
        artifacts: ArtifactBucketReference,
        tags: Mapping[str, str],
        permissions_boundary_arn: str | None = None,
    ) -> None:
        """Make custom resource and function.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            endpoint_name: the endpoint's name at SageMaker.
            days: how long a line is kept; one of the retentions that CloudWatch Logs takes.
            retain: keep the group when the stack is deleted.
            artifacts: whose key encrypts it; that key's policy names the group.
            tags: key → value; CloudFormation's tags reach no group that a function makes.
            permissions_boundary_arn: a managed policy that bounds the function's role. Default: None.
        """
        super().__init__(scope, construct_id)
        name = self.log_group_name = endpoint_log_name(endpoint_name)
        self.function = HandlerFunction(
            self,
            "Handler",
            handler="endpoint_log",
            description=f"Makes or adopts the log group of endpoint {endpoint_name}",
            log_retention=logs.RetentionDays.THREE_MONTHS,
            permissions_boundary_arn=permissions_boundary_arn,
        )
        group = cdk.Stack.of(self).format_arn(
            service="logs", resource="log-group", resource_name=name, arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME
        )
        names = ("AssociateKmsKey", "CreateLogGroup", "PutRetentionPolicy", "TagResource", "UntagResource")
        actions = [f"logs:{each}" for each in names]
        # Both forms: of these actions CloudWatch Logs checks some against `<group>:*`.
        both = [group, f"{group}:*"]
        policy = self.function.policy
        allow(policy, "SetUp", actions=actions if retain else [*actions, "logs:DeleteLogGroup"], resources=both)
        acknowledge_wildcard(
            policy,
            resource=f"{group}:*",
            reason="CloudWatch Logs writes a log group's ARN with ':*' at its end; it is this one group and its "
            "streams.",
        )
        self.resource = self.function.custom_resource(
            self,
            "Group",
            resource_type="Custom::EndpointLogGroup",
            properties={
                "LogGroupName": name,
                "LogGroupArn": group,
                "RetentionInDays": str(days),
                "KmsKeyId": artifacts.key_arn,
                "Retain": str(retain).lower(),
                "Tags": json.dumps(dict(tags), sort_keys=True),
            },
        )
