"""Updates of an endpoint: the ``DeploymentConfig`` of the Endpoint, and alarms on the new fleet that roll it back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge
from constructs_lib.permission import allow
from tritonstack import aws_names
from tritonstack.config import Rollout
from tritonstack.config.rollout import ALARM_MINUTES, RollbackAlarms

PERIOD = 60
"""Seconds; SageMaker writes an endpoint's figures once a minute (developer guide, "Monitoring")."""


@dataclass(frozen=True, kw_only=True)
class NewFleet:
    """The fleet that rollback alarms watch.

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
            **aws_names.variant_dimensions(self.endpoint_name, self.variant_name),
            aws_names.ENDPOINT_CONFIG_NAME: self.config_name,
        }
        return [cloudwatch.CfnAlarm.DimensionProperty(name=name, value=value) for name, value in values.items()]


class FleetAlarms(Construct):
    """Alarms on 5XX and on model errors of one fleet.

    Their names carry the config's. So a new config makes new alarms, which begin without a past, before the endpoint is
    updated; and the old ones stay until the update is over, and are what a rollback finds. They go on watching the
    fleet once it serves, without an action: the observability stack's alarms notify.

    Attributes:
        alarms: server errors first.
    """

    def __init__(self, scope: Construct, construct_id: str, *, fleet: NewFleet, settings: RollbackAlarms) -> None:
        """Make the alarms.

        Args:
            fleet: the fleet that is watched.
            settings: thresholds of the alarms.
        """
        super().__init__(scope, construct_id)
        self._fleet = fleet
        self.alarms: list[cloudwatch.CfnAlarm] = []
        self._alarm(
            "ServerErrors",
            metric=aws_names.INVOCATION_5XX_ERRORS,
            what="end with 5XX",
            percent=settings.server_error_percent,
            count=settings.server_errors,
        )
        self._alarm(
            "ModelErrors",
            metric=aws_names.INVOCATION_MODEL_ERRORS,
            what="get an error from the container",
            percent=settings.model_error_percent,
            count=settings.model_errors,
        )

    def let_read(self, role: iam.IRole) -> iam.Policy:
        """Let a role read the state of these alarms and of no other; the endpoint must depend on the policy.

        It is a policy of its own: that of the execution role is there before the Model, and the alarms are there after
        the config, which needs the Model.
        """
        policy = iam.Policy(self, "Access", roles=[role])
        allow(policy, "ReadFleetAlarms", ["cloudwatch:DescribeAlarms"], [alarm.attr_arn for alarm in self.alarms])
        return policy

    def _alarm(self, construct_id: str, *, metric: str, what: str, percent: float, count: int) -> None:
        fleet = self._fleet
        suffix = "server-errors" if construct_id == "ServerErrors" else "model-errors"
        alarm = cloudwatch.CfnAlarm(
            self,
            construct_id,
            alarm_name=cdk.Fn.join("-", [fleet.config_name, suffix]),
            alarm_description=f"{fleet.endpoint_name}: {percent:g} % or more of a minute's requests to the new fleet "
            f"{what} ({metric}), at least {count}: the update is rolled back.",
            comparison_operator="GreaterThanOrEqualToThreshold",
            threshold=percent,
            evaluation_periods=ALARM_MINUTES,
            datapoints_to_alarm=1,
            # A minute without a request has no error: a fleet that gets none is not unhealthy.
            treat_missing_data="notBreaching",
            metrics=[
                self._query("errors", metric),
                self._query("invocations", aws_names.INVOCATIONS),
                cloudwatch.CfnAlarm.MetricDataQueryProperty(
                    id="share",
                    expression=f"IF(errors >= {count}, 100 * errors / invocations, 0)",
                    label="% of requests",
                    return_data=True,
                ),
            ],
        )
        acknowledge(
            alarm,
            finding="NIST.800.53.R5-CloudWatchAlarmAction",
            reason="SageMaker reads its state during an update and rolls the update back; it needs no notification.",
        )
        self.alarms.append(alarm)

    def _query(self, query_id: str, metric: str) -> cloudwatch.CfnAlarm.MetricDataQueryProperty:
        return cloudwatch.CfnAlarm.MetricDataQueryProperty(
            id=query_id,
            return_data=False,
            metric_stat=cloudwatch.CfnAlarm.MetricStatProperty(
                metric=cloudwatch.CfnAlarm.MetricProperty(
                    namespace=aws_names.SAGEMAKER, metric_name=metric, dimensions=self._fleet.dimensions
                ),
                period=PERIOD,
                stat="Sum",
            ),
        )


Config = sagemaker.CfnEndpoint.DeploymentConfigProperty
Routing = sagemaker.CfnEndpoint.TrafficRoutingConfigProperty
Rolling = sagemaker.CfnEndpoint.RollingUpdatePolicyProperty
Size = sagemaker.CfnEndpoint.CapacitySizeProperty

_ROUTING_TYPES = {"all-at-once": "ALL_AT_ONCE", "canary": "CANARY", "linear": "LINEAR", "rolling": "ROLLING"}
"""Kind of a rollout → traffic routing type; ``ROLLING`` is none of SageMaker's, and for the function that scales."""


