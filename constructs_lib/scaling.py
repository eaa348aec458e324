"""Scaling of an endpoint: targets, policies, custom resources that keep them in step with the live variants."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_applicationautoscaling as autoscaling
from constructs import Construct, IDependable

from constructs_lib.handler_function import HandlerFunction
from constructs_lib.permission import allow_group
from tritonstack import aws_names, naming
from tritonstack.config import Scaling
from tritonstack.errors import InputError, Problem

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
OURS = "tritonstack-"
HASH_DIGITS = 8


@dataclass(frozen=True, kw_only=True)
class ScaledVariant:
    """A production variant that is scaled."""

    endpoint_name: str
    variant_name: str
    gpu_count: int  # of one instance
    vcpu: int  # of one instance
    initial_instance_count: int
    scaling: Scaling


def policies(variant: ScaledVariant) -> dict[str, tuple[str, dict[str, Any]]]:
    """Setting → the policy's name and its target tracking configuration, as the API spells it.

    The name carries the hash of the configuration, so that CloudFormation never updates a policy: it finds one by its
    ARN, and the function, which puts policies again, changes the ARN.
    """
    made = {}
    for setting, target in variant.scaling.targets.items():
        configuration = _configuration(setting, target, variant=variant)
        digest = hashlib.sha256(json.dumps(configuration, sort_keys=True).encode()).hexdigest()
        made[setting] = (f"{OURS}{setting.replace('_', '-')}-{digest[:HASH_DIGITS]}", configuration)
    return made


def _configuration(setting: str, target: float, *, variant: ScaledVariant) -> dict[str, Any]:
    cooldowns = {
        "ScaleOutCooldown": variant.scaling.scale_out_cooldown_seconds,
        "ScaleInCooldown": variant.scaling.scale_in_cooldown_seconds,
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


VARIABLES_BYTES = 4096
"""Of all variables of a function (Lambda quotas), of which the document is the only one."""


def _wanted(variants: Sequence[ScaledVariant], routing: Mapping[str, Any]) -> str:
    """The scaling that the function keeps, as JSON: the first variant's, with other variants' in ``beside``."""
    first, *beside = (
        {
            "variant": each.variant_name,
            "minimum": each.scaling.minimum,
            "maximum": each.scaling.maximum,
            "initial": each.initial_instance_count,
            "policies": dict(policies(each).values()),
            "schedules": schedules(each.scaling),
        }
        for each in variants
    )
    document = {"endpoint": variants[0].endpoint_name, **first, "routing": dict(routing)}
    document |= {"beside": beside} if beside else {}
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    if (size := len(text) + len("SCALING")) > VARIABLES_BYTES:
        found = f"schedules and targets of {', '.join(each.variant_name for each in variants)}: {size} bytes"
        allowed = f"{VARIABLES_BYTES}, the bytes of a function's variables, in which they stand"
        raise InputError([Problem(field="scaling", found=found, allowed=allowed, advice="Set fewer schedules.")])
    return text


class ScalingSteps(Construct):
    """Targets and policies as native resources, and three custom resources that keep them in step with live variants.

    What each of the three does at which event, and why: ``lambda/scaling/handler.py``. The scalable target has no
    ``RoleARN``: SageMaker's variants are scaled with the service-linked role
    ``…:role/aws-service-role/sagemaker.application-autoscaling.amazonaws.com/``
    ``AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint``, which the first registration creates; naming it
    would need PassRole (Application Auto Scaling user guide, "Amazon SageMaker AI").

    Attributes:
        before: the custom resource that the endpoint's config depends on.
        instance_counts: of each variant, the instances for the endpoint's config to begin with, as a token.
        routing: the traffic routing configuration of the endpoint's update, as a token: an object, so that a size goes
            with its type. The attributes of a custom resource are of any type (AWS CDK, ``CustomResource.getAtt``), and
            an object takes the place of a property (cfn-lint's issue 2537 has it of ``Code`` of a Lambda function).
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        variants: Sequence[ScaledVariant],
        routing: Mapping[str, Any],
        config: Mapping[str, str],
    ) -> None:
        """Make the resources that the endpoint depends on; ``scale`` makes the rest.

        ``routing``: the traffic routing configuration of an update; empty where there is none. ``config``: whatever
        else is in the endpoint's config; a change of it is one of the endpoint.

        Raises InputError where the variants' schedules are too long for a function's variables.
        """
        super().__init__(scope, construct_id)
        self._variants, self._endpoint = variants, variants[0].endpoint_name
        wanted = _wanted(variants, routing)
        self.function = HandlerFunction(
            self,
            "Handler",
            handler="scaling",
            description=f"Keeps scaling policies of {self._endpoint} in step with its live production variant",
            variables={"SCALING": wanted},
        )
        self.function.allow_seeing_operations()
        allow_group(
            self.function.policy,
            "scaling",
            endpoint=self._endpoint,
            variants=naming.scalable_variant(endpoint_name=self._endpoint, variant="*"),
        )
        self._properties = {"Scaling": wanted, **config}
        self.before = self._resource("Before", naming.SCALING_BEFORE_TYPE)
        self._settled = self._resource("Settled", naming.SCALING_SETTLED_TYPE, after=(self.before,))
        names = [f"InitialInstanceCount{number or ''}" for number in range(len(variants))]
        self.instance_counts: list[int | float] = [cdk.Token.as_number(self.before.get_att(name)) for name in names]
        self.routing: cdk.IResolvable = self.before.get_att("TrafficRouting")

    def scale(self, endpoint: cdk.CfnResource) -> None:
        """Make targets and policies of the endpoint, and the custom resource after them."""
        # Settled must be created before the endpoint can fail, to be called again at the end of a rollback.
        endpoint.node.add_dependency(self._settled)
        made: list[IDependable] = []
        for number, variant in enumerate(self._variants):
            scope = Construct(self, f"Variant{number}") if number else self
            target = autoscaling.CfnScalableTarget(
                scope,
                "Target",
                service_namespace=NAMESPACE,
                resource_id=naming.scalable_variant(endpoint_name=variant.endpoint_name, variant=variant.variant_name),
                scalable_dimension=aws_names.VARIANT_INSTANCE_COUNT,
                min_capacity=variant.scaling.minimum,
                max_capacity=variant.scaling.maximum,
            )
            if variant.scaling.schedules:
                # The dictionaries that the function gets too, so that both put the same.
                target.add_property_override("ScheduledActions", schedules(variant.scaling))
            target.node.add_dependency(endpoint)
            made.append(target)
            for setting, (name, configuration) in policies(variant).items():
                policy = autoscaling.CfnScalingPolicy(
                    scope,
                    IDS[setting],
                    policy_name=name,
                    policy_type="TargetTrackingScaling",
                    scaling_target_id=target.ref,
                )
                policy.add_property_override("TargetTrackingScalingPolicyConfiguration", configuration)
                made.append(policy)
        self.after = self._resource("After", naming.SCALING_AFTER_TYPE, after=made)

    def _resource(
        self, construct_id: str, resource_type: str, *, after: tuple[IDependable, ...] | list[IDependable] = ()
    ) -> cdk.CustomResource:
        return self.function.custom_resource(
            self, construct_id, resource_type=resource_type, properties=self._properties, after=after
        )
