"""Buckets that are to go with their stack are emptied first."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge_wildcard
from constructs_lib.permission import allow, boundary

CODE = Path(__file__).resolve().parent.parent / "lambda" / "bucket_emptying"
WORK_MINUTES = 15
"""The longest that a Lambda may run. Deleting the stack again goes on from where it stopped."""


class BucketEmptying(Construct):
    """A custom resource for each bucket that empties it when the stack is deleted, and the one function behind them.

    Attributes:
        function: the Lambda function.
        policy: its one policy.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        buckets: dict[str, s3.Bucket],
        key: kms.Key | None = None,
        permissions_boundary_arn: str | None = None,
    ) -> None:
        """Make the custom resources.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            buckets: construct id of the custom resource → bucket. They are emptied in the reverse of this order.
            key: the key that must outlive the emptying.
            permissions_boundary_arn: a managed policy that bounds the function's role.
        """
        super().__init__(scope, construct_id)
        log_group = logs.LogGroup(
            self, "Log", retention=logs.RetentionDays.ONE_WEEK, removal_policy=cdk.RemovalPolicy.DESTROY
        )
        role = iam.Role(
            self,
            "Role",
            description="Empties buckets that are deleted with their stack",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            permissions_boundary=boundary(self, permissions_boundary_arn),
        )
        self.policy = iam.Policy(self, "Access", roles=[role])
        allow(
            self.policy,
            "WriteLog",
            actions=["logs:CreateLogStream", "logs:PutLogEvents"],
            resources=[log_group.log_group_arn],
        )
        for bucket in buckets.values():
            self._allow_emptying(bucket)
        self.function = lambda_.Function(
            self,
            "Function",
            description="Empties buckets that are deleted with their stack",
            runtime=lambda_.Runtime.PYTHON_3_14,
            handler="handler.handler",
            code=lambda_.Code.from_asset(str(CODE), exclude=["__pycache__", "*.pyc"]),
            memory_size=256,
            timeout=cdk.Duration.minutes(WORK_MINUTES),
            log_group=log_group,
            role=role,
        )
        before = None
        for name, bucket in buckets.items():
            resource = cdk.CustomResource(
                self,
                name,
                resource_type="Custom::EmptiedBucket",
                service_token=self.function.function_arn,
                # Past the function's own limit: a function that is cut off cannot answer.
                service_timeout=cdk.Duration.minutes(WORK_MINUTES + 1),
                properties={"Bucket": bucket.bucket_name},
            )
            # What depends on others is deleted before them: the bucket's policy, key and function are still there.
            resource.node.add_dependency(self.policy, bucket, *([key] if key else []), *([before] if before else []))
            before = resource

    def _allow_emptying(self, bucket: s3.Bucket) -> None:
        name = bucket.node.id
        allow(
            self.policy,
            f"List{name}",
            actions=["s3:ListBucketVersions", "s3:ListBucketMultipartUploads"],
            resources=[bucket.bucket_arn],
        )
        objects = bucket.arn_for_objects("*")
        allow(
            self.policy,
            f"Empty{name}",
            actions=["s3:DeleteObject", "s3:DeleteObjectVersion", "s3:AbortMultipartUpload"],
            resources=[objects],
        )
        acknowledge_wildcard(
            self.policy,
            resource=objects,
            reason="The bucket is deleted with its stack, and all that is in it goes first, whatever its key. "
            "Buckets that are retained have no such function.",
        )
