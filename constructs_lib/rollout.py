"""Updates of an endpoint: the ``DeploymentConfig`` of the Endpoint, and alarms on the new fleet that roll it back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge
from constructs_lib.monitoring import set_metrics
from constructs_lib.permission import allow_group
from tritonstack import aws_names
from tritonstack.config import Rollout
from tritonstack.config.rollout import ALARM_MINUTES, RollbackAlarms
from tritonstack.monitoring.alarms import error_share

if TYPE_CHECKING:
    from constructs_lib.triton_model import ExecutionRole

PERIOD = 60
"""Seconds; SageMaker writes an endpoint's figures once a minute (developer guide, "Monitoring")."""


class FleetAlarms(Construct):
    """Alarms on 5XX and on model errors of one fleet.

    Their names carry the config's name. So a new config makes new alarms, without history, before the endpoint is
    updated, and the old ones stay for a rollback until the update is over. After the update they have no effect: the
    alarms of the observability stack notify.

    Attributes:
        alarms: by variant, server errors first.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint_name: str,
        variant_names: Sequence[str],
        config_name: str,
        settings: RollbackAlarms,
    ) -> None:
        """Make the alarms, of each variant its own: errors of a variant with few requests would not show in a sum.

        ``config_name``, of the EndpointConfig, is a token: CloudFormation generates it. It is the third dimension of a
        fleet's own metrics (developer guide, "Auto-Rollback Configuration and Monitoring").
        """
        super().__init__(scope, construct_id)
        watched = (
            (
                "ServerErrors", "server-errors", aws_names.INVOCATION_5XX_ERRORS, "end with 5XX",
                settings.server_error_percent, settings.server_errors,
            ),
            (
                "ModelErrors", "model-errors", aws_names.INVOCATION_MODEL_ERRORS, "get an error from the container",
                settings.model_error_percent, settings.model_errors,
            ),
        )  # fmt: skip
        self.alarms: list[cloudwatch.CfnAlarm] = []
        for variant, (alarm_id, suffix, errors, what, percent, count) in product(variant_names, watched):
            of_variant = aws_names.variant_dimensions(endpoint_name, variant)
            dimensions = (*of_variant.items(), (aws_names.ENDPOINT_CONFIG_NAME, config_name))
            alone = len(variant_names) == 1
            fleet = "the new fleet" if alone else f"the new fleet of {variant}"
            alarm = cloudwatch.CfnAlarm(
                self,
                alarm_id if alone else f"{alarm_id}-{variant}",
                alarm_name=cdk.Fn.join("-", [config_name, *([] if alone else [variant]), suffix]),
                alarm_description=f"{endpoint_name}: {percent:g} % or more of a minute's requests to {fleet} "
                f"{what} ({errors}), at least {count}: the update is rolled back.",
                comparison_operator="GreaterThanOrEqualToThreshold",
                threshold=percent,
                evaluation_periods=ALARM_MINUTES,
                datapoints_to_alarm=1,
                # A minute without a request has no error: a fleet that gets none is not unhealthy.
                treat_missing_data="notBreaching",
            )
            set_metrics(alarm, error_share(errors, dimensions, count=count), period=PERIOD)
            acknowledge(
                alarm,
                finding="NIST.800.53.R5-CloudWatchAlarmAction",
                reason="SageMaker reads its state during an update and rolls the update back; it needs no "
                "notification.",
            )
            self.alarms.append(alarm)

    def grant_read(self, role: ExecutionRole) -> iam.Policy:
        """Grant a role reading the state of these alarms alone; the endpoint must depend on the policy.

        It is a policy of its own: the execution role's policy is made before the Model, and the alarms after the
        config, which needs the Model. A role whose policy is not written here has it among ``required_policy``.
        """
        policy = iam.Policy(self, "Access") if role.written else role.policy
        role.role.attach_inline_policy(policy)
        allow_group(policy, "alarms", alarms=[alarm.attr_arn for alarm in self.alarms])
        return policy


_ROUTING_TYPES = {"all-at-once": "ALL_AT_ONCE", "canary": "CANARY", "linear": "LINEAR", "rolling": "ROLLING"}
"""Kind of a rollout → traffic routing type; ``ROLLING`` is none of SageMaker's, and for the function that scales."""


def traffic_routing(rollout: Rollout) -> dict[str, Any]:
    """The traffic routing configuration as the API spells it, with the size of its own type alone.

    Source: API reference, TrafficRoutingConfig. ``CanarySize`` is for CANARY, ``LinearStepSize`` for LINEAR;
    ``WaitIntervalInSeconds`` is required for every type, though CloudFormation's schema does not require it.
    """
    routing: dict[str, Any] = {"Type": _ROUTING_TYPES[rollout.kind], "WaitIntervalInSeconds": rollout.wait_seconds or 0}
    member = {"canary": "CanarySize", "linear": "LinearStepSize"}.get(rollout.kind)
    if member is not None and (size := _size(rollout)) is not None:
        routing[member] = size
    return routing


def deployment_config(
    rollout: Rollout, *, alarms: Sequence[str], timeout_seconds: int, routing: cdk.IResolvable | None = None
) -> dict[str, Any]:
    """The blue/green or rolling policy, and the alarms that roll the update back.

    ``alarms``: their names. ``timeout_seconds``: the longest that the update may take. ``routing``: a token in place of
    the traffic routing configuration, where that is known only when it is deployed.

    Source: CloudFormation template reference, AWS::SageMaker::Endpoint DeploymentConfig.
    """
    limit = {"MaximumExecutionTimeoutInSeconds": timeout_seconds}
    rollback = {"AutoRollbackConfiguration": {"Alarms": [{"AlarmName": name} for name in alarms]}} if alarms else {}
    if rollout.kind == "rolling":
        if (size := _size(rollout)) is None:
            raise ValueError("a rolling update needs the size of its batches: size_instances or size_percent")
        batches = {"MaximumBatchSize": size, "WaitIntervalInSeconds": rollout.wait_seconds or 0}
        return {"RollingUpdatePolicy": {**batches, **limit}, **rollback}
    shift = {
        "TrafficRoutingConfiguration": routing or traffic_routing(rollout),
        "TerminationWaitInSeconds": rollout.termination_wait_seconds,
    }
    return {"BlueGreenUpdatePolicy": {**shift, **limit}, **rollback}


def _size(rollout: Rollout) -> dict[str, Any] | None:
    """A CapacitySize, as the API spells it."""
    if rollout.size_instances is not None:
        return {"Type": "INSTANCE_COUNT", "Value": rollout.size_instances}
    return None if rollout.size_percent is None else {"Type": "CAPACITY_PERCENT", "Value": rollout.size_percent}
