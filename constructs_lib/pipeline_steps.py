"""A pipeline's bucket and topic, and the role of a build that may assume one in an environment."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_codepipeline as codepipeline
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge
from constructs_lib.artifact_bucket import LOGS_BY_POLICY, access_log_bucket, allow_service, bucket_resource
from constructs_lib.permission import allow, arn, service_principal

ACCESS_LOG_DAYS = 90
NONCURRENT_DAYS = 7


class PipelineBucket(Construct):
    """An encrypted bucket whose objects expire, its key, and its access logs.

    Attributes:
        key: encrypts artifacts, logs and messages of the pipeline; roles of the environments' accounts may use it.
        bucket: the artifacts.
    """

    def __init__(self, scope: Construct, construct_id: str, *, pipeline: str, artifact_days: int) -> None:
        """Make bucket and key. ``artifact_days``: until an artifact is gone; a rollback takes those of before."""
        super().__init__(scope, construct_id)
        self.node.set_context(LOGS_BY_POLICY, True)
        stack = cdk.Stack.of(self)
        self.key = kms.Key(
            self,
            "Key",
            description=f"Artifacts, logs and messages of the pipeline {pipeline}",
            enable_key_rotation=True,
            removal_policy=cdk.RemovalPolicy.RETAIN,
        )
        allow_service(
            self.key,
            "EncryptLogs",
            f"logs.{stack.region}",
            ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey*", "kms:ReEncrypt*"],
            conditions={
                "ArnLike": {
                    "kms:EncryptionContext:aws:logs:arn": arn(stack, "logs", "log-group", "/tritonstack/pipeline/*")
                }
            },
        )
        # No condition on the source: that is "not supported for EventBridge-to-encrypted topics" (SNS developer guide,
        # "Managing Amazon SNS encryption keys and costs"), and EventBridge would drop every event. The topic's policy
        # names the rules that may publish.
        allow_service(self.key, "PublishEvents", "events", ["kms:Decrypt", "kms:GenerateDataKey"])
        access_logs = access_log_bucket(
            self,
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
        logs = "S3 writes each access log once, under a name of its own, and a lifecycle rule deletes it"
        reasons = {
            "S3BucketReplicationEnabled": f"{logs}.",
            "S3BucketVersioningEnabled": f"{logs}, which versions would undo.",
            "S3DefaultEncryptionKMS": "S3 delivers access logs to a bucket with SSE-S3 (user guide: Enabling Amazon S3 "
            "server access logging); with a customer key as the default they would not arrive.",
        }
        for rule, reason in reasons.items():
            acknowledge(bucket_resource(access_logs), finding=f"NIST.800.53.R5-{rule}", reason=reason)
        acknowledge(
            bucket_resource(self.bucket),
            finding="NIST.800.53.R5-S3BucketReplicationEnabled",
            reason="What goes from action to action is made anew from the commit, and expires.",
        )


class PipelineTopic(Construct):
    """An encrypted topic that EventBridge notifies of failed executions and pending approvals."""

    def __init__(
        self, scope: Construct, construct_id: str, *, pipeline: str, key: kms.IKey, email: Sequence[str]
    ) -> None:
        """Make the topic. ``key``: encrypts messages; its policy lets EventBridge use it."""
        super().__init__(scope, construct_id)
        self.topic = sns.Topic(self, "Topic", display_name=f"Pipeline {pipeline}", master_key=key, enforce_ssl=True)
        for number, address in enumerate(email):
            sns.CfnSubscription(
                self, f"Email{number}", topic_arn=self.topic.topic_arn, protocol="email", endpoint=address
            )

    def notify_about(self, pipeline: codepipeline.IPipeline) -> None:
        """Notify about this pipeline's failures and pending approvals.

        The events are those of the CodePipeline user guide, "Monitoring CodePipeline events"; an approval that waits is
        an action of the category Approval that has STARTED.
        """
        execution = {"detail-type": ["CodePipeline Pipeline Execution State Change"], "detail": {"state": ["FAILED"]}}
        approval = {
            "detail-type": ["CodePipeline Action Execution State Change"],
            "detail": {"state": ["STARTED"], "type": {"category": ["Approval"]}},
        }
        for name, pattern in {"Failed": execution, "Waiting": approval}.items():
            rule = events.CfnRule(
                self,
                name,
                event_pattern={"source": ["aws.codepipeline"], "resources": [pipeline.pipeline_arn], **pattern},
                targets=[events.CfnRule.TargetProperty(id="Topic", arn=self.topic.topic_arn)],
            )
            self.topic.add_to_resource_policy(
                iam.PolicyStatement(
                    sid=f"Publish{name}",
                    principals=[iam.ServicePrincipal("events.amazonaws.com")],
                    actions=["sns:Publish"],
                    resources=[self.topic.topic_arn],
                    conditions={"ArnEquals": {"aws:SourceArn": rule.attr_arn}},
                )
            )


class AssumingRole(Construct):
    """The role of builds that work in an environment: it may assume one role there.

    Attributes:
        role: the role; the CDK adds what every build needs (log, artifacts, key, connection).
        assumed: the ARN of the role in the environment's account.
    """

    def __init__(self, scope: Construct, construct_id: str, *, role_name: str, description: str, assumed: str) -> None:
        """Make the role, whose name is fixed, for the trust policy of ``assumed`` names it."""
        super().__init__(scope, construct_id)
        self.assumed = assumed
        self.role = iam.Role(
            self, "Role", role_name=role_name, description=description, assumed_by=service_principal(self, "codebuild")
        )
        allow(iam.Policy(self, "Assume", roles=[self.role]), "WorkInEnvironment", ["sts:AssumeRole"], [assumed])
