"""Scaling of an endpoint: target, policies, and the custom resources that keep them in step with the live variant."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_applicationautoscaling as autoscaling
from constructs import Construct, IDependable

from constructs_lib.acknowledgement import acknowledge_wildcard
from constructs_lib.handler_function import HandlerFunction
from constructs_lib.permission import allow, arn
from tritonstack import aws_names
from tritonstack.config import Scaling

BEFORE_TYPE, SETTLED_TYPE, AFTER_TYPE = "Custom::ScalingBefore", "Custom::ScalingSettled", "Custom::ScalingAfter"
NAMESPACE = "sagemaker"
PREDEFINED = {
    "invocations_per_instance": aws_names.PREDEFINED_INVOCATIONS_PER_INSTANCE,
    "concurrency": aws_names.PREDEFINED_CONCURRENT_REQUESTS,
}
UTILIZATION = {
    "gpu_utilization": aws_names.GPU_UTILIZATION,
    "cpu_utilization": aws_names.CPU_UTILIZATION,
    "gpu_memory": aws_names.GPU_MEMORY_UTILIZATION,
}
"""CloudWatch shows 0 to 100 for each GPU or vCPU and adds them up: two busy ones are 200."""
IDS = {
    "invocations_per_instance": "Invocations",
    "gpu_utilization": "GpuUtilization",
    "cpu_utilization": "CpuUtilization",
    "gpu_memory": "GpuMemory",
    "concurrency": "Concurrency",
}
MADE_BY_NO_STACK = {"Null": {"aws:ResourceTag/aws:cloudformation:stack-id": "true"}}
"""Condition: the resource does not bear the tag that CloudFormation gives to what it makes, or is not there at all."""
OURS = "tritonstack-"
HASH_DIGITS = 8


@dataclass(frozen=True, kw_only=True)
class ScaledVariant:
    """The production variant that is scaled."""

    endpoint_name: str
    variant_name: str
    gpu_count: int  # of one instance
    vcpu: int  # of one instance
    initial_instance_count: int
    routing: Mapping[str, Any]  # the traffic routing configuration of an update; empty where there is none
    config: Mapping[str, str]  # whatever else is in the endpoint's config; a change of it is one of the endpoint


def policies(variant: ScaledVariant, scaling: Scaling) -> dict[str, tuple[str, dict[str, Any]]]:
    """Setting → the policy's name and its target tracking configuration, as the API spells it.

    The name carries the hash of the configuration: CloudFormation finds a policy by its ARN, which is new when the
    function has put it again, so that it must never update one.
    """
    made = {}
    for setting, target in scaling.targets.items():
        configuration = _configuration(setting, target, variant=variant, scaling=scaling)
        digest = hashlib.sha256(json.dumps(configuration, sort_keys=True).encode()).hexdigest()
        made[setting] = (f"{OURS}{setting.replace('_', '-')}-{digest[:HASH_DIGITS]}", configuration)
    return made


def _configuration(setting: str, target: float, *, variant: ScaledVariant, scaling: Scaling) -> dict[str, Any]:
    cooldowns = {
        "ScaleOutCooldown": scaling.scale_out_cooldown_seconds,
        "ScaleInCooldown": scaling.scale_in_cooldown_seconds,
    }
    if setting in PREDEFINED:
        metric = {"PredefinedMetricSpecification": {"PredefinedMetricType": PREDEFINED[setting]}}
        return {"TargetValue": target, **metric, **cooldowns}
    customized = {
        "Namespace": aws_names.INSTANCES,
        "MetricName": UTILIZATION[setting],
        "Dimensions": aws_names.dimension_list(
            aws_names.variant_dimensions(variant.endpoint_name, variant.variant_name)
        ),
        "Statistic": "Average",
        "Unit": "Percent",
    }
    parts = variant.vcpu if setting == "cpu_utilization" else variant.gpu_count
    return {"TargetValue": target * parts, "CustomizedMetricSpecification": customized, **cooldowns}


def schedules(scaling: Scaling) -> list[dict[str, Any]]:
    """The scheduled actions, as the API spells them."""
    return [
        {
            "ScheduledActionName": schedule.name,
            "Schedule": schedule.when,
            "Timezone": schedule.time_zone,
            "ScalableTargetAction": {
                name: value
                for name, value in (("MinCapacity", schedule.minimum), ("MaxCapacity", schedule.maximum))
                if value is not None
            },
        }
        for schedule in scaling.schedules
    ]


class ScalingSteps(Construct):
    """Target and policies as native resources, and three custom resources that keep them in step with the live variant.

    What each of the three does at which event, and why they are needed, stands in ``lambda/scaling/handler.py``. The
    scalable target has no ``RoleARN``: SageMaker's variants are scaled with the service-linked role
    ``…:role/aws-service-role/sagemaker.application-autoscaling.amazonaws.com/``
    ``AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint``, which the first registration makes, and to name it
    would take PassRole (Application Auto Scaling user guide, "Amazon SageMaker AI").

    Attributes:
        before: the custom resource that the endpoint's config waits for.
        instance_count: the number of instances for the endpoint's config to begin with, as a token.
        routing: the traffic routing configuration of the endpoint's update, as a token: an object, so that a size goes
            with its type. The attributes of a custom resource are of any type (AWS CDK, ``CustomResource.getAtt``), and
            an object takes the place of a property (cfn-lint's issue 2537 has it of ``Code`` of a Lambda function).
    """

    def __init__(self, scope: Construct, construct_id: str, *, variant: ScaledVariant, scaling: Scaling) -> None:
        """Make the resources that the endpoint depends on; ``scale`` makes the rest."""
        super().__init__(scope, construct_id)
        self._variant, self._scaling = variant, scaling
        self._policies = policies(variant, scaling)
        wanted = self._wanted()  # within the 4,096 bytes that a function's variables may have (Lambda quotas)
        self.function = HandlerFunction(
            self,
            "Handler",
            handler="scaling",
            description=f"Keeps scaling policies of {variant.endpoint_name} in step with its live production variant",
            variables={"SCALING": wanted},
        )
        self._allow_the_endpoint()
        self._allow_scaling()
        self._allow_alarms()
        self._allow_validation()
        self._properties = {"Scaling": wanted, **variant.config}
        self.before = self._resource("Before", BEFORE_TYPE)
        self._settled = self._resource("Settled", SETTLED_TYPE, after=(self.before,))
        self.instance_count: int | float = cdk.Token.as_number(self.before.get_att("InitialInstanceCount"))
        self.routing: cdk.IResolvable = self.before.get_att("TrafficRouting")

    def scale(self, endpoint: cdk.CfnResource) -> None:
        """Make target and policies of the endpoint, and the custom resource after them."""
        # Settled must be created before the endpoint can fail, to be called again at the end of a rollback.
        endpoint.node.add_dependency(self._settled)
        variant, scaling = self._variant, self._scaling
        target = autoscaling.CfnScalableTarget(
            self,
            "Target",
            service_namespace=NAMESPACE,
            resource_id=f"endpoint/{variant.endpoint_name}/variant/{variant.variant_name}",
            scalable_dimension=aws_names.VARIANT_INSTANCE_COUNT,
            min_capacity=scaling.minimum,
            max_capacity=scaling.maximum,
        )
        if scaling.schedules:
            # The dictionaries that the function gets too, so that both put the same.
            target.add_property_override("ScheduledActions", schedules(scaling))
        target.node.add_dependency(endpoint)
        made: list[IDependable] = [target]
        for setting, (name, configuration) in self._policies.items():
            policy = autoscaling.CfnScalingPolicy(
                self, IDS[setting], policy_name=name, policy_type="TargetTrackingScaling", scaling_target_id=target.ref
            )
            policy.add_property_override("TargetTrackingScalingPolicyConfiguration", configuration)
            made.append(policy)
        self.after = self._resource("After", AFTER_TYPE, after=made)

    def _resource(
        self, construct_id: str, resource_type: str, *, after: tuple[IDependable, ...] | list[IDependable] = ()
    ) -> cdk.CustomResource:
        return self.function.custom_resource(
            self, construct_id, resource_type=resource_type, properties=self._properties, after=after
        )

    def _wanted(self) -> str:
        variant, scaling = self._variant, self._scaling
        document = {
            "endpoint": variant.endpoint_name,
            "variant": variant.variant_name,
            "minimum": scaling.minimum,
            "maximum": scaling.maximum,
            "initial": variant.initial_instance_count,
            "policies": dict(self._policies.values()),
            "schedules": schedules(scaling),
            "routing": dict(variant.routing),
        }
        return json.dumps(document, sort_keys=True, separators=(",", ":"))

    def _allow_the_endpoint(self) -> None:
        endpoint = arn(self, "sagemaker", "endpoint", self._variant.endpoint_name)
        configs = arn(self, "sagemaker", "endpoint-config", "*")
        actions = ["DescribeEndpoint", "UpdateEndpointWeightsAndCapacities", "ListTags", "AddTags"]
        allow(self.function.policy, "SeeAndScaleEndpoint", [f"sagemaker:{action}" for action in actions], [endpoint])
        allow(
            self.function.policy,
            "SeeEndpointConfigs",
            ["sagemaker:DescribeEndpointConfig"],
            [configs],
            wildcard="The config that serves has a name that CloudFormation generates anew at every change, and may be "
            "that of an earlier deployment; it can be read and nothing else.",
        )

    def _allow_validation(self) -> None:
        """Actions that Application Auto Scaling tries with the caller's permissions before it changes anything.

        The six actions are those of the guide's policy for SageMaker endpoints, DescribeEndpointConfig above included
        (Application Auto Scaling user guide, "Identity-based policy examples": all on ``*``). What they are called with
        (the same, "Permissions validation for … API calls on target resources"): PutMetricAlarm and DeleteAlarms with
        no parameters, DescribeAlarms with a maximum of 1; the guide states it for Aurora, where actions of the target
        service are called with empty and invented names. IAM takes a call without a name for ``alarm:`` or ``alarm:*``.
        What SageMaker's two are called with is UNVERIFIED: so every name, but no endpoint of another stack.
        """
        endpoints = arn(self, "sagemaker", "endpoint", "*")
        alarms = arn(self, "cloudwatch", "alarm", "*")
        allow(
            self.function.policy,
            "PassEndpointValidation",
            ["sagemaker:DescribeEndpoint", "sagemaker:UpdateEndpointWeightsAndCapacities"],
            [endpoints],
            conditions=MADE_BY_NO_STACK,
        )
        allow(
            self.function.policy,
            "PassAlarmValidation",
            ["cloudwatch:PutMetricAlarm", "cloudwatch:DescribeAlarms", "cloudwatch:DeleteAlarms"],
            [alarms],
            conditions=MADE_BY_NO_STACK,
        )
        for pattern in (endpoints, alarms):
            acknowledge_wildcard(
                self.function.policy,
                resource=pattern,
                reason="Application Auto Scaling tries these actions with the caller's rights and without a name, or "
                "with one that is not the endpoint's, before it registers a target or puts a policy (its user guide, "
                "Permissions validation for API calls); the condition leaves out what any stack has made.",
            )

    def _allow_scaling(self) -> None:
        targets = arn(self, "application-autoscaling", "scalable-target", "*")
        allow(
            self.function.policy,
            "ScaleVariants",
            [
                "application-autoscaling:RegisterScalableTarget",
                "application-autoscaling:DeregisterScalableTarget",
                "application-autoscaling:PutScalingPolicy",
                "application-autoscaling:DeleteScalingPolicy",
                "application-autoscaling:PutScheduledAction",
            ],
            [targets],
            conditions={
                "StringEquals": {
                    "application-autoscaling:service-namespace": NAMESPACE,
                    "application-autoscaling:scalable-dimension": aws_names.VARIANT_INSTANCE_COUNT,
                }
            },
            wildcard="A scalable target's id is generated when it is registered, and the service has no condition for "
            "the variant; the conditions leave instance counts of SageMaker variants and nothing else.",
        )
        allow(
            self.function.policy,
            "SeeScaling",
            ["application-autoscaling:DescribeScalableTargets", "application-autoscaling:DescribeScalingPolicies"],
            ["*"],
            wildcard="The Describe actions of Application Auto Scaling take no resource in a permission (service "
            "authorization reference), and change nothing.",
        )

    def _allow_alarms(self) -> None:
        """Target tracking creates its alarms with the permissions of the principal that puts the policy."""
        alarms = arn(self, "cloudwatch", "alarm", f"TargetTracking-endpoint/{self._variant.endpoint_name}/variant/*")
        allow(
            self.function.policy,
            "TrackTargets",
            ["cloudwatch:PutMetricAlarm", "cloudwatch:DescribeAlarms", "cloudwatch:DeleteAlarms"],
            [alarms],
            wildcard="Application Auto Scaling gives the alarms of this endpoint's policies names that end in an id of "
            "its own, and the variant before it changes with the instance type.",
        )
