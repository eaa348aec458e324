"""Lambda functions behind custom resources and EventBridge rules: code of one folder, a role with one policy."""

from __future__ import annotations

import re
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
from constructs_lib.permission import allow, boundary
from tritonstack.paths import repository_path

# They lie as they do here, so that they import one another in the same way. A shared file that a function does not use
# is not among them: a change of it does not deploy the function again.
HANDLERS = repository_path("lambda")
SHARED = "shared"
_OF_A_HANDLER = re.compile(r"^ *from \.\.shared(?:\.(\w+) import | import ([\w, ]+)$)", re.MULTILINE)
_OF_A_SHARED_FILE = re.compile(r"^ *from \.(?:(\w+) import | import ([\w, ]+)$)", re.MULTILINE)


def entry_point(handler: str) -> str:
    """The function of a folder, as Lambda names it."""
    return f"lambda.{handler}.handler.handler"


def pack(handler: str, target: Path) -> None:
    """Write a function's files into a folder, readable for all: Lambda runs them as a user that no file belongs to."""
    for name, content in handler_files(handler).items():
        path = target / "lambda" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o644)


def handler_files(handler: str) -> dict[str, bytes]:
    """The files of a function: path below ``lambda/`` → content."""
    files = {f"{handler}/{path.name}": path.read_bytes() for path in sorted((HANDLERS / handler).glob("*.py"))}
    waiting = {name for content in files.values() for name in _imported(_OF_A_HANDLER, content)}
    while waiting:
        path = HANDLERS / SHARED / f"{min(waiting)}.py"
        files[f"{SHARED}/{path.name}"] = content = path.read_bytes()
        waiting |= _imported(_OF_A_SHARED_FILE, content)
        waiting -= {Path(name).stem for name in files if name.startswith(f"{SHARED}/")}
    return files


def _imported(form: re.Pattern[str], content: bytes) -> set[str]:
    """The names of the shared modules that a file imports."""
    found = form.findall(content.decode())
    return {name.strip() for module, modules in found for name in (module or modules).split(",")}


RUNTIME = "python3.14"
MEMORY_MIB = 256
WORK_MINUTES = 15
"""The longest that a Lambda may run."""


class HandlerFunction(Construct):
    """One folder of ``lambda/`` as a function that CloudFormation calls.

    The function is the low-level resource: the construct above it reads VPC, EFS and event sources into memory, a
    tenth of the time of a synthesis, and this function has none of them.

    Attributes:
        arn: the function's ARN.
        policy: the one policy of its role; what the handler may do is added to it.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        handler: str,
        description: str,
        log_retention: logs.RetentionDays,
        variables: Mapping[str, str] | None = None,
        permissions_boundary_arn: str | None = None,
    ) -> None:
        """Make the function, its role and its log group.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            handler: the folder under ``lambda/``; its ``handler.py`` has ``handler(event, context)``.
            description: of function and role.
            log_retention: how long a line of its log is kept.
            variables: its environment; nothing that is secret. Default: None.
            permissions_boundary_arn: a managed policy that bounds the role. Default: None.
        """
        super().__init__(scope, construct_id)
        log_group = logs.LogGroup(self, "Log", retention=log_retention, removal_policy=cdk.RemovalPolicy.DESTROY)
        role = iam.Role(
            self,
            "Role",
            description=description,
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
        code = self._code(handler)
        self._function = lambda_.CfnFunction(
            self,
            "Function",
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

    def _code(self, handler: str) -> s3_assets.Asset:
        with tempfile.TemporaryDirectory() as name:
            pack(handler, Path(name))
            return s3_assets.Asset(self, "Code", path=name)  # copied at once into the cloud assembly

    def custom_resource(
        self,
        scope: Construct,
        construct_id: str,
        *,
        resource_type: str,
        properties: Mapping[str, str],
        after: Sequence[IDependable] = (),
        answer_minutes: int = WORK_MINUTES + 1,
    ) -> cdk.CustomResource:
        """A custom resource that this function answers.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            resource_type: ``Custom::…``, by which the handler knows what to do.
            properties: what the handler reads; a change of any is an update.
            after: what must be there before it and outlive it, besides the function and its policy.
            answer_minutes: how long CloudFormation waits for the answer: past the function's own limit, for a function
                that is cut off cannot answer; longer where several runs do the work, 60 at most.
        """
        resource = cdk.CustomResource(
            scope,
            construct_id,
            resource_type=resource_type,
            service_token=self.arn,
            service_timeout=cdk.Duration.minutes(answer_minutes),
            properties=dict(properties),
        )
        # Deleted in the reverse order, so the function can still do its work when the resource goes.
        resource.node.add_dependency(self.policy, *after)
        return resource


MOST_ATTEMPTS = 185
"""EventBridge's own default and maximum (user guide: "How EventBridge retries delivering events")."""
KEPT_DAYS = 14
"""The longest that a queue keeps a message (SQS API reference: SetQueueAttributes, ``MessageRetentionPeriod``)."""


