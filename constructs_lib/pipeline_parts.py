"""A pipeline's bucket, topic and roles of builds; CDK Pipelines' grants reduced to what a pipeline needs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_codepipeline as codepipeline
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge, acknowledge_wildcard
from constructs_lib.artifact_bucket import LOGS_BY_POLICY, RETAINED, access_log_bucket, allow_service
from constructs_lib.bucket_emptying import bucket_resource
from constructs_lib.permission import allow_group, arn, regional_service, service_principal
from tritonstack.arns import Arn, role_arn

ACCESS_LOG_DAYS = 90
NONCURRENT_DAYS = 7


class PipelineBucket(Construct):
    """An encrypted bucket whose objects expire, its key, and its access logs.

    Attributes:
        key: encrypts artifacts, logs and messages of the pipeline; roles of the environments' accounts may use it.
        bucket: the artifacts.
    """

    def __init__(self, scope: Construct, construct_id: str, *, pipeline: str, artifact_days: int) -> None:
        """Make bucket and key. ``artifact_days``: days until an artifact expires; a rollback needs earlier ones."""
        super().__init__(scope, construct_id)
        self.node.set_context(LOGS_BY_POLICY, True)
        stack = cdk.Stack.of(self)
        self.key = kms.Key(
            self,
            "Key",
            description=f"Artifacts, logs and messages of the pipeline {pipeline}",
            enable_key_rotation=True,
            removal_policy=RETAINED,
        )
        allow_service(
            self.key,
            "EncryptLogs",
            regional_service(stack, "logs"),
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
        allow_service(self.key, "PublishEvents", "events.amazonaws.com", ["kms:Decrypt", "kms:GenerateDataKey"])
        access_logs = access_log_bucket(
            self,
            lifecycle_rules=[s3.LifecycleRule(expiration=cdk.Duration.days(ACCESS_LOG_DAYS))],
            removal_policy=RETAINED,
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
            removal_policy=RETAINED,
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
        """Make the topic. ``key``: encrypts messages; its policy allows EventBridge to use it."""
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
        """Make the role. Its name is fixed, because the trust policy of ``assumed`` names it."""
        super().__init__(scope, construct_id)
        self.assumed = assumed
        self.role = iam.Role(
            self, "Role", role_name=role_name, description=description, assumed_by=service_principal(self, "codebuild")
        )
        allow_group(iam.Policy(self, "Assume", roles=[self.role]), "pipeline-build", role=assumed)


# The CDK attaches these statements to the roles of its own builds, and has no setting for them. They are recognised by
# their text, so that a new one of a later version of the CDK is a finding again.
Statement = dict[str, Any]

_ACTIONS = ("s3:GetObject*", "s3:GetBucket*", "s3:List*", "s3:DeleteObject*", "s3:Abort*")
_KEY_ACTIONS = ("kms:ReEncrypt*", "kms:GenerateDataKey*")
_CONNECTION_SERVICES = ("codeconnections", "codestar-connections")


def narrow_permissions(stack: cdk.Stack) -> None:
    """Remove permissions that the pipeline does not need; call it when the pipeline is built.

    - to write CodeBuild's own log groups (builds write into the pipeline's group) and groups of test reports (there are
      none);
    - the right of asset publishing to start any build of the account: CodePipeline starts builds;
    - of self-mutation, the right to assume any role with a tag of the bootstrap: it deploys one stack, by two roles;
    - the right of CodePipeline and CodeBuild to assume a role for another account's pipelines and builds.

    The permission to use the connection is replaced: the CDK grants it by the service's old name alone.
    """
    for policy in _policies(stack):
        kept = []
        for statement in _statements(stack, policy):
            if _is_on(statement, "log-group:/aws/codebuild/") or _allows(statement, "codebuild:CreateReportGroup"):
                continue
            if _allows(statement, "codebuild:StartBuild") and statement["Resource"] == "*":
                continue
            if _allows(statement, "codestar-connections:UseConnection"):
                kept += _connection_statements(statement["Resource"])
                continue
            if statement["Resource"] == role_arn("*", partition="*", account=stack.account):
                statement = {key: each for key, each in statement.items() if key != "Condition"}  # noqa: PLW2901
                statement["Resource"] = _bootstrap_roles(stack)
            kept.append(statement)
        policy.policy_document = stack.resolve({"Statement": kept, "Version": "2012-10-17"})
    for role in stack.node.find_all():
        if isinstance(role, iam.CfnRole):
            role.assume_role_policy_document = _for_this_account(stack, role)


def _for_this_account(stack: cdk.Stack, role: iam.CfnRole) -> Statement:
    """A trust policy whose services act for this account alone.

    Sources: CodePipeline user guide and CodeBuild user guide, "Cross-service confused deputy prevention".
    """
    document: Statement = stack.resolve(role.assume_role_policy_document)
    for statement in document["Statement"]:
        if "Service" in statement["Principal"]:
            equals = statement.setdefault("Condition", {}).setdefault("StringEquals", {})
            equals.setdefault("aws:SourceAccount", stack.account)
    return document


def acknowledge_pipeline(stack: cdk.Stack) -> None:
    """Accept findings in the pipeline's own stack, each with its reason."""
    for construct in stack.node.find_all():
        if isinstance(construct, codebuild.CfnProject) and stack.resolve(construct.environment).get("privilegedMode"):
            reason = "It builds images of Dockerfiles of the repository: a Docker engine in CodeBuild needs the mode."
            acknowledge(construct, finding="AwsSolutions-CB3", reason=reason)
    store = "CDK Pipelines' own grant for what goes from action to action: the pattern in the action is within one "
    for policy in _policies(stack):
        acknowledge(
            policy,
            finding="NIST.800.53.R5-IAMNoInlinePolicy",
            reason="Each policy is of one role and goes with it. As a managed policy it could be attached to another "
            "principal, and up to four old versions of it would stay.",
        )
        for statement in _statements(stack, policy):
            for action in _listed(statement["Action"]):
                if action in _ACTIONS:
                    reason = f"{store}service's reading, listing or removing, and the resource is the artifact bucket."
                    acknowledge(policy, finding=f"AwsSolutions-IAM5[Action::{action}]", reason=reason)
                elif action in _KEY_ACTIONS:
                    reason = f"{store}call of KMS in its two forms, and the resource is the pipeline's key."
                    acknowledge(policy, finding=f"AwsSolutions-IAM5[Action::{action}]", reason=reason)
            for resource in _listed(statement["Resource"]):
                _accept_resource(stack, policy, statement, resource)


