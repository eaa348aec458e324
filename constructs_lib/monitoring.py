"""Monitoring of endpoints: log group, captured data, alarms and their topic, events of scaling."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_events as events
from aws_cdk import aws_sagemaker as sagemaker
from aws_cdk import aws_sns as sns
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge, acknowledge_wildcard
from constructs_lib.artifact_bucket import ArtifactBucketReference, grant_group
from constructs_lib.handler_function import HandlerFunction, allow_event_rules, event_queue
from constructs_lib.permission import allow, allow_group, arn, delivery_policy
from constructs_lib.triton_model import ExecutionRole
from tritonstack import aws_names, naming
from tritonstack.cloudformation.limits import allowed
from tritonstack.config.endpoint import DataCapture
from tritonstack.monitoring.alarms import SEVERITIES, Alarm, Severity
from tritonstack.monitoring.graphs import Variant
from tritonstack.monitoring.metric import Series, queries


class EndpointLog(Construct):
    """A custom resource that creates or adopts an endpoint's log group, and sets its retention, key and tags.

    A group that it adopted is never deleted, nor one whose endpoint exists or whose stack is rolled back.

    ``AWS::Logs::LogGroup`` would fail where the group exists: after a deletion that retained it, or where the endpoint
    is older than this resource. See ``docs/decisions/0012-an-endpoints-log-group-is-adopted.md``.

    Attributes:
        resource: the custom resource, which the endpoint depends on.
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
            days: retention in days, one that CloudWatch Logs allows.
            retain: keep the group when the stack is deleted, even one that the stack made.
            artifacts: the bucket whose key encrypts the log; that key's policy names the group.
            tags: key → value; CloudFormation does not tag a group that a function creates.
        """
        super().__init__(scope, construct_id)
        name = naming.endpoint_log_group(endpoint_name)
        self.function = HandlerFunction(
            self,
            "Handler",
            handler="endpoint_log",
            description=f"Creates or adopts the log group of endpoint {endpoint_name}",
        )
        group = arn(self, "logs", "log-group", name)
        names = (
            "AssociateKmsKey", "CreateLogGroup", "DeleteRetentionPolicy", "DisassociateKmsKey", "ListTagsForResource",
            "PutRetentionPolicy", "TagResource", "UntagResource",
        )  # fmt: skip
        actions = [f"logs:{each}" for each in names]
        # Both forms: of these actions CloudWatch Logs checks some against `<group>:*`.
        both = [group, f"{group}:*"]
        policy = self.function.policy
        allow(policy, "SetUp", actions if retain else [*actions, "logs:DeleteLogGroup"], both)
        allow_group(policy, "endpoint-log", endpoint=endpoint_name)
        self.function.allow_seeing_operations()
        acknowledge_wildcard(
            policy,
            resource=f"{group}:*",
            reason="CloudWatch Logs writes a log group's ARN with ':*' at its end; it is this one group and its "
            "streams.",
        )
        self.resource = self.function.custom_resource(
            self,
            "Group",
            resource_type=naming.LOG_GROUP_TYPE,
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
    """Capture requests and responses of an endpoint, and allow its role to write them.

    JSON is kept as text. Triton's binary requests are kept in base64, SageMaker's default for other content types:
    theirs contains the length of its header, so that no list could name it. ``prefix``: key prefix of the captured
    files, with its trailing slash.
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
    grant_group(role.policy, "capture", artifacts=artifacts, prefix=prefix)


