"""CloudWatch alarms from their definitions, one composite alarm for each severity, and the topic that it tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge
from tritonstack.observability.alarm import SEVERITIES, Alarm, Severity
from tritonstack.observability.metric import Metric

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
                says = f"{environment}: part {number} of its {severity} alarms; {environment}-{severity} tells of it."
                children[name] = self._any_of(f"{severity}-{number}", name=name, says=says, children=part)
        return self._any_of(
            severity,
            name=f"{environment}-{severity}",
            says=f"{environment}: at least one {severity} alarm is on; each says where its runbook is.",
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