def _accept_resource(stack: cdk.Stack, policy: iam.CfnPolicy, statement: Statement, resource: Any) -> None:
    if resource == "*" and set(_listed(statement["Action"])) <= {"cloudformation:DescribeStacks", "s3:ListBucket"}:
        acknowledge(
            policy,
            finding="AwsSolutions-IAM5[Resource::*]",
            reason="Self-mutation runs the CDK's command line, which looks at the bootstrap's stack and bucket before "
            "it takes the bootstrap's roles (aws-cdk-lib, pipelines: CodePipeline); both calls read only.",
        )
    elif resource == "*" and _listed(statement["Action"]) == ["ecr:GetAuthorizationToken"]:
        reason = "ecr:GetAuthorizationToken has no resource type to name (service authorization reference)."
        acknowledge_wildcard(policy, resource=resource, reason=reason)
    elif isinstance(resource, dict) and json.dumps(resource).endswith('"/*"]]}'):
        acknowledge_wildcard(
            policy,
            resource=stack.resolve(resource),
            reason="CodePipeline names artifacts by execution, in keys that are to come; the bucket is this "
            "pipeline's own and holds nothing else.",
        )


def _policies(stack: cdk.Stack) -> Iterator[iam.CfnPolicy]:
    for construct in stack.node.find_all():
        if isinstance(construct, iam.CfnPolicy):
            yield construct


def _statements(stack: cdk.Stack, policy: iam.CfnPolicy) -> list[Statement]:
    """The statements of the template, narrowed ones included."""
    found: list[Statement] = stack.resolve(policy.policy_document)["Statement"]
    return found


def _is_on(statement: Statement, text: str) -> bool:
    """Whether every resource of a statement has the text in its ARN."""
    return all(text in json.dumps(resource) for resource in _listed(statement["Resource"]))


def _connection_statements(connection: str) -> list[Statement]:
    """The right to use a connection, under both names of its service.

    "The service prefix needs to match that of the resource" (Developer Tools console user guide, "Connections rename"),
    and a connection's ARN bears the name that the service had when the connection was made.
    """
    arn = Arn.parse(connection)
    return [
        {"Action": f"{service}:UseConnection", "Effect": "Allow", "Resource": str(replace(arn, service=service))}
        for service in _CONNECTION_SERVICES
    ]


def _allows(statement: Statement, action: str) -> bool:
    return action in _listed(statement["Action"])


def _bootstrap_roles(stack: cdk.Stack) -> list[Any]:
    """The roles by which the CDK's command line publishes and deploys a stack of this account."""
    qualifier = stack.synthesizer.bootstrap_qualifier or cdk.DefaultStackSynthesizer.DEFAULT_QUALIFIER
    ends = f"{stack.account}-{stack.region}"
    return [
        role_arn(f"cdk-{qualifier}-{kind}-role-{ends}", partition=stack.partition, account=stack.account)
        for kind in ("deploy", "file-publishing")
    ]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