def alarm_topic(scope: Construct, *, environment: str, key_arn: str, email: Sequence[str]) -> sns.CfnTopic:
    """An SNS topic that only the environment's alarms may publish to; each address confirms a message first.

    ``key_arn``: of the artifacts' key, which encrypts messages; its policy allows these alarms to use it.
    """
    topic = sns.CfnTopic(
        scope,
        "Topic",
        # A fixed name: the key's policy, in another stack, allows the alarms of this topic alone.
        topic_name=f"{environment}-alarms",
        display_name=f"Alarms of {environment}",
        kms_master_key_id=key_arn,
    )
    alarms = arn(scope, "cloudwatch", "alarm", f"{environment}-*")
    account = cdk.Stack.of(scope).account
    policy = delivery_policy(
        sid="PublishAlarms",
        service="cloudwatch",
        action="sns:Publish",
        resource=topic.ref,
        condition={"StringEquals": {"aws:SourceAccount": account}, "ArnLike": {"aws:SourceArn": alarms}},
        refused="sns:Publish",
    )
    sns.CfnTopicPolicy(scope, "Policy", topics=[topic.ref], policy_document=policy)
    for number, address in enumerate(email):
        sns.CfnSubscription(scope, f"Email{number}", topic_arn=topic.ref, protocol="email", endpoint=address)
    return topic


def rule(children: Iterable[str]) -> str:
    """The rule of a composite alarm that is on while one of these alarms is."""
    return " OR ".join(f'ALARM("{child}")' for child in children)


def fits_one_composite(children: Collection[str]) -> bool:
    """Whether one composite alarm can name all of them, by their number and by the length of its rule."""
    of_rule = allowed("characters of an alarm rule")
    return len(children) <= allowed("children of a composite alarm") and len(rule(children)) <= of_rule


def composite_groups(names: Iterable[str]) -> list[list[str]]:
    """The names in their order, in as few groups as one composite alarm each can name."""
    found: list[list[str]] = [[]]
    for name in names:
        if not fits_one_composite([*found[-1], name]):
            found.append([])
        found[-1].append(name)
    return found


