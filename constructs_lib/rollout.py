"""How an update of an endpoint moves its calls: the ``DeploymentConfig`` of the Endpoint, and what it must read."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from constructs_lib.execution_role import ExecutionRole
from constructs_lib.permission import allow
from tritonstack.settings import Rollout

Config = sagemaker.CfnEndpoint.DeploymentConfigProperty
Routing = sagemaker.CfnEndpoint.TrafficRoutingConfigProperty
Size = sagemaker.CfnEndpoint.CapacitySizeProperty

ROUTING_TYPES = {"all-at-once": "ALL_AT_ONCE", "canary": "CANARY", "linear": "LINEAR"}


def deployment_config(rollout: Rollout, *, routing_type: str | None = None) -> Config:
    """The blue/green policy, and the alarms that take the update back.

    Args:
        rollout: the settings.
        routing_type: a token to take in place of the settings' kind, where that is known only when it is deployed.

    Source: CloudFormation template reference, AWS::SageMaker::Endpoint DeploymentConfig.
    """
    limit = rollout.maximum_execution_minutes
    return Config(
        blue_green_update_policy=sagemaker.CfnEndpoint.BlueGreenUpdatePolicyProperty(
            traffic_routing_configuration=_routing(rollout, routing_type),
            termination_wait_in_seconds=rollout.termination_wait_seconds,
            maximum_execution_timeout_in_seconds=None if limit is None else limit * 60,
        ),
        auto_rollback_configuration=_alarms(rollout),
    )


def allow_alarms(role: ExecutionRole, rollout: Rollout) -> None:
    """Let SageMaker read the state of the rollback alarms, with the execution role, as the developer guide asks.

    Source: developer guide, "Auto-Rollback Configuration and Monitoring".
    """
    if rollout.rollback_alarms:
        allow(
            role.policy,
            "ReadRollbackAlarms",
            actions=["cloudwatch:DescribeAlarms"],
            resources=[_alarm_arn(role, name) for name in rollout.rollback_alarms],
        )


def _routing(rollout: Rollout, routing_type: str | None) -> Routing:
    size = _size(rollout)
    return Routing(
        type=routing_type or ROUTING_TYPES[rollout.kind],
        # The service wants it for every type, though CloudFormation's schema does not.
        wait_interval_in_seconds=rollout.wait_seconds or 0,
        canary_size=size if rollout.kind == "canary" else None,
        linear_step_size=size if rollout.kind == "linear" else None,
    )


def _size(rollout: Rollout) -> Size | None:
    if rollout.size_instances is not None:
        return Size(type="INSTANCE_COUNT", value=rollout.size_instances)
    if rollout.size_percent is not None:
        return Size(type="CAPACITY_PERCENT", value=rollout.size_percent)
    return None


def _alarms(rollout: Rollout) -> sagemaker.CfnEndpoint.AutoRollbackConfigProperty | None:
    names = rollout.rollback_alarms
    if not names:
        return None
    alarms = [sagemaker.CfnEndpoint.AlarmProperty(alarm_name=name) for name in names]
    return sagemaker.CfnEndpoint.AutoRollbackConfigProperty(alarms=alarms)


def _alarm_arn(scope: Construct, name: str) -> str:
    return cdk.Stack.of(scope).format_arn(
        service="cloudwatch", resource="alarm", resource_name=name, arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME
    )
