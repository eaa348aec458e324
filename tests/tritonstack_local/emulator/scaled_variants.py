"""Scalable targets as tests register them, and load as they write it."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.tritonstack_local.emulator.cloudwatch.watching import Watching
from tests.tritonstack_local.emulator.running import Emulator, make_config

DIMENSION = "sagemaker:variant:DesiredInstanceCount"
INVOCATIONS = {
    "TargetValue": 600.0,
    "PredefinedMetricSpecification": {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"},
}


def target(name: str, variant: str = "main") -> dict[str, str]:
    """The members that name a scalable target."""
    return {
        "ServiceNamespace": "sagemaker",
        "ResourceId": f"endpoint/{name}/variant/{variant}",
        "ScalableDimension": DIMENSION,
    }


def make_scaled(aws: Emulator, name: str) -> Any:
    """An endpoint in service whose variant ``main`` is a target; the client of Application Auto Scaling."""
    make_config(aws, name)
    aws.client("sagemaker").create_endpoint(EndpointName=name, EndpointConfigName=name)
    scaling = aws.client("application-autoscaling")
    scaling.register_scalable_target(**target(name), MinCapacity=1, MaxCapacity=4)
    return scaling


def refused(call: Any, **request: Any) -> str:
    """The message of a call that must be refused."""
    with pytest.raises(ClientError) as caught:
        call(**request)
    return str(caught.value)


class Tracked(Watching):
    """An endpoint of 1 to 4 instances with a policy: 600 calls a minute for each of them."""

    def __init__(self, aws: Emulator, name: str, **configuration: Any) -> None:
        super().__init__(aws, name)
        self.scaling = make_scaled(aws, name)
        self.sagemaker = aws.client("sagemaker")
        self.of = {"EndpointName": name, "VariantName": "main"}
        self.put_policy(**configuration)

    def put_policy(self, **configuration: Any) -> list[str]:
        """Put the policy; the names of its alarms."""
        made = self.scaling.put_scaling_policy(
            **target(self.name),
            PolicyName="calls",
            PolicyType="TargetTrackingScaling",
            TargetTrackingScalingPolicyConfiguration={**INVOCATIONS, "ScaleOutCooldown": 120, **configuration},
        )
        return [alarm["AlarmName"] for alarm in made["Alarms"]]

    def invoked(self, each: int, *, minutes: int = 1) -> int:
        """Instances after some minutes with so many requests a minute to each instance."""
        for _ in range(minutes):
            datum = {
                "MetricName": "InvocationsPerInstance",
                "Timestamp": self.shifted_start + 1,
                "Dimensions": [{"Name": key, "Value": value} for key, value in self.of.items()],
                "Value": float(each),
            }
            self.cloudwatch.put_metric_data(Namespace="AWS/SageMaker", MetricData=[datum])
            self.pass_minutes()
        return self.instances

    def activities(self) -> list[tuple[str, str]]:
        """What was set, and why, the oldest first."""
        of = {"ServiceNamespace": "sagemaker", "ResourceId": target(self.name)["ResourceId"]}
        found = self.scaling.describe_scaling_activities(**of)["ScalingActivities"]
        return [(each["Description"], each["Cause"]) for each in reversed(found)]

    @property
    def instances(self) -> int:
        [variant] = self.sagemaker.describe_endpoint(EndpointName=self.name)["ProductionVariants"]
        return int(variant["DesiredInstanceCount"])

    @property
    def alarms(self) -> dict[str, dict[str, Any]]:
        """The policy's alarms by their kind."""
        prefix = f"TargetTracking-{target(self.name)['ResourceId']}-"
        found = self.cloudwatch.describe_alarms(AlarmNamePrefix=prefix)["MetricAlarms"]
        return {each["AlarmName"].removeprefix(prefix).partition("-")[0]: each for each in found}
