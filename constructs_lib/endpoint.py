"""A SageMaker endpoint with one production variant."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from constructs_lib.callable_endpoint import CallableEndpoint
from constructs_lib.rollout import allow_alarms, deployment_config, traffic_routing
from constructs_lib.triton_model import TritonModel
from tritonstack import naming
from tritonstack.catalogue import load_catalogue
from tritonstack.config import EndpointMetrics, Rollout, Scaling

if TYPE_CHECKING:
    from aws_cdk import aws_iam as iam

    from constructs_lib.rollout import FleetAlarms
    from constructs_lib.scaling import ScalingSteps

NOT_RETAINED = ("DesiredWeight", "DataCaptureConfig")
"""What an update of a scaled endpoint takes from the new config; the number of instances stays as it is."""


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """The instances of a production variant.

    Attributes:
        instance_type: for example ``ml.g4dn.xlarge``.
        initial_instance_count: at least 1.
        host_ami: ``InferenceAmiVersion``; None leaves SageMaker's default.
        routing: ``LEAST_OUTSTANDING_REQUESTS`` or ``RANDOM``; None leaves SageMaker's default.
        volume_size_gb: None where the type brings its own storage, which refuses a size.
        volume_key_arn: the KMS key of the volume; it does not cover instance storage.
    """

    instance_type: str
    initial_instance_count: int
    host_ami: str | None = None
    routing: str | None = None
    volume_size_gb: int | None = None
    volume_key_arn: str | None = None


@dataclass(frozen=True, kw_only=True)
class Timeouts:
    """How long a new instance may take, 60 to 3600 seconds each.

    Attributes:
        model_download_seconds: to download and unpack a single model.
        container_startup_seconds: until the container answers ``/ping``.
    """

    model_download_seconds: int
    container_startup_seconds: int


class Endpoint(CallableEndpoint):
    """The endpoint and its configuration.

    The configuration's name is generated, for it is replaced at every change; the endpoint's is fixed, for callers know
    it. The variant's name carries the instance type, so that a change of type is a new variant.

    Attributes:
        config: the EndpointConfig.
        endpoint: the Endpoint.
        alarms: the alarms on its new fleet; None where there are none of our own.
        scaling: what scales it; None where its number of instances is fixed.
        endpoint_name: its name, as given.
        variant_name: the production variant's.
        model: the Model that it runs.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint_name: str,
        model: TritonModel,
        fleet: Fleet,
        timeouts: Timeouts,
        rollout: Rollout | None = None,
        scaling: Scaling | None = None,
        metrics: EndpointMetrics | None = None,
        permissions_boundary_arn: str | None = None,
        endpoint_tags: Mapping[str, str] | None = None,
        models: Collection[str] | None = None,
        release_records: str | None = None,
    ) -> None:
        """Make the endpoint.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            endpoint_name: unique in the account and region, at most 63 characters.
            model: what it runs.
            fleet: what it runs on.
            timeouts: how long a start may take.
            rollout: how an update moves the calls to the new fleet; None: all at once, and nothing is watched.
            scaling: how the number of instances follows the load; None: it is the fleet's initial one.
            metrics: what SageMaker publishes of the endpoint. Default: None, SageMaker's default.
            permissions_boundary_arn: a managed policy that bounds the role of the function that scaling needs.
                Default: None.
            endpoint_tags: tags on the endpoint alone, besides those of the stack. Default: None, no others.
            models: the models that grants may name. Default: None, any.
            release_records: the SSM path of its release records, which grants let callers read. Default: None, it has
                none.
        """
        super().__init__(
            scope,
            construct_id,
            endpoint_name=endpoint_name,
            variant_name=naming.variant_name(instance_type=fleet.instance_type),
            multi_model=model.multi_model,
            models=models,
            release_records=release_records,
        )
        self.model = model
        config = f"{fleet} {timeouts}" + ("" if metrics is None else f" {metrics!r}")
        self.scaling = (
            None if scaling is None else self._scaling(scaling, fleet, config, rollout, permissions_boundary_arn)
        )
        count = fleet.initial_instance_count if self.scaling is None else self.scaling.instance_count
        self.config = sagemaker.CfnEndpointConfig(
            self,
            "Config",
            kms_key_id=fleet.volume_key_arn,
            metrics_config=None if metrics is None else _metrics(metrics),
            production_variants=[_variant(self.variant_name, count, model=model, fleet=fleet, timeouts=timeouts)],
        )
        self.alarms = None if rollout is None else self._alarms(rollout)
        self.endpoint = sagemaker.CfnEndpoint(
            self,
            "Endpoint",
            endpoint_name=endpoint_name,
            endpoint_config_name=self.config.attr_endpoint_config_name,
            deployment_config=self._deployment_config(rollout),
            **_retained(self.scaling),
        )
        if self.scaling is not None:
            self.scaling.scale(self.endpoint)
        if rollout is not None:
            allow_alarms(model.role, rollout)
            if model.multi_model:
                self._ask_for_slowest_load(rollout)
        if self.alarms is not None:
            self.endpoint.node.add_dependency(self.alarms.let_read(model.role.role))
        for key, value in (endpoint_tags or {}).items():
            cdk.Tags.of(self.endpoint).add(key, value)

    @property
    def endpoint_config_name(self) -> str:
        """The generated name of its configuration."""
        return self.config.attr_endpoint_config_name

    @property
    def role(self) -> iam.IRole:
        """What SageMaker runs its containers with."""
        return self.model.role.role

    def _scaling(
        self,
        scaling: Scaling,
        fleet: Fleet,
        config: str,
        rollout: Rollout | None,
        boundary: str | None,
    ) -> ScalingSteps:
        from constructs_lib.scaling import ScaledVariant, ScalingSteps  # noqa: PLC0415 - types that most need not

        instance = load_catalogue().instance(fleet.instance_type)
        variant = ScaledVariant(
            endpoint_name=self.endpoint_name,
            variant_name=self.variant_name,
            gpu_count=1 if instance is None else instance.gpu_count,
            initial_instance_count=fleet.initial_instance_count,
            routing={} if rollout is None else traffic_routing(rollout),
            config={"Model": self.model.name, "Fleet": config},
        )
        if rollout is not None and rollout.kind != "all-at-once":
            told = (
                "is refused: deploy kind: all-at-once before it, alone"
                if rollout.kind == "rolling"
                else f"goes all at once, not {rollout.kind}"
            )
            cdk.Annotations.of(self).add_info_v2(
                "tritonstack:type-changes-all-at-once",
                f"{self.endpoint_name}: a deployment that changes the instance type {told}: the type is in the "
                "variant's name, and guardrails need the same variant before and after.",
            )
        return ScalingSteps(self, "Scaling", variant=variant, scaling=scaling, permissions_boundary_arn=boundary)

    def _alarms(self, rollout: Rollout) -> FleetAlarms | None:
        if rollout.own_alarms is None:
            return None
        from constructs_lib.rollout import FleetAlarms, NewFleet  # noqa: PLC0415 - types that most need not

        fleet = NewFleet(
            endpoint_name=self.endpoint_name,
            variant_name=self.variant_name,
            config_name=self.config.attr_endpoint_config_name,
        )
        return FleetAlarms(self, "RollbackAlarms", fleet=fleet, settings=rollout.own_alarms)

    def _ask_for_slowest_load(self, rollout: Rollout) -> None:
        if rollout.slowest_load_seconds is None and any(rollout.waits.values()):
            cdk.Annotations.of(self).add_info_v2(
                "tritonstack:slowest-load-not-set",
                f"{self.endpoint_name}: its rollout waits, and nobody has said how long its slowest model loads: a new "
                "fleet is cold, and a wait that is over before that model has answered guards nothing. Run "
                "`tritonstack verify` on the environment and set rollout.slowest_load_seconds to what it prints.",
            )

    def _deployment_config(self, rollout: Rollout | None) -> sagemaker.CfnEndpoint.DeploymentConfigProperty | None:
        if rollout is None:
            return None
        return deployment_config(
            rollout,
            own_alarms=[] if self.alarms is None else [alarm.ref for alarm in self.alarms.alarms],
            # All at once is the same for every variant; the other types are for an update that keeps it.
            routing=None if self.scaling is None or rollout.kind == "all-at-once" else self.scaling.routing,
        )


