"""Where a pipeline keeps what goes from one of its actions to the next."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct, IConstruct

from constructs_lib.acknowledgement import acknowledge

ACCESS_LOG_DAYS = 90
NONCURRENT_DAYS = 7


class PipelineBucket(Construct):
    """An encrypted bucket whose objects expire, its key, and its access logs.

    Attributes:
        key: encrypts artifacts, logs and messages of the pipeline; roles of the environments' accounts may use it.
        bucket: the artifacts.
    """

    def __init__(self, scope: Construct, construct_id: str, *, pipeline: str, artifact_days: int) -> None:
        """Make bucket and key.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            pipeline: its name.
            artifact_days: days until an artifact is gone; a rollback takes those of an earlier execution.
        """
        super().__init__(scope, construct_id)
        # Access logs are let in by the bucket's policy instead of an ACL, which AWS advises against.
        self.node.set_context("@aws-cdk/aws-s3:serverAccessLogsUseBucketPolicy", True)
        self.key = kms.Key(
            self,
            "Key",
            description=f"Artifacts, logs and messages of the pipeline {pipeline}",
            enable_key_rotation=True,
            removal_policy=cdk.RemovalPolicy.RETAIN,
        )
        self._let_logs_in()
        # No condition on the source: that is "not supported for EventBridge-to-encrypted topics" (SNS developer guide,
        # "Managing Amazon SNS encryption keys and costs"), and EventBridge would drop every event. The topic's policy
        # says whose rules may publish.
        self.key.add_to_resource_policy(
            iam.PolicyStatement(
                sid="TellOfEvents",
                principals=[iam.ServicePrincipal("events.amazonaws.com")],
                actions=["kms:Decrypt", "kms:GenerateDataKey"],
                resources=["*"],  # in a key's policy: this key
            )
        )
        access_logs = s3.Bucket(
            self,
            "AccessLogs",
            encryption=s3.BucketEncryption.S3_MANAGED,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            enforce_ssl=True,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            lifecycle_rules=[s3.LifecycleRule(expiration=cdk.Duration.days(ACCESS_LOG_DAYS))],
            removal_policy=cdk.RemovalPolicy.RETAIN,
        )
        self.bucket = s3.Bucket(
            self,
            "Artifacts",
            encryption=s3.BucketEncryption.KMS,
            encryption_key=self.key,
            bucket_key_enabled=True,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            enforce_ssl=True,
            versioned=True,
            server_access_logs_bucket=access_logs,
            lifecycle_rules=[
                s3.LifecycleRule(
                    expiration=cdk.Duration.days(artifact_days),
                    noncurrent_version_expiration=cdk.Duration.days(NONCURRENT_DAYS),
                    abort_incomplete_multipart_upload_after=cdk.Duration.days(1),
                )
            ],
            removal_policy=cdk.RemovalPolicy.RETAIN,
        )
        self._accept(access_logs)

    def _accept(self, access_logs: s3.Bucket) -> None:
        """What NIST 800-53 R5 asks for and is of no use here."""
        logs = "S3 writes each access log once, under a name of its own, and a lifecycle rule deletes it"
        reasons = {
            "S3BucketReplicationEnabled": f"{logs}.",
            "S3BucketVersioningEnabled": f"{logs}, which versions would undo.",
            "S3DefaultEncryptionKMS": "S3 delivers access logs to a bucket with SSE-S3 (user guide: Enabling Amazon S3 "
            "server access logging); with a customer key as the default they would not arrive.",
        }
        for rule, reason in reasons.items():
            acknowledge(_low_level(access_logs), finding=f"NIST.800.53.R5-{rule}", reason=reason)
        acknowledge(
            _low_level(self.bucket),
            finding="NIST.800.53.R5-S3BucketReplicationEnabled",
            reason="What goes from action to action is made anew from the commit, and expires.",
        )

    def _let_logs_in(self) -> None:
        """CloudWatch Logs may use the key for the log groups of pipelines, and for no others."""
        stack = cdk.Stack.of(self)
        groups = f"arn:{stack.partition}:logs:{stack.region}:{stack.account}:log-group:/tritonstack/pipeline/*"
        self.key.add_to_resource_policy(
            iam.PolicyStatement(
                sid="EncryptLogs",
                principals=[iam.ServicePrincipal(f"logs.{stack.region}.amazonaws.com")],
                actions=["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey*", "kms:ReEncrypt*"],
                resources=["*"],
                conditions={"ArnLike": {"kms:EncryptionContext:aws:logs:arn": groups}},
            )
        )


def _low_level(bucket: s3.Bucket) -> IConstruct:
    found = bucket.node.default_child
    if found is None:
        raise TypeError("a bucket without a resource")
    return found
