"""What watches endpoints: log group, captured data, dashboard, alarms and their topic."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_events as events
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sagemaker as sagemaker
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge, acknowledge_wildcard
from constructs_lib.artifact_bucket import ArtifactBucketReference, endpoint_log_name
from constructs_lib.handler_function import HandlerFunction
from constructs_lib.permission import allow
from constructs_lib.triton_model import ExecutionRole
from tritonstack import aws_names
from tritonstack.config.endpoint import DataCapture
from tritonstack.monitoring.alarms import SEVERITIES, Alarm, Severity
from tritonstack.monitoring.dashboard import dashboard_body
from tritonstack.monitoring.graphs import Dashboard as Definition
from tritonstack.monitoring.metric import Metric


class EndpointLog(Construct):
    """A custom resource that makes the log group or adopts it, and sets its retention, its key and its tags.

    No ``AWS::Logs::LogGroup``: that fails where the group exists, as after a deletion that retained it, or where the
    endpoint was there before this. See ``docs/decisions/0012-an-endpoints-log-group-is-adopted.md``.

    Attributes:
        log_group_name: the group's name.
        resource: the custom resource, which the endpoint waits for.
        function: what answers it.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint_name: str,
        days: int,
        retain: bool,
        artifacts: ArtifactBucketReference,
        tags: Mapping[str, str],
        permissions_boundary_arn: str | None = None,
    ) -> None:
        """Make custom resource and function.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            endpoint_name: the endpoint's name at SageMaker.
            days: how long a line is kept; one of the retentions that CloudWatch Logs takes.
            retain: keep the group when the stack is deleted.
            artifacts: whose key encrypts it; that key's policy names the group.
            tags: key → value; CloudFormation's tags reach no group that a function makes.
            permissions_boundary_arn: a managed policy that bounds the function's role. Default: None.
        """
        super().__init__(scope, construct_id)
        name = self.log_group_name = endpoint_log_name(endpoint_name)
        self.function = HandlerFunction(
            self,
            "Handler",
            handler="endpoint_log",
            description=f"Makes or adopts the log group of endpoint {endpoint_name}",
            log_retention=logs.RetentionDays.THREE_MONTHS,
            permissions_boundary_arn=permissions_boundary_arn,
        )
        group = cdk.Stack.of(self).format_arn(
            service="logs", resource="log-group", resource_name=name, arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME
        )
        names = ("AssociateKmsKey", "CreateLogGroup", "PutRetentionPolicy", "TagResource", "UntagResource")
        actions = [f"logs:{each}" for each in names]
        # Both forms: of these actions CloudWatch Logs checks some against `<group>:*`.
        both = [group, f"{group}:*"]
        policy = self.function.policy
        allow(policy, "SetUp", actions=actions if retain else [*actions, "logs:DeleteLogGroup"], resources=both)
        acknowledge_wildcard(
            policy,
            resource=f"{group}:*",
            reason="CloudWatch Logs writes a log group's ARN with ':*' at its end; it is this one group and its "
            "streams.",
        )
        self.resource = self.function.custom_resource(
            self,
            "Group",
            resource_type="Custom::EndpointLogGroup",
            properties={
                "LogGroupName": name,
                "LogGroupArn": group,
                "RetentionInDays": str(days),
                "KmsKeyId": artifacts.key_arn,
                "Retain": str(retain).lower(),
                "Tags": json.dumps(dict(tags), sort_keys=True),
            },
        )


JSON = "application/json"


def capture_data(
    config: sagemaker.CfnEndpointConfig,
    *,
    settings: DataCapture,
    prefix: str,
    role: ExecutionRole,
    artifacts: ArtifactBucketReference,
) -> None:
    """Have an endpoint's config capture data, and let the role write it.

    JSON is kept as text. Triton's binary requests are kept in base64, which SageMaker takes for every type that it is
    not told of: theirs carries the length of its header, so that no list could name it.

    Args:
        config: the config of a single-model endpoint.
        settings: how much is kept.
        prefix: where, with its trailing slash.
        role: the role that SageMaker runs the containers with.
        artifacts: the bucket.
    """
    config.data_capture_config = sagemaker.CfnEndpointConfig.DataCaptureConfigProperty(
        enable_capture=True,
        initial_sampling_percentage=settings.percentage,
        destination_s3_uri=f"s3://{artifacts.bucket_name}/{prefix}",
        kms_key_id=artifacts.key_arn,
        capture_options=[
            sagemaker.CfnEndpointConfig.CaptureOptionProperty(capture_mode=mode.capitalize())
            for mode in sorted(settings.capture)
        ],
        capture_content_type_header=sagemaker.CfnEndpointConfig.CaptureContentTypeHeaderProperty(
            json_content_types=[JSON]
        ),
    )
    captured = artifacts.objects_arn(f"{prefix}*")
    allow(role.policy, "WriteCaptured", actions=["s3:PutObject"], resources=[captured])
    acknowledge_wildcard(
        role.policy,
        resource=captured,
        reason="SageMaker names a captured file after variant, hour and a number of its own; all of them lie under "
        f"{prefix}, and nothing else does.",
    )
    allow(role.policy, "EncryptCaptured", actions=["kms:GenerateDataKey"], resources=[artifacts.key_arn])


class Dashboard(Construct):
    """The dashboard. Its name is ours, for people have it among their bookmarks.

    Attributes:
        dashboard: the resource.
    """

    def __init__(self, scope: Construct, construct_id: str, *, definition: Definition) -> None:
        """Make the dashboard of a ``definition``; values of its dimensions may be known at deployment only."""
        super().__init__(scope, construct_id)
        self.dashboard = cloudwatch.CfnDashboard(
            self, "Dashboard", dashboard_name=definition.name, dashboard_body=dashboard_body(definition)
        )

    @property
    def dashboard_name(self) -> str:
        """The dashboard's name."""
        return str(self.dashboard.ref)


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