class Alarms(Construct):
    """The alarms of one observability stack.

    A single alarm has no action: the composite alarm of its severity notifies, so that ten alarms of one cause are one
    message, which names those that fired. While it is in ALARM, further alarms of its severity show in CloudWatch.

    With several stacks, each has a composite alarm of its own alarms, and the first stack's composite alarm names
    those. So an alarm and the composite alarm that names it change in one stack, in CloudFormation's order: CloudWatch
    deletes no alarm that a composite alarm names.

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
        topic: str | None,
        part: int = 1,
        further: Mapping[Severity, Sequence[str]] | None = None,
    ) -> None:
        """Make the alarms.

        ``runbooks``: URL of docs/operations.md. ``topic``: ARN of the topic that composite alarms notify, when they
        fire and when they are over; None in a further stack. ``part``: the stack's number. ``further``: composite
        alarms of further stacks, which this stack's name too and which must be there when it is deployed.
        """
        super().__init__(scope, construct_id)
        self._environment, self._part, self._topic = environment, part, topic
        self.alarms = {each.name: self._alarm(each, runbooks=runbooks) for each in alarms}
        self.composites: dict[Severity, cloudwatch.CfnCompositeAlarm] = {}
        for severity in SEVERITIES:
            names = [each.name for each in alarms if each.kind.severity == severity]
            others = [] if further is None else further.get(severity, [])
            if names or others:
                self.composites[severity] = self._composite(severity, names=names, others=others)

    def _alarm(self, alarm: Alarm, *, runbooks: str) -> cloudwatch.CfnAlarm:
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
        )
        if alarm.series.expression is None:
            [metric] = alarm.series.metrics.values()
            made.namespace, made.metric_name, made.statistic = metric.namespace, metric.name, metric.statistic
            made.add_property_override("Dimensions", aws_names.dimension_list(dict(metric.dimensions)))
            made.period = alarm.period
        else:
            set_metrics(made, alarm.series, period=alarm.period)
        acknowledge(
            made,
            finding="NIST.800.53.R5-CloudWatchAlarmAction",
            reason=f"The composite alarm of its severity ({alarm.kind.severity}) has it in its rule, and the action.",
        )
        return made

    def _composite(
        self, severity: Severity, *, names: Sequence[str], others: Sequence[str]
    ) -> cloudwatch.CfnCompositeAlarm:
        """The composite alarm of a severity; with more alarms than it can name, of groups that name them."""
        children: dict[str, cloudwatch.CfnAlarm | cloudwatch.CfnCompositeAlarm] = {
            name: self.alarms[name] for name in names
        }
        whole = naming.composite_alarm(self._environment, severity=severity)
        if not fits_one_composite([*names, *others]):
            children = {}
            for number, group in enumerate(composite_groups(names), start=1):
                name = naming.composite_alarm(self._environment, severity=severity, part=self._part, group=number)
                text = f"{self._environment}: part {number} of its {severity} alarms; {whole} notifies."
                members = {each: self.alarms[each] for each in group}
                children[name] = self._any_of(f"{severity}-{number}", name=name, description=text, children=members)
        any_is_on = f"at least one {severity} alarm is in ALARM"
        if self._part == 1:
            description = f"{self._environment}: {any_is_on}; its description links its runbook."
        else:
            description = f"{self._environment}: {any_is_on} in this stack; {whole} notifies."
        return self._any_of(
            severity,
            name=naming.composite_alarm(self._environment, severity=severity, part=self._part),
            description=description,
            children=children,
            others=others,
            topic=self._topic,
        )

    def _any_of(
        self,
        construct_id: str,
        *,
        name: str,
        description: str,
        children: Mapping[str, cloudwatch.CfnAlarm | cloudwatch.CfnCompositeAlarm],
        others: Sequence[str] = (),
        topic: str | None = None,
    ) -> cloudwatch.CfnCompositeAlarm:
        actions = None if topic is None else [topic]
        composite = cloudwatch.CfnCompositeAlarm(
            self,
            construct_id,
            alarm_name=name,
            alarm_description=description,
            alarm_rule=rule([*children, *others]),
            alarm_actions=actions,
            ok_actions=actions,
        )
        for child in children.values():
            composite.add_resource_dependency(child)
        return composite


def set_metrics(alarm: cloudwatch.CfnAlarm, series: Series, *, period: int) -> None:
    """Have an alarm evaluate metric math. ``period``: in seconds, set on each metric, or on a query that has none."""
    every = queries([series], period=period)
    metrics = [
        {name: value for name, value in each.items() if name != "Period" or not series.metrics} for each in every
    ]
    alarm.add_property_override("Metrics", metrics)


class AtMaximumEvents(Construct):
    """A rule for each scaled variant whose scaling reaches its maximum, and a queue that keeps the events.

    EventBridge counts the events that a rule delivers (``Invocations`` by ``RuleName``): that is the alarm's metric.
    The event: Application Auto Scaling user guide, "Monitor Application Auto Scaling events using Amazon EventBridge";
    delivery is best effort.

    Attributes:
        names: endpoint's name → its variant's → name of the rule, a token.
    """

    def __init__(self, scope: Construct, construct_id: str, *, variants: Sequence[Variant]) -> None:
        """Make queue and rules."""
        super().__init__(scope, construct_id)
        queue = event_queue(
            self,
            "Queue",
            reason="Nothing reads the queue, so that nothing can fail on a message: it keeps events for people.",
        )
        rules = [
            events.CfnRule(
                self,
                f"Rule-{each.subject}",
                description=f"Scaling of {each.subject} has reached its maximum",
                event_pattern={
                    "source": ["aws.application-autoscaling"],
                    "detail-type": ["Application Auto Scaling Scaling Activity State Change"],
                    "detail": {
                        "serviceNamespace": ["sagemaker"],
                        "scalableDimension": [aws_names.VARIANT_INSTANCE_COUNT],
                        "resourceId": [
                            naming.scalable_variant(
                                endpoint_name=each.endpoint_name, variant=each.settings.variant_name
                            )
                        ],
                        "scaledToMax": [True],
                    },
                },
                targets=[events.CfnRule.TargetProperty(id="queue", arn=queue.attr_arn)],
            )
            for each in variants
        ]
        arns = [rule.attr_arn for rule in rules]
        allow_event_rules(self, "QueuePolicy", queue=queue, sid="KeepEvents", rules=arns)
        self.names: dict[str, dict[str, str]] = {}
        for each, rule in zip(variants, rules, strict=True):
            self.names.setdefault(each.endpoint_name, {})[each.settings.variant_name] = rule.ref
