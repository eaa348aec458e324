"""The topic that tells people of a pipeline: what failed, and what waits for them."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_codepipeline as codepipeline
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from constructs import Construct


class PipelineTopic(Construct):
    """An encrypted topic, to which EventBridge sends failed executions and approvals that are asked for.

    Attributes:
        topic: the topic; others subscribe to it.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, pipeline: str, key: kms.IKey, email: Sequence[str]
    ) -> None:
        """Make the topic.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            pipeline: its name.
            key: encrypts messages; its policy lets EventBridge use it.
            email: who is told; each confirms a message first.
        """
        super().__init__(scope, construct_id)
        self.topic = sns.Topic(self, "Topic", display_name=f"Pipeline {pipeline}", master_key=key, enforce_ssl=True)
        for number, address in enumerate(email):
            sns.CfnSubscription(
                self, f"Email{number}", topic_arn=self.topic.topic_arn, protocol="email", endpoint=address
            )

    def tell_of(self, pipeline: codepipeline.IPipeline) -> None:
        """Send this pipeline's failures, and its approvals that wait.

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
                    sid=f"Tell{name}",
                    principals=[iam.ServicePrincipal("events.amazonaws.com")],
                    actions=["sns:Publish"],
                    resources=[self.topic.topic_arn],
                    conditions={"ArnEquals": {"aws:SourceArn": rule.attr_arn}},
                )
            )