MOST_CHILDREN = 100
"""Alarms that one composite alarm may name (CloudWatch user guide, "Create a composite alarm")."""


class Alarms(Construct):
    """All alarms of an environment.

    A single alarm tells nobody: the composite alarm of its severity does, so that ten alarms of one cause are one
    message, which names those that fired. While it is in ALARM, further alarms of its severity are seen in CloudWatch.

    Attributes:
        alarms: name → alarm.
        composites: severity → composite alarm; none for a severity that has no alarm.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: str,
        alarms: Sequence[Alarm],
        runbooks: str,
        topic: str,
    ) -> None:
        """Make the alarms.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            environment: the environment's name, part of the composite alarms' names.
            alarms: their definitions.
            runbooks: where docs/operations.md is read.
            topic: ARN of the topic that is told when a composite alarm fires, and when it is over.
        """
        super().__init__(scope, construct_id)
        self.alarms = {each.name: self._alarm(each, runbooks=runbooks) for each in alarms}
        self.composites: dict[Severity, cloudwatch.CfnCompositeAlarm] = {}
        for severity in SEVERITIES:
            names = [each.name for each in alarms if each.kind.severity == severity]
            if names:
                self.composites[severity] = self._composite(environment, severity, names=names, topic=topic)

    def _alarm(self, alarm: Alarm, *, runbooks: str) -> cloudwatch.CfnAlarm:
        series = alarm.series
        [metric] = series.metrics.values() if series.expression is None else [None]
        made = cloudwatch.CfnAlarm(
            self,
            alarm.name,
            alarm_name=alarm.name,
            alarm_description=alarm.description(runbooks=runbooks),
            comparison_operator=alarm.comparison,
            threshold=alarm.threshold,
            evaluation_periods=alarm.periods,
            datapoints_to_alarm=alarm.needed,
            treat_missing_data=alarm.missing,
            **(
                {"metrics": _queries(alarm)}
                if metric is None
                else {
                    "namespace": metric.namespace,
                    "metric_name": metric.name,
                    "dimensions": _dimensions(metric),
                    "statistic": metric.statistic,
                    "period": alarm.period,
                }
            ),
        )
        acknowledge(
            made,
            finding="NIST.800.53.R5-CloudWatchAlarmAction",
            reason=f"The composite alarm of its severity ({alarm.kind.severity}) has it in its rule, and the action.",
        )
        return made

    def _composite(
        self, environment: str, severity: Severity, *, names: Sequence[str], topic: str
    ) -> cloudwatch.CfnCompositeAlarm:
        """The alarm that tells; of more alarms than it can name, it names parts, which tell nobody."""
        children: dict[str, cloudwatch.CfnAlarm | cloudwatch.CfnCompositeAlarm] = {
            name: self.alarms[name] for name in names
        }
        if len(children) > MOST_CHILDREN:
            every = list(children.items())
            parts = [dict(every[start : start + MOST_CHILDREN]) for start in range(0, len(every), MOST_CHILDREN)]
            children = {}
            for number, part in enumerate(parts, start=1):
                name = f"{environment}-{severity}-{number}"
                says = f"{environment}: part {number} of its {severity} alarms; {environment}-{severity} notifies."
                children[name] = self._any_of(f"{severity}-{number}", name=name, says=says, children=part)
        return self._any_of(
            severity,
            name=f"{environment}-{severity}",
            says=f"{environment}: at least one {severity} alarm is in ALARM; its description links its runbook.",
            children=children,
            topic=topic,
        )

    def _any_of(
        self,
        construct_id: str,
        *,
        name: str,
        says: str,
        children: Mapping[str, cloudwatch.CfnAlarm | cloudwatch.CfnCompositeAlarm],
        topic: str | None = None,
    ) -> cloudwatch.CfnCompositeAlarm:
        actions = None if topic is None else [topic]
        composite = cloudwatch.CfnCompositeAlarm(
            self,
            construct_id,
            alarm_name=name,
            alarm_description=says,
            alarm_rule=" OR ".join(f'ALARM("{child}")' for child in children),
            alarm_actions=actions,
            ok_actions=actions,
        )
        for child in children.values():
            composite.add_resource_dependency(child)
        return composite


def _queries(alarm: Alarm) -> list[cloudwatch.CfnAlarm.MetricDataQueryProperty]:
    queries = [
        cloudwatch.CfnAlarm.MetricDataQueryProperty(
            id=name,
            return_data=False,
            metric_stat=cloudwatch.CfnAlarm.MetricStatProperty(
                metric=cloudwatch.CfnAlarm.MetricProperty(
                    namespace=metric.namespace, metric_name=metric.name, dimensions=_dimensions(metric)
                ),
                period=alarm.period,
                stat=metric.statistic,
            ),
        )
        for name, metric in alarm.series.metrics.items()
    ]
    series = alarm.series
    queries.append(
        cloudwatch.CfnAlarm.MetricDataQueryProperty(
            id=series.key, expression=series.expression, label=series.label, return_data=True
        )
    )
    return queries


def _dimensions(metric: Metric) -> list[cloudwatch.CfnAlarm.DimensionProperty]:
    return [cloudwatch.CfnAlarm.DimensionProperty(name=name, value=value) for name, value in metric.dimensions]


KEPT_DAYS = 14
"""The longest that SQS keeps a message."""


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
                    "scalableDimension": [aws_names.VARIANT_INSTANCE_COUNT],
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