def traffic_routing(rollout: Rollout) -> dict[str, Any]:
    """The traffic routing configuration as the API spells it, with the size of its own type alone.

    Source: API reference, TrafficRoutingConfig. ``CanarySize`` is for CANARY, ``LinearStepSize`` for LINEAR;
    ``WaitIntervalInSeconds`` is required for every type, though CloudFormation's schema does not require it.
    """
    routing: dict[str, Any] = {"Type": _ROUTING_TYPES[rollout.kind], "WaitIntervalInSeconds": rollout.wait_seconds or 0}
    size = _size(rollout.size_instances, rollout.size_percent)
    member = {"canary": "CanarySize", "linear": "LinearStepSize"}.get(rollout.kind)
    if member is not None and size is not None:
        routing[member] = {"Type": size.type, "Value": size.value}
    return routing


def deployment_config(rollout: Rollout, *, alarms: Sequence[str], routing: cdk.IResolvable | None = None) -> Config:
    """The blue/green or rolling policy, and the alarms that take the update back.

    Args:
        rollout: the settings.
        alarms: names of the alarms.
        routing: a token in place of the traffic routing configuration, where that is known only when it is deployed.

    Source: CloudFormation template reference, AWS::SageMaker::Endpoint DeploymentConfig.
    """
    rollback = None
    if alarms:
        named = [sagemaker.CfnEndpoint.AlarmProperty(alarm_name=name) for name in alarms]
        rollback = sagemaker.CfnEndpoint.AutoRollbackConfigProperty(alarms=named)
    if rollout.kind == "rolling":
        return Config(rolling_update_policy=_rolling(rollout), auto_rollback_configuration=rollback)
    return Config(
        blue_green_update_policy=sagemaker.CfnEndpoint.BlueGreenUpdatePolicyProperty(
            traffic_routing_configuration=routing or _routing(traffic_routing(rollout)),
            termination_wait_in_seconds=rollout.termination_wait_seconds,
        ),
        auto_rollback_configuration=rollback,
    )


def _routing(routing: Mapping[str, Any]) -> Routing:
    def size(member: str) -> Size | None:
        return Size(type=routing[member]["Type"], value=routing[member]["Value"]) if member in routing else None

    return Routing(
        type=routing["Type"],
        wait_interval_in_seconds=routing["WaitIntervalInSeconds"],
        canary_size=size("CanarySize"),
        linear_step_size=size("LinearStepSize"),
    )


def _rolling(rollout: Rollout) -> Rolling:
    size = _size(rollout.size_instances, rollout.size_percent)
    if size is None:
        raise ValueError("a rolling update needs the size of its batches: size_instances or size_percent")
    return Rolling(
        maximum_batch_size=size,
        wait_interval_in_seconds=rollout.wait_seconds or 0,
    )


def _size(instances: int | None, percent: int | None) -> Size | None:
    if instances is not None:
        return Size(type="INSTANCE_COUNT", value=instances)
    if percent is not None:
        return Size(type="CAPACITY_PERCENT", value=percent)
    return None
