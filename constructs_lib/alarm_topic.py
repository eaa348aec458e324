"""The topic that tells people of alarms."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_sns as sns
from constructs import Construct


class AlarmTopic(Construct):
    """An SNS topic under the artifacts' key, into which only this account's alarms write.

    Attributes:
        topic: the topic; others subscribe to it.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: str,
        key_arn: str,
        email: Sequence[str],
    ) -> None:
        """Make the topic.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            environment: the environment's name, part of its alarms' names.
            key_arn: of the key that messages are under; its policy lets these alarms use it.
            email: who is told; each confirms a message first.
        """
        super().__init__(scope, construct_id)
        self.topic = sns.CfnTopic(
            self,
            "Topic",
            # A fixed name: the key's policy, in another stack, lets alarms of this topic in and no others.
            topic_name=alarm_topic_name(environment),
            display_name=f"Alarms of {environment}",
            kms_master_key_id=key_arn,
        )
        stack = cdk.Stack.of(self)
        alarms = stack.format_arn(
            service="cloudwatch",
            resource="alarm",
            resource_name=f"{environment}-*",
            arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
        )
        sns.CfnTopicPolicy(
            self,
            "Policy",
            topics=[self.topic.ref],
            policy_document={
                "Version": "2012-10-17",
                "Statement": [
                    {
                        "Sid": "TellOfAlarms",
                        "Effect": "Allow",
                        "Principal": {"Service": "cloudwatch.amazonaws.com"},
                        "Action": "sns:Publish",
                        "Resource": self.topic.ref,
                        "Condition": {
                            "StringEquals": {"aws:SourceAccount": stack.account},
                            "ArnLike": {"aws:SourceArn": alarms},
                        },
                    },
                    {
                        "Sid": "RefusePlainText",
                        "Effect": "Deny",
                        "Principal": "*",
                        "Action": "sns:Publish",
                        "Resource": self.topic.ref,
                        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
                    },
                ],
            },
        )
        for number, address in enumerate(email):
            sns.CfnSubscription(self, f"Email{number}", topic_arn=self.topic.ref, protocol="email", endpoint=address)

    @property
    def topic_arn(self) -> str:
        """The topic's ARN."""
        return str(self.topic.ref)


def alarm_topic_name(environment: str) -> str:
    """The topic's name."""
    return f"{environment}-alarms"
