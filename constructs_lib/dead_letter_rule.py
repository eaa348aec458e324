"""An EventBridge rule that calls a function, with the queue of what came to nothing: no event is lost unseen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge
from constructs_lib.handler_function import HandlerFunction
from constructs_lib.permission import allow

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
