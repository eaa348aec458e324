"""The event that scaling has reached its maximum, as a metric that an alarm can look at."""

from __future__ import annotations

from aws_cdk import aws_events as events
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge

KEPT_DAYS = 14
"""The longest that SQS keeps a message."""
DIMENSION = "sagemaker:variant:DesiredInstanceCount"


class AtMaximumEvents(Construct):
    """One rule for each scaled endpoint, and the queue that keeps their events for people to read.

    EventBridge counts what a rule hands to its target (``Invocations`` by ``RuleName``): that is the alarm's metric.
    The event: Application Auto Scaling user guide, "Monitor Application Auto Scaling events using Amazon EventBridge";
    its delivery is best effort.
    """

    def __init__(self, scope: Construct, construct_id: str) -> None:
        """Make the queue; rules come by ``rule_for``."""
        super().__init__(scope, construct_id)
        self._rules: list[str] = []
        self.queue = sqs.CfnQueue(
            self, "Queue", sqs_managed_sse_enabled=True, message_retention_period=KEPT_DAYS * 24 * 3600
        )
        acknowledge(
            self.queue,
            finding="AwsSolutions-SQS3",
            reason="Nothing reads the queue, so that nothing can fail on a message: it keeps events for people.",
        )

    def rule_for(self, *, endpoint_name: str, variant_name: str) -> str:
        """A rule that one variant's event matches. Returns its name, known at deployment."""
        rule = events.CfnRule(
            self,
            f"Rule-{endpoint_name}",
            description=f"Scaling of {endpoint_name} has reached its maximum",
            event_pattern={
                "source": ["aws.application-autoscaling"],
                "detail-type": ["Application Auto Scaling Scaling Activity State Change"],
                "detail": {
                    "serviceNamespace": ["sagemaker"],
                    "scalableDimension": [DIMENSION],
                    "resourceId": [f"endpoint/{endpoint_name}/variant/{variant_name}"],
                    "scaledToMax": [True],
                },
            },
            targets=[events.CfnRule.TargetProperty(id="queue", arn=self.queue.attr_arn)],
        )
        self._rules.append(rule.attr_arn)
        return rule.ref

    def allow_rules(self) -> None:
        """Let exactly these rules write into the queue; called once, after the last of them."""
        sqs.CfnQueuePolicy(
            self,
            "QueuePolicy",
            queues=[self.queue.ref],
            policy_document={
                "Version": "2012-10-17",
                "Statement": [
                    {
                        "Sid": "KeepEvents",
                        "Effect": "Allow",
                        "Principal": {"Service": "events.amazonaws.com"},
                        "Action": "sqs:SendMessage",
                        "Resource": self.queue.attr_arn,
                        "Condition": {"ArnEquals": {"aws:SourceArn": self._rules}},
                    },
                    {
                        "Sid": "RefusePlainText",
                        "Effect": "Deny",
                        "Principal": "*",
                        "Action": "sqs:*",
                        "Resource": self.queue.attr_arn,
                        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
                    },
                ],
            },
        )
