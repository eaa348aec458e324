"""What watches endpoints: log group, captured data, dashboard, alarms and their topic."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_events as events
from aws_cdk import aws_sagemaker as sagemaker
from aws_cdk import aws_sns as sns
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge, acknowledge_wildcard
from constructs_lib.artifact_bucket import ArtifactBucketReference, endpoint_log_name
from constructs_lib.handler_function import HandlerFunction, allow_event_rules, event_queue
from constructs_lib.permission import allow, arn
from constructs_lib.triton_model import ExecutionRole
from tritonstack import aws_names
from tritonstack.config.endpoint import DataCapture
from tritonstack.monitoring.alarms import SEVERITIES, Alarm, Severity
from tritonstack.monitoring.dashboard import dashboard_body
from tritonstack.monitoring.graphs import Dashboard as Definition
from tritonstack.monitoring.metric import Metric


class EndpointLog(Construct):
    """A custom resource that creates or adopts an endpoint's log group, and sets its retention, key and tags.

    Not ``AWS::Logs::LogGroup``: that fails where the group exists, as after a deletion that retained it, or where the
    endpoint is older than this resource. See ``docs/decisions/0012-an-endpoints-log-group-is-adopted.md``.

    Attributes:
        log_group_name: name of the log group.
        resource: the custom resource, which the endpoint depends on.
        function: the function behind it.
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
    ) -> None:
        """Make custom resource and function.

        Args:
            endpoint_name: name of the endpoint at SageMaker.
            days: retention in days, one that CloudWatch Logs allows.
            retain: keep the group when the stack is deleted.
            artifacts: the bucket whose key encrypts the log; that key's policy names the group.
            tags: key → value; CloudFormation does not tag a group that a function creates.
        """
        super().__init__(scope, construct_id)
        name = self.log_group_name = endpoint_log_name(endpoint_name)
        self.function = HandlerFunction(
            self,
            "Handler",
            handler="endpoint_log",
            description=f"Creates or adopts the log group of endpoint {endpoint_name}",
        )
        group = arn(self, "logs", "log-group", name)
        names = ("AssociateKmsKey", "CreateLogGroup", "PutRetentionPolicy", "TagResource", "UntagResource")
        actions = [f"logs:{each}" for each in names]
        # Both forms: of these actions CloudWatch Logs checks some against `<group>:*`.
        both = [group, f"{group}:*"]
        policy = self.function.policy
        allow(policy, "SetUp", actions if retain else [*actions, "logs:DeleteLogGroup"], both)
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
    """Capture requests and responses of an endpoint, and let its role write them.

    JSON is kept as text. Triton's binary requests are kept in base64, SageMaker's default for other content types:
    theirs contains the length of its header, so that no list could name it.

    Args:
        config: the config of a single-model endpoint.
        settings: what is captured.
        prefix: key prefix of the captured files, with its trailing slash.
        role: execution role of the endpoint.
        artifacts: the bucket.
    """
    config.data_capture_config = sagemaker.CfnEndpointConfig.DataCaptureConfigProperty(
        enable_capture=True,
        initial_sampling_percentage=settings.percentage,
        destination_s3_uri=f"s3://{artifacts.bucket_name}/{prefix}",
        kms_key_id=artifacts.key_arn,
        capture_options=[
            sagemaker.CfnEndpointConfig.CaptureOptionProperty(capture_mode=mode) for mode in ("Input", "Output")
        ],
        capture_content_type_header=sagemaker.CfnEndpointConfig.CaptureContentTypeHeaderProperty(
            json_content_types=[JSON]
        ),
    )
    captured = artifacts.objects_arn(f"{prefix}*")
    allow(
        role.policy,
        "WriteCaptured",
        ["s3:PutObject"],
        [captured],
        wildcard="SageMaker names a captured file after variant, hour and a number of its own; all of them lie under "
        f"{prefix}, and nothing else does.",
    )
    allow(role.policy, "EncryptCaptured", ["kms:GenerateDataKey"], [artifacts.key_arn])


