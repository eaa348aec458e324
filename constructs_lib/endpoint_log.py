"""Records of an endpoint: the log group of its containers, and captured requests and responses."""

from __future__ import annotations

import json
from collections.abc import Mapping

import aws_cdk as cdk
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge_wildcard
from constructs_lib.artifact_bucket import ArtifactBucketReference, endpoint_log_name
from constructs_lib.execution_role import ExecutionRole
from constructs_lib.handler_function import HandlerFunction
from constructs_lib.permission import allow
from tritonstack.config.endpoint import DataCapture


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


JSON = "application/json"


def capture_data(
    config: sagemaker.CfnEndpointConfig,
    *,
    settings: DataCapture,
    prefix: str,
    role: ExecutionRole,
    artifacts: ArtifactBucketReference,
) -> None:
    """Have an endpoint's config capture data, and let the role write it.

    JSON is kept as text. Triton's binary requests are kept in base64, which SageMaker takes for every type that it is
    not told of: theirs carries the length of its header, so that no list could name it.

    Args:
        config: the config of a single-model endpoint.
        settings: how much is kept.
        prefix: where, with its trailing slash.
        role: the role that SageMaker runs the containers with.
        artifacts: the bucket.
    """
    config.data_capture_config = sagemaker.CfnEndpointConfig.DataCaptureConfigProperty(
        enable_capture=True,
        initial_sampling_percentage=settings.percentage,
        destination_s3_uri=f"s3://{artifacts.bucket_name}/{prefix}",
        kms_key_id=artifacts.key_arn,
        capture_options=[
            sagemaker.CfnEndpointConfig.CaptureOptionProperty(capture_mode=mode.capitalize())
            for mode in sorted(settings.capture)
        ],
        capture_content_type_header=sagemaker.CfnEndpointConfig.CaptureContentTypeHeaderProperty(
            json_content_types=[JSON]
        ),
    )
    captured = artifacts.objects_arn(f"{prefix}*")
    allow(role.policy, "WriteCaptured", actions=["s3:PutObject"], resources=[captured])
    acknowledge_wildcard(
        role.policy,
        resource=captured,
        reason="SageMaker names a captured file after variant, hour and a number of its own; all of them lie under "
        f"{prefix}, and nothing else does.",
    )
    allow(role.policy, "EncryptCaptured", actions=["kms:GenerateDataKey"], resources=[artifacts.key_arn])