def _retained(scaling: ScalingSteps | None) -> dict[str, Any]:
    """A scaled endpoint keeps its number of instances through an update, else the config's would be forced on it."""
    if scaling is None:
        return {}
    excluded = [sagemaker.CfnEndpoint.VariantPropertyProperty(variant_property_type=name) for name in NOT_RETAINED]
    return {"retain_all_variant_properties": True, "exclude_retained_variant_properties": excluded}


def _variant(
    name: str, count: float, *, model: TritonModel, fleet: Fleet, timeouts: Timeouts
) -> sagemaker.CfnEndpointConfig.ProductionVariantProperty:
    return sagemaker.CfnEndpointConfig.ProductionVariantProperty(
        variant_name=name,
        model_name=model.name,
        instance_type=fleet.instance_type,
        initial_instance_count=count,
        initial_variant_weight=1,
        inference_ami_version=fleet.host_ami,
        volume_size_in_gb=fleet.volume_size_gb,
        model_data_download_timeout_in_seconds=timeouts.model_download_seconds,
        container_startup_health_check_timeout_in_seconds=timeouts.container_startup_seconds,
        routing_config=_routing(fleet.routing),
    )


def _routing(strategy: str | None) -> sagemaker.CfnEndpointConfig.RoutingConfigProperty | None:
    if strategy is None:
        return None
    return sagemaker.CfnEndpointConfig.RoutingConfigProperty(routing_strategy=strategy)


def _metrics(metrics: EndpointMetrics) -> sagemaker.CfnEndpointConfig.MetricsConfigProperty:
    return sagemaker.CfnEndpointConfig.MetricsConfigProperty(
        enable_detailed_observability=metrics.detailed,
        enable_enhanced_metrics=metrics.enhanced,
        metric_publish_frequency_in_seconds=metrics.publish_seconds,
    )
