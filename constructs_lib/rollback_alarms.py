"""The alarms that take an update of an endpoint back: on the errors of the new fleet, and of no other."""

from __future__ import annotations

from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge
from constructs_lib.permission import allow
from tritonstack.settings.rollout import ALARM_MINUTES, RollbackAlarms

NAMESPACE = "AWS/SageMaker"
PERIOD = 60
"""Seconds; SageMaker writes an endpoint's figures once a minute (developer guide, "Monitoring")."""


@dataclass(frozen=True, kw_only=True)
class NewFleet:
    """Whose calls are watched.

    Attributes:
        endpoint_name: the endpoint's name.
        variant_name: its production variant's.
        config_name: the name of the EndpointConfig, as a token: CloudFormation generates it.
    """

    endpoint_name: str
    variant_name: str
    config_name: str

    @property
    def dimensions(self) -> list[cloudwatch.CfnAlarm.DimensionProperty]:
        """The metrics of a fleet alone have its config's name as their third dimension.

        Source: developer guide, "Auto-Rollback Configuration and Monitoring", the alarm on the new fleet.
        """
        values = {
            "EndpointName": self.endpoint_name,
            "VariantName": self.variant_name,
            "EndpointConfigName": self.config_name,
        }
        return [cloudwatch.CfnAlarm.DimensionProperty(name=name, value=value) for name, value in values.items()]


class FleetAlarms(Construct):
    """Alarms on 5XX and on model errors of one fleet.

    Their names carry the config's. So a new config makes new alarms, which begin without a past, before the endpoint is
    updated; and the old ones stay until the update is over, and are what a rollback finds. They go on watching the
    fleet once it serves, and tell nobody: the observability stack's alarms do that.

    Attributes:
        alarms: server errors first; without those whose threshold is null.
    """

    def __init__(self, scope: Construct, construct_id: str, *, fleet: NewFleet, settings: RollbackAlarms) -> None:
        """Make the alarms.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            fleet: whose calls are watched.
            settings: from where on it is bad.
        """
        super().__init__(scope, construct_id)
        self._fleet = fleet
        self.alarms: list[cloudwatch.CfnAlarm] = []
        if settings.server_error_percent is not None:
            self._alarm(
                "ServerErrors",
                metric="Invocation5XXErrors",
                says="end with 5XX",
                percent=settings.server_error_percent,
                count=settings.server_errors,
            )
        if settings.model_error_percent is not None:
            self._alarm(
                "ModelErrors",
                metric="InvocationModelErrors",
                says="are answered with an error by the container",
                percent=settings.model_error_percent,
                count=settings.model_errors,
            )

    def let_read(self, role: iam.IRole) -> iam.Policy:
        """Let a role read the state of these alarms and of no other; the endpoint must depend on the policy.

        It is a policy of its own: that of the execution role is there before the Model, and the alarms are there after
        the config, which needs the Model.
        """
        policy = iam.Policy(self, "Access", roles=[role])
        allow(
            policy,
            "ReadFleetAlarms",
            actions=["cloudwatch:DescribeAlarms"],
            resources=[alarm.attr_arn for alarm in self.alarms],
        )
        return policy

    def _alarm(self, construct_id: str, *, metric: str, says: str, percent: float, count: int) -> None:
        fleet = self._fleet
        suffix = "server-errors" if construct_id == "ServerErrors" else "model-errors"
        alarm = cloudwatch.CfnAlarm(
            self,
            construct_id,
            alarm_name=cdk.Fn.join("-", [fleet.config_name, suffix]),
            alarm_description=f"{fleet.endpoint_name}: {percent:g} % or more of a minute's calls to the new fleet "
            f"{says}, {count} at least: the update is taken back.",
            comparison_operator="GreaterThanOrEqualToThreshold",
            threshold=percent,
            evaluation_periods=ALARM_MINUTES,
            datapoints_to_alarm=1,
            # A minute without a call has no error. A fleet that gets none is not bad, it is not asked.
            treat_missing_data="notBreaching",
            metrics=[
                self._query("errors", metric),
                self._query("invocations", "Invocations"),
                cloudwatch.CfnAlarm.MetricDataQueryProperty(
                    id="share",
                    expression=f"IF(errors >= {count}, 100 * errors / invocations, 0)",
                    label="% of calls",
                    return_data=True,
                ),
            ],
        )
        acknowledge(
            alarm,
            finding="NIST.800.53.R5-CloudWatchAlarmAction",
            reason="SageMaker reads its state during an update and takes the update back; there is nobody to tell.",
        )
        self.alarms.append(alarm)

    def _query(self, query_id: str, metric: str) -> cloudwatch.CfnAlarm.MetricDataQueryProperty:
        return cloudwatch.CfnAlarm.MetricDataQueryProperty(
            id=query_id,
            return_data=False,
            metric_stat=cloudwatch.CfnAlarm.MetricStatProperty(
                metric=cloudwatch.CfnAlarm.MetricProperty(
                    namespace=NAMESPACE, metric_name=metric, dimensions=self._fleet.dimensions
                ),
                period=PERIOD,
                stat="Sum",
            ),
        )