class DeadLetterRule(Construct):
    """The rule, and the queue that both EventBridge and Lambda leave an event in: undelivered, or failed on.

    As the construct ``Default`` of its parent it adds nothing to logical ids, which the CDK makes without that word.

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
        """Make rule and queue, and let the function's role write into the queue.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            rule_id: the id of the rule.
            description: of the rule.
            event_pattern: which events.
            function: what is called with them.
            age_seconds: how long EventBridge tries to deliver one.
        """
        super().__init__(scope, construct_id)
        self.undelivered = self._queue()
        allow(function.policy, "KeepFailed", actions=["sqs:SendMessage"], resources=[self.undelivered.attr_arn])
        failed = lambda_.CfnEventInvokeConfig(
            self,
            "OnFailure",
            function_name=function.arn,
            qualifier="$LATEST",
            destination_config=lambda_.CfnEventInvokeConfig.DestinationConfigProperty(
                on_failure=lambda_.CfnEventInvokeConfig.OnFailureProperty(destination=self.undelivered.attr_arn)
            ),
        )
        failed.node.add_dependency(function.policy)  # Lambda checks the permission when this is made
        rule = events.CfnRule(
            self,
            rule_id,
            description=description,
            event_pattern=event_pattern,
            targets=[
                events.CfnRule.TargetProperty(
                    id="function",
                    arn=function.arn,
                    dead_letter_config=events.CfnRule.DeadLetterConfigProperty(arn=self.undelivered.attr_arn),
                    retry_policy=events.CfnRule.RetryPolicyProperty(
                        maximum_event_age_in_seconds=age_seconds, maximum_retry_attempts=MOST_ATTEMPTS
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
        self._let_in(rule)

    def _queue(self) -> sqs.CfnQueue:
        queue = sqs.CfnQueue(
            self,
            "Undelivered",
            sqs_managed_sse_enabled=True,
            message_retention_period=int(cdk.Duration.days(KEPT_DAYS).to_seconds()),
        )
        acknowledge(
            queue,
            finding="AwsSolutions-SQS3",
            reason="This is the dead-letter queue: it holds the events that EventBridge could not deliver and those "
            "that the function failed on, for a person to read.",
        )
        return queue

    def _let_in(self, rule: events.CfnRule) -> None:
        """EventBridge for this rule, and nobody in the clear."""
        sqs.CfnQueuePolicy(
            self,
            "UndeliveredPolicy",
            queues=[self.undelivered.ref],
            policy_document={
                "Version": "2012-10-17",
                "Statement": [
                    {
                        "Sid": "KeepUndelivered",
                        "Effect": "Allow",
                        "Principal": {"Service": "events.amazonaws.com"},
                        "Action": "sqs:SendMessage",
                        "Resource": self.undelivered.attr_arn,
                        "Condition": {"ArnEquals": {"aws:SourceArn": rule.attr_arn}},
                    },
                    {
                        "Sid": "RefusePlainText",
                        "Effect": "Deny",
                        "Principal": "*",
                        "Action": "sqs:*",
                        "Resource": self.undelivered.attr_arn,
                        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
                    },
                ],
            },
        )