class Dashboard(Construct):
    """A CloudWatch dashboard with a fixed name, which people bookmark.

    Attributes:
        dashboard: the resource.
    """

    def __init__(self, scope: Construct, construct_id: str, *, definition: Definition) -> None:
        """Make the dashboard of a ``definition``, whose dimensions may have tokens as values."""
        super().__init__(scope, construct_id)
        self.dashboard = cloudwatch.CfnDashboard(
            self, "Dashboard", dashboard_name=definition.name, dashboard_body=dashboard_body(definition)
        )

    @property
    def dashboard_name(self) -> str:
        """The dashboard's name."""
        return str(self.dashboard.ref)


class AlarmTopic(Construct):
    """An SNS topic under the artifacts' key that only the environment's alarms may publish to.

    Attributes:
        topic: the topic; others subscribe to it.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, environment: str, key_arn: str, email: Sequence[str]
    ) -> None:
        """Make the topic.

        Args:
            environment: the environment's name, part of its alarms' names.
            key_arn: ARN of the key that encrypts messages; its policy lets these alarms use it.
            email: addresses that are notified; each confirms a message first.
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
        alarms = arn(stack, "cloudwatch", "alarm", f"{environment}-*")
        sns.CfnTopicPolicy(
            self,
            "Policy",
            topics=[self.topic.ref],
            policy_document={
                "Version": "2012-10-17",
                "Statement": [
                    {
                        "Sid": "PublishAlarms",
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


MAXIMUM_CHILDREN = 100
"""Alarms that one composite alarm may name (CloudWatch user guide, "Create a composite alarm")."""


class Alarms(Construct):
    """All alarms of an environment.

    A single alarm has no action: the composite alarm of its severity notifies, so that ten alarms of one cause are one
    message, which names those that fired. While it is in ALARM, further alarms of its severity show in CloudWatch.

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
            environment: the environment's name, part of the composite alarms' names.
            alarms: their definitions.
            runbooks: URL of docs/operations.md.
            topic: ARN of the topic that composite alarms notify, when they fire and when they are over.
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
        """The alarm that notifies; more alarms than one can name are in parts, which have no action."""
        children: dict[str, cloudwatch.CfnAlarm | cloudwatch.CfnCompositeAlarm] = {
            name: self.alarms[name] for name in names
        }
        if len(children) > MAXIMUM_CHILDREN:
            every = list(children.items())
            parts = [dict(every[start : start + MAXIMUM_CHILDREN]) for start in range(0, len(every), MAXIMUM_CHILDREN)]
            children = {}
            for number, part in enumerate(parts, start=1):
                name = f"{environment}-{severity}-{number}"
                text = f"{environment}: part {number} of its {severity} alarms; {environment}-{severity} notifies."
                children[name] = self._any_of(f"{severity}-{number}", name=name, description=text, children=part)
        return self._any_of(
            severity,
            name=f"{environment}-{severity}",
            description=f"{environment}: at least one {severity} alarm is in ALARM; its description links its runbook.",
            children=children,
            topic=topic,
        )

    def _any_of(
        self,
        construct_id: str,
        *,
        name: str,
        description: str,
        children: Mapping[str, cloudwatch.CfnAlarm | cloudwatch.CfnCompositeAlarm],
        topic: str | None = None,
    ) -> cloudwatch.CfnCompositeAlarm:
        actions = None if topic is None else [topic]
        composite = cloudwatch.CfnCompositeAlarm(
            self,
            construct_id,
            alarm_name=name,
            alarm_description=description,
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


class AtMaximumEvents(Construct):
    """A rule for each scaled endpoint whose scaling reaches its maximum, and a queue that keeps the events.

    EventBridge counts the events that a rule delivers (``Invocations`` by ``RuleName``): that is the alarm's metric.
    The event: Application Auto Scaling user guide, "Monitor Application Auto Scaling events using Amazon EventBridge";
    delivery is best effort.
    """

    def __init__(self, scope: Construct, construct_id: str) -> None:
        """Make the queue; ``rule_for`` adds rules."""
        super().__init__(scope, construct_id)
        self._rules: list[str] = []
        self.queue = event_queue(
            self,
            "Queue",
            reason="Nothing reads the queue, so that nothing can fail on a message: it keeps events for people.",
        )

    def rule_for(self, *, endpoint_name: str, variant_name: str) -> str:
        """Add the rule of one variant. Returns its name, a token."""
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
        """Let these rules, and no others, write into the queue; call it once, after the last ``rule_for``."""
        allow_event_rules(self, "QueuePolicy", queue=self.queue, sid="KeepEvents", rules=self._rules)
