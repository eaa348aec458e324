"""Lambda functions behind custom resources and EventBridge rules: code of one folder, a role with one policy."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3_assets as s3_assets
from aws_cdk import aws_sqs as sqs
from constructs import Construct, IDependable

from constructs_lib.acknowledgement import acknowledge
from constructs_lib.permission import allow_group, delivery_policy
from tritonstack import naming
from tritonstack.paths import repository_path

HANDLERS = repository_path("lambda")
SHARED = "shared"


def entry_point(handler: str) -> str:
    """Handler of a folder of ``lambda/``, in Lambda's notation."""
    return f"lambda.{handler}.handler.handler"


def handler_files(handler: str) -> dict[str, bytes]:
    """Files of a function: path below ``lambda/`` → content.

    They keep their places, so that they import one another as in the repository.
    """
    files = sorted(path for folder in (handler, SHARED) for path in (HANDLERS / folder).glob("*.py"))
    return {path.relative_to(HANDLERS).as_posix(): path.read_bytes() for path in files}


def pack(handler: str, target: Path) -> None:
    """Write a function's files into a folder, readable for all: Lambda runs them as a user that owns no file."""
    for name, content in handler_files(handler).items():
        path = target / "lambda" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o644)


def text_asset(scope: Construct, construct_id: str, text: str, *, suffix: str) -> s3_assets.Asset:
    """A file asset with this text, whose object key ends in ``suffix``."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"set{suffix}")
        path.write_text(text)
        return s3_assets.Asset(scope, construct_id, path=str(path))  # copied at once into the cloud assembly


RUNTIME = "python3.14"
MEMORY_MIB = 256
UNSAID = frozenset({"Default", "Handler"})
"""Ids of constructs that log groups are not named after."""
WORK_MINUTES = 15
"""Longest time that Lambda allows a function to run."""


class HandlerFunction(Construct):
    """One folder of ``lambda/`` as a function behind custom resources and events.

    The function is the low-level resource: the L2 construct loads VPC, EFS and event sources, a tenth of the time of a
    synthesis, and this function has none of them.

    Attributes:
        policy: the one policy of its role, to which constructs add the handler's permissions.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        handler: str,
        description: str,
        variables: Mapping[str, str] | None = None,
        function_name: str | None = None,
        log_retention: logs.RetentionDays = logs.RetentionDays.THREE_MONTHS,
    ) -> None:
        """Make the function, its role and its log group.

        ``handler``: folder under ``lambda/``; its ``handler.py`` has ``handler(event, context)``. ``variables``:
        environment variables; nothing secret. ``function_name``: where other stacks have its ARN as ``ServiceToken``,
        which CloudFormation never updates; None: CloudFormation generates one.
        """
        super().__init__(scope, construct_id)
        log_group = logs.LogGroup(
            self,
            "Log",
            log_group_name=self._log_name(),
            retention=log_retention,
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        principal = iam.ServicePrincipal("lambda.amazonaws.com")
        role = iam.Role(self, "Role", description=description, assumed_by=principal)
        self.policy = iam.Policy(self, "Access", roles=[role])
        allow_group(self.policy, "write-log", log=log_group.log_group_arn)
        with tempfile.TemporaryDirectory() as name:
            pack(handler, Path(name))
            code = s3_assets.Asset(self, "Code", path=name)  # copied at once into the cloud assembly
        self._function = lambda_.CfnFunction(
            self,
            "Function",
            function_name=function_name,
            description=description,
            runtime=RUNTIME,
            handler=entry_point(handler),
            code=lambda_.CfnFunction.CodeProperty(s3_bucket=code.s3_bucket_name, s3_key=code.s3_object_key),
            memory_size=MEMORY_MIB,
            timeout=WORK_MINUTES * 60,
            logging_config=lambda_.CfnFunction.LoggingConfigProperty(log_group=log_group.log_group_name),
            role=role.role_arn,
            environment=lambda_.CfnFunction.EnvironmentProperty(variables=dict(variables)) if variables else None,
        )
        self.arn: str = self._function.attr_arn

    def _log_name(self) -> str:
        """The name of its log group, made of construct ids below the stack; ``UNSAID`` ones are left out."""
        stack = cdk.Stack.of(self)
        below = [each.node.id for each in self.node.scopes[len(stack.node.scopes) :]]
        path = [each for each in below if each not in UNSAID] or below
        return naming.function_log_group(stack=stack.stack_name, path=path)

    def allow_seeing_operations(self) -> None:
        """Allow finding the operation of this stack that an event belongs to: ``lambda/shared/operation.py``."""
        allow_group(self.policy, "operations", stack=cdk.Stack.of(self).stack_id)

    def custom_resource(
        self,
        scope: Construct,
        construct_id: str,
        *,
        resource_type: str,
        properties: Mapping[str, str],
        after: Sequence[IDependable] = (),
        response_minutes: int = WORK_MINUTES + 1,
    ) -> cdk.CustomResource:
        """A custom resource that this function responds to.

        Args:
            after: resources that must exist before it and outlive it, besides the function and its policy.
            response_minutes: how long CloudFormation waits for the response: longer than the function may run, because
                a function that is cut off cannot respond; longer still where several runs share the work, 60 at most.
        """
        resource = cdk.CustomResource(
            scope,
            construct_id,
            resource_type=resource_type,
            service_token=self.arn,
            service_timeout=cdk.Duration.minutes(response_minutes),
            properties=dict(properties),
        )
        # Deletion is in the reverse order, so the function still exists when the resource is deleted.
        resource.node.add_dependency(self.policy, *after)
        return resource


MAXIMUM_ATTEMPTS = 185
"""EventBridge's own default and maximum (user guide: "How EventBridge retries delivering events")."""
MAXIMUM_RETENTION_SECONDS = 14 * 24 * 3600
"""Longest time that a queue keeps a message (SQS API reference: SetQueueAttributes, ``MessageRetentionPeriod``)."""


def event_queue(scope: Construct, construct_id: str, *, reason: str) -> sqs.CfnQueue:
    """A queue of events for people to read. ``reason``: why it has no dead-letter queue, for cdk-nag."""
    queue = sqs.CfnQueue(
        scope, construct_id, sqs_managed_sse_enabled=True, message_retention_period=MAXIMUM_RETENTION_SECONDS
    )
    acknowledge(queue, finding="AwsSolutions-SQS3", reason=reason)
    return queue


def allow_event_rules(
    scope: Construct, construct_id: str, *, queue: sqs.CfnQueue, sid: str, rules: str | Sequence[str]
) -> None:
    """Allow EventBridge to write into a queue for these rules (ARNs), and deny requests without TLS."""
    policy = delivery_policy(
        sid=sid,
        service="events",
        action="sqs:SendMessage",
        resource=queue.attr_arn,
        condition={"ArnEquals": {"aws:SourceArn": rules}},
        refused="sqs:*",
    )
    sqs.CfnQueuePolicy(scope, construct_id, queues=[queue.ref], policy_document=policy)


class DeadLetterRule(Construct):
    """A rule that invokes a function for events, and the queue of events that were not delivered or that it failed on.

    With the id ``Default`` it adds nothing to logical ids: the CDK leaves that id out.

    Attributes:
        undelivered: the queue.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        rule_id: str,
        description: str,
        event_pattern: Mapping[str, Any],
        function: HandlerFunction,
        age_seconds: int,
    ) -> None:
        """Make rule and queue, and allow the function's role to write into the queue.

        ``age_seconds``: how long EventBridge tries to deliver an event.
        """
        super().__init__(scope, construct_id)
        queue = self.undelivered = event_queue(
            self,
            "Undelivered",
            reason="This is the dead-letter queue: it holds the events that EventBridge could not deliver and those "
            "that the function failed on, for a person to read.",
        )
        allow_group(function.policy, "failed-events", queue=queue.attr_arn)
        failed = lambda_.CfnEventInvokeConfig(
            self,
            "OnFailure",
            function_name=function.arn,
            qualifier="$LATEST",
            destination_config=lambda_.CfnEventInvokeConfig.DestinationConfigProperty(
                on_failure=lambda_.CfnEventInvokeConfig.OnFailureProperty(destination=queue.attr_arn)
            ),
        )
        failed.node.add_dependency(function.policy)  # Lambda checks the permission when this is created
        rule = events.CfnRule(
            self,
            rule_id,
            description=description,
            event_pattern=event_pattern,
            targets=[
                events.CfnRule.TargetProperty(
                    id="function",
                    arn=function.arn,
                    dead_letter_config=events.CfnRule.DeadLetterConfigProperty(arn=queue.attr_arn),
                    retry_policy=events.CfnRule.RetryPolicyProperty(
                        maximum_event_age_in_seconds=age_seconds, maximum_retry_attempts=MAXIMUM_ATTEMPTS
                    ),
                )
            ],
        )
        lambda_.CfnPermission(
            self,
            "MayCall",
            action="lambda:InvokeFunction",
            function_name=function.arn,
            principal="events.amazonaws.com",
            source_arn=rule.attr_arn,
        )
        allow_event_rules(self, "UndeliveredPolicy", queue=queue, sid="KeepUndelivered", rules=rule.attr_arn)
