"""How an update of an endpoint moves its calls: the ``DeploymentConfig`` of the Endpoint, and what it must read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from constructs_lib.execution_role import ExecutionRole
from constructs_lib.permission import allow
from tritonstack.settings import Rollout

Config = sagemaker.CfnEndpoint.DeploymentConfigProperty
Routing = sagemaker.CfnEndpoint.TrafficRoutingConfigProperty
Rolling = sagemaker.CfnEndpoint.RollingUpdatePolicyProperty
Size = sagemaker.CfnEndpoint.CapacitySizeProperty

_ROUTING_TYPES = {"all-at-once": "ALL_AT_ONCE", "canary": "CANARY", "linear": "LINEAR", "rolling": "ROLLING"}
"""Kind of a rollout → traffic routing type; ``ROLLING`` is none of SageMaker's, and for the function that scales."""


def traffic_routing(rollout: Rollout) -> dict[str, Any]:
    """The traffic routing configuration as the API spells it, with the size of its own type alone.

    Source: API reference, TrafficRoutingConfig. ``CanarySize`` is for CANARY, ``LinearStepSize`` for LINEAR;
    ``WaitIntervalInSeconds`` is required for every type, though CloudFormation's schema does not say so.
    """
    routing: dict[str, Any] = {
        "Type": _ROUTING_TYPES[rollout.kind],
        "WaitIntervalInSeconds": rollout.wait_seconds or 0,
    }
    size = _size(rollout.size_instances, rollout.size_percent)
    member = {"canary": "CanarySize", "linear": "LinearStepSize"}.get(rollout.kind)
    if member is not None and size is not None:
        routing[member] = {"Type": size.type, "Value": size.value}
    return routing


def deployment_config(
    rollout: Rollout, *, own_alarms: Sequence[str] = (), routing: cdk.IResolvable | None = None
) -> Config:
    """The blue/green or rolling policy, and the alarms that take the update back.

    Args:
        rollout: the settings.
        own_alarms: names of alarms besides those that the settings name.
        routing: a token in place of the traffic routing configuration, where that is known only when it is deployed.

    Source: CloudFormation template reference, AWS::SageMaker::Endpoint DeploymentConfig.
    """
    limit = None if rollout.maximum_execution_minutes is None else rollout.maximum_execution_minutes * 60
    alarms = _alarms([*own_alarms, *rollout.rollback_alarms])
    if rollout.kind == "rolling":
        return Config(rolling_update_policy=_rolling(rollout, limit), auto_rollback_configuration=alarms)
    return Config(
        blue_green_update_policy=sagemaker.CfnEndpoint.BlueGreenUpdatePolicyProperty(
            traffic_routing_configuration=routing or _routing(traffic_routing(rollout)),
            termination_wait_in_seconds=rollout.termination_wait_seconds,
            maximum_execution_timeout_in_seconds=limit,
        ),
        auto_rollback_configuration=alarms,
    )


def allow_alarms(role: ExecutionRole, rollout: Rollout) -> None:
    """Let SageMaker read the state of the alarms that the settings name, with the execution role.

    Source: developer guide, "Auto-Rollback Configuration and Monitoring", which asks for it.
    """
    if rollout.rollback_alarms:
        allow(
            role.policy,
            "ReadRollbackAlarms",
            actions=["cloudwatch:DescribeAlarms"],
            resources=[_alarm_arn(role, name) for name in rollout.rollback_alarms],
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


def _rolling(rollout: Rollout, limit: int | None) -> Rolling:
    size = _size(rollout.size_instances, rollout.size_percent)
    if size is None:
        raise ValueError("a rolling update needs the size of its batches: size_instances or size_percent")
    return Rolling(
        maximum_batch_size=size,
        wait_interval_in_seconds=rollout.wait_seconds or 0,
        maximum_execution_timeout_in_seconds=limit,
        rollback_maximum_batch_size=_size(rollout.rollback_size_instances, rollout.rollback_size_percent),
    )


def _size(instances: int | None, percent: int | None) -> Size | None:
    if instances is not None:
        return Size(type="INSTANCE_COUNT", value=instances)
    if percent is not None:
        return Size(type="CAPACITY_PERCENT", value=percent)
    return None


def _alarms(names: Sequence[str]) -> sagemaker.CfnEndpoint.AutoRollbackConfigProperty | None:
    if not names:
        return None
    alarms = [sagemaker.CfnEndpoint.AlarmProperty(alarm_name=name) for name in names]
    return sagemaker.CfnEndpoint.AutoRollbackConfigProperty(alarms=alarms)


def _alarm_arn(scope: Construct, name: str) -> str:
    return cdk.Stack.of(scope).format_arn(
        service="cloudwatch", resource="alarm", resource_name=name, arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME
    )
