"""A SageMaker endpoint and its production variants: import, grants, metrics, EndpointConfig and Endpoint."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from constructs_lib.permission import arn, parameter_arn
from constructs_lib.rollout import FleetAlarms, deployment_config, traffic_routing
from constructs_lib.triton_model import TritonModel
from tritonstack import aws_names, naming
from tritonstack.catalogue import load_catalogue
from tritonstack.config import EndpointMetrics, Rollout, Scaling, Timeouts
from tritonstack.config.capacity_reservation import ONLY_RESERVED
from tritonstack.config.rollout import fleet_limits
from tritonstack.errors import nearest
from tritonstack.naming import NAME_PATTERN, EndpointReference

if TYPE_CHECKING:
    from aws_cdk import aws_cloudwatch as cloudwatch

    from constructs_lib.scaling import ScalingSteps


STREAM_ACTION = "sagemaker:InvokeEndpointWithResponseStream"
"""UNVERIFIED whether IAM checks it: the API reference names InvokeEndpoint alone, so that a stream gets both."""


class CallableEndpoint(Construct):
    """An endpoint as other stacks see it: name, ARN, ``grant_invoke``, metrics.

    Attributes:
        endpoint_name: its name.
        variant_name: its production variant's, the first of several.
        multi_model: whether a request names its model by ``TargetModel``.
        models: the models that grants may name; None: not known here, so that any may be named.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint_name: str,
        variant_name: str,
        multi_model: bool = True,
        models: Collection[str] | None = None,
        reference: EndpointReference | None = None,
    ) -> None:
        """Describe an endpoint of this or of another app, in the account and region of this stack; nothing is made.

        Args:
            endpoint_name: its name; may be known at deployment only (an SSM parameter).
            variant_name: its production variant's. Ours carry the instance type: ``ml.g4dn.xlarge`` is
                ``g4dn-xlarge``.
            multi_model: whether a request names its model by ``TargetModel``. Default: True.
            models: the models that grants may name. Default: None, any.
            reference: its environment's name and its own name there: grants then also allow reading its release
                records, so that clients name models without their archives. Default: None, clients name archives.
        """
        super().__init__(scope, construct_id)
        self.endpoint_name = endpoint_name
        self.variant_name = variant_name
        self.multi_model = multi_model
        self.models = None if models is None else frozenset(models)
        self._reference = reference

    @staticmethod
    def from_endpoint_name(
        scope: Construct,
        construct_id: str,
        endpoint_name: str,
        *,
        variant_name: str,
        multi_model: bool = True,
        models: Collection[str] | None = None,
        reference: EndpointReference | None = None,
    ) -> CallableEndpoint:
        """An endpoint that exists already, as the CDK spells an import; the arguments are those of the constructor."""
        return CallableEndpoint(
            scope,
            construct_id,
            endpoint_name=endpoint_name,
            variant_name=variant_name,
            multi_model=multi_model,
            models=models,
            reference=reference,
        )

    @property
    def endpoint_arn(self) -> str:
        """The endpoint's ARN, from its name, so that a grant needs no deployed endpoint."""
        return arn(self, "sagemaker", "endpoint", self.endpoint_name)

    def grant_invoke(self, grantee: iam.IGrantable, *, models: Sequence[str] | None = None) -> iam.Grant:
        """Grant permission to invoke this endpoint; a single-model one also with a streamed response.

        Where it has release records, also read those of the models, and the endpoint's mode: that is all
        that ``tritonstack.client`` needs for ``endpoint/model``.

        Args:
            grantee: the principal.
            models: in multi-model mode, the models that may be invoked, in any archive. Default: None,
                all of them.

        Returns:
            The grant.

        Raises:
            ValueError: ``models`` is empty, spells no model's name, names one that the endpoint does not serve, or
                names models at a single-model endpoint, where there is nothing to pick.
            TypeError: ``models`` is a string.
        """
        grant = iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["sagemaker:InvokeEndpoint", *([] if self.multi_model else [STREAM_ACTION])],
            resource_arns=[self.endpoint_arn],
            conditions=None if models is None else self._only(models),
        )
        if self._reference is None:
            return grant
        # Without `models` a wildcard: a model that is added later has its record there, and may be invoked as well.
        names = [f"{self._reference.records}{model}" for model in sorted(set(models or "*"))]
        reading = iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["ssm:GetParameter"],
            resource_arns=[parameter_arn(self, name) for name in (*names, self._reference.outputs)],
        )
        return grant.combine(reading)

    def grant_publish_latency(self, grantee: iam.IGrantable) -> iam.Grant:
        """Grant permission to publish the latency that a client measures: ``ModelClient.publish_latencies``.

        CloudWatch has no resources to name: the permission is for the namespace ``tritonstack/client`` alone, whatever
        the endpoint.

        Args:
            grantee: the principal.

        Returns:
            The grant.
        """
        return iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["cloudwatch:PutMetricData"],
            resource_arns=["*"],
            conditions={"StringEquals": {"cloudwatch:namespace": naming.CLIENT_METRICS}},
        )

    def _only(self, models: Sequence[str]) -> dict[str, dict[str, list[str]]]:
        """The condition that allows these models alone. The dot ends a name: `bert` does not cover `bert-large`."""
        if isinstance(models, str):
            raise TypeError(f"`models` is a list of names, not a string: [{models!r}]")
        if not self.multi_model:
            raise ValueError(f"endpoint {self.endpoint_name} serves a single model: grant it without `models`")
        if not models:
            raise ValueError("`models` is empty: name at least one model, or leave it out to grant all")
        for model in models:
            if re.fullmatch(NAME_PATTERN, model) is None:  # a wildcard or a dot would let in more models than one
                raise ValueError(f"{model!r} is no model's name: small letters, digits and hyphens, without wildcards")
            if self.models is not None and model not in self.models:
                known = ", ".join(sorted(self.models))
                raise ValueError(f"endpoint {self.endpoint_name} has no model {model}: it has {known}")
        return {"StringLike": {"sagemaker:TargetModel": [f"{model}.*.tar.gz" for model in sorted(set(models))]}}

    def metric(
        self,
        metric_name: str,
        *,
        statistic: str | None = None,
        period: cdk.Duration | None = None,
        variant_name: str | None = None,
    ) -> cloudwatch.Metric:
        """A metric of a variant, with the dimensions, namespace and unit that AWS documents.

        Label, color, or another region: ``endpoint.metric("ModelLatency").with_(region="eu-west-1")``.

        Args:
            metric_name: at CloudWatch, such as ``ModelLatency``.
            statistic: one that AWS documents for the metric (``Sum``, ``p99``). Default: None, its usual one.
            period: over which it is taken. Default: None, one minute, in which SageMaker writes.
            variant_name: of one of several variants. Default: None, the endpoint's ``variant_name``.

        Raises:
            ValueError: AWS does not document the metric for endpoints.
            LookupError: AWS does not document the statistic: CloudWatch would show nothing.
        """
        from aws_cdk import aws_cloudwatch as cloudwatch  # noqa: PLC0415 - most apps look at no metric

        from tritonstack.monitoring.metric import Metric, documented, unit_of  # noqa: PLC0415 - as above

        dimensions = aws_names.variant_dimensions(self.endpoint_name, variant_name or self.variant_name)
        known = documented(dimensions)
        if metric_name not in known:
            raise ValueError(
                f"`metric_name` is {metric_name!r}, which AWS does not document for endpoints; allowed: "
                f"{', '.join(sorted(known))}. {nearest(metric_name, known)}".rstrip()
            )
        namespace, usual = known[metric_name]
        metric = Metric(
            namespace=namespace,
            name=metric_name,
            dimensions=tuple(dimensions.items()),
            statistic=statistic or usual,
        )
        return cloudwatch.Metric(
            namespace=namespace,
            metric_name=metric_name,
            dimensions_map=dimensions,
            unit=cloudwatch.Unit[unit_of(metric).upper()],
            statistic=metric.statistic,
            period=period or cdk.Duration.minutes(1),
        )


PROVISION_SECONDS = 3600
"""The longest that SageMaker may take to provision an instance (API reference, ProductionVariant:
VariantInstanceProvisionTimeoutInSeconds); what it takes by default is not documented."""
METRICS = EndpointMetrics()
"""Once a minute for each variant, without detailed observability, which SageMaker switches on by itself."""
NOT_RETAINED = ("DesiredWeight", "DataCaptureConfig")
"""What an update of a scaled endpoint takes from the new config; the number of instances stays as it is."""


@dataclass(frozen=True, kw_only=True)
class VariantInstances:
    """The instances of a production variant.

    The catalogue's types have NVMe disks, which the hardware encrypts: SageMaker attaches no volume there and refuses a
    key (API reference: CreateEndpointConfig, ``KmsKeyId``). For a type with a volume, set both on ``Endpoint.config``.

    Attributes:
        instance_type: for example ``ml.g4dn.xlarge``.
        initial_instance_count: at least 1.
        host_ami: ``InferenceAmiVersion``; None leaves SageMaker's default.
        routing: ``LEAST_OUTSTANDING_REQUESTS`` or ``RANDOM``; None leaves SageMaker's default.
        pools: instance pools: ``instance_type`` and those that SageMaker falls back to, in order; empty: one type.
        provision_seconds: how long SageMaker tries to provision instances; None leaves its default.
        capacity_reservation: the ARN of an ML capacity reservation or training plan that instances start in, and
            nowhere else; None: on demand.
    """

    instance_type: str
    initial_instance_count: int
    host_ami: str | None = None
    routing: str | None = None
    pools: tuple[str, ...] = ()
    provision_seconds: int | None = None
    capacity_reservation: str | None = None

    @property
    def deployed_text(self) -> str:
        """The instances as properties of custom resources have them.

        Templates that are deployed have this text: another one would be an update that changes nothing.
        """
        return (
            f"Fleet(instance_type={self.instance_type!r}, initial_instance_count={self.initial_instance_count!r}, "
            f"host_ami={self.host_ami!r}, routing={self.routing!r})"
            + (f" pools={self.pools!r}" if self.pools else "")
            + (f" provision_seconds={self.provision_seconds}" if self.provision_seconds else "")
            + (f" capacity_reservation={self.capacity_reservation!r}" if self.capacity_reservation else "")
        )


@dataclass(frozen=True, kw_only=True)
class ProductionVariant:
    """A production variant of an endpoint: a model, and the instances that it runs on.

    Attributes:
        model: what it runs.
        instances: what it runs on.
        scaling: how the number of instances follows the load; None: it stays the initial one.
        label: what its name begins with, before the instance type; None where the endpoint has no other variant.
        fixed_name: its whole name, without the instance type (``AllTraffic``), for a variant that is not scaled; None:
            the name carries the type.
        weight: its share of the requests is this divided by the sum of all variants'.
        pool_models: instance type of ``instances.pools`` → what it runs in place of ``model`` (ModelNameOverride): the
            archive for its GPU.
    """

    model: TritonModel
    instances: VariantInstances
    scaling: Scaling | None = None
    label: str | None = None
    weight: float = 1
    fixed_name: str | None = None
    pool_models: Mapping[str, TritonModel] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its name, which carries the instance type unless it is fixed, so that a change of type is a new variant."""
        return self.fixed_name or naming.variant_name(
            instance_type=self.instances.instance_type, name=self.label, pools=self.instances.pools
        )

    @property
    def models(self) -> tuple[TritonModel, ...]:
        """Every Model that it may run, each once, that of the preferred instance type first."""
        return tuple(dict.fromkeys((self.model, *self.pool_models.values())))


class Endpoint(CallableEndpoint):
    """A SageMaker endpoint, its EndpointConfig, scaling and rollback alarms.

    The configuration's name is generated, because it is replaced at every change; the endpoint's is fixed, because
    clients invoke it by name.

    Attributes:
        config: the EndpointConfig.
        endpoint: the Endpoint.
        alarms: the alarms on the new fleet of an update; None where the rollout sets none.
        scaling: what scales it; None where its number of instances is fixed.
        variants: its production variants, as given.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint_name: str,
        variants: Sequence[ProductionVariant],
        timeouts: Timeouts | None = None,
        rollout: Rollout | None = None,
        metrics: EndpointMetrics | None = METRICS,
        isolated: bool = False,
        endpoint_tags: Mapping[str, str] | None = None,
        models: Collection[str] | None = None,
        reference: EndpointReference | None = None,
    ) -> None:
        """Make the endpoint.

        Args:
            endpoint_name: unique in the account and region, at most 63 characters.
            variants: what it runs, and on what. Several share the requests by weight; each is scaled or none
                (else ValueError).
            timeouts: how long a start may take. Default: None, ``Timeouts()``: 600 seconds each.
            rollout: how an update moves the requests to the new fleet; None: all at once, and nothing is watched.
            metrics: what SageMaker publishes of the endpoint; None: SageMaker's own defaults, among them detailed
                observability, which costs. Default: ``EndpointMetrics()``, once a minute for each variant.
            isolated: say in the configuration that containers are isolated from networks, too, where policies of the
                account ask for it; the Models' own setting isolates them. Default: False.
            endpoint_tags: tags on the endpoint alone, besides those of the stack. Default: None, no others.
            models: the models that grants may name. Default: None, any.
            reference: its environment's name and its own name there, by which grants allow reading its release
                records. Default: None, it has none.
        """
        super().__init__(
            scope,
            construct_id,
            endpoint_name=endpoint_name,
            variant_name=variants[0].name,
            multi_model=variants[0].model.multi_model,
            models=models,
            reference=reference,
        )
        self.variants = tuple(variants)
        timeouts = timeouts or Timeouts()
        scaled = any(each.scaling is not None for each in variants)
        self.scaling = self._scaling(timeouts, rollout, metrics) if scaled else None
        initial = [each.instances.initial_instance_count for each in variants]
        counts = initial if self.scaling is None else self.scaling.instance_counts
        self.config = sagemaker.CfnEndpointConfig(
            self,
            "Config",
            metrics_config=None
            if metrics is None
            else sagemaker.CfnEndpointConfig.MetricsConfigProperty(
                enable_detailed_observability=metrics.detailed,
                enable_enhanced_metrics=metrics.enhanced,
                metric_publish_frequency_in_seconds=metrics.seconds,
            ),
            enable_network_isolation=True if isolated else None,
            production_variants=[_variant(each, count, timeouts) for each, count in zip(variants, counts, strict=True)],
        )
        self.alarms: FleetAlarms | None = None
        if rollout is not None and rollout.own_alarms is not None:
            self.alarms = FleetAlarms(
                self,
                "RollbackAlarms",
                endpoint_name=endpoint_name,
                variant_names=[each.name for each in variants],
                config_name=self.config.attr_endpoint_config_name,
                settings=rollout.own_alarms,
            )
        self.endpoint = sagemaker.CfnEndpoint(
            self,
            "Endpoint",
            endpoint_name=endpoint_name,
            endpoint_config_name=self.config.attr_endpoint_config_name,
            # A scaled endpoint keeps its number of instances through an update, else the config's would be forced on.
            retain_all_variant_properties=None if self.scaling is None else True,
            exclude_retained_variant_properties=None
            if self.scaling is None
            else [sagemaker.CfnEndpoint.VariantPropertyProperty(variant_property_type=name) for name in NOT_RETAINED],
        )
        if rollout is not None:
            alarms = [] if self.alarms is None else [alarm.ref for alarm in self.alarms.alarms]
            # All at once is the same for every variant; the other types are for an update that keeps it.
            routing = None if self.scaling is None or rollout.kind == "all-at-once" else self.scaling.routing
            config_of_update = deployment_config(
                rollout, alarms=alarms, timeout_seconds=self._update_timeout(rollout, timeouts), routing=routing
            )
            self.endpoint.add_property_override("DeploymentConfig", config_of_update)
        if self.scaling is not None:
            self.scaling.scale(self.endpoint)
        waits = rollout is not None and rollout.slowest_load_seconds is None and any(rollout.waits.values())
        if waits and self.multi_model:
            cdk.Annotations.of(self).add_info_v2(
                "tritonstack:slowest-load-not-set",
                f"{self.endpoint_name}: its rollout waits, and rollout.slowest_load_seconds is not set: a new "
                "fleet is cold, and a wait that is over before that model has answered guards nothing. Run "
                "`tritonstack verify` on the environment and set rollout.slowest_load_seconds to what it prints.",
            )
        if self.alarms is not None:
            self.endpoint.node.add_dependency(self.alarms.grant_read(variants[0].model.role))
        for key, value in (endpoint_tags or {}).items():
            cdk.Tags.of(self.endpoint).add(key, value)

    def _update_timeout(self, rollout: Rollout, timeouts: Timeouts) -> int:
        """The longest that an update of the largest fleet may take, seconds: all waits and the starts of instances."""
        # AWS's pages disagree on whether the limit is one of all pools or of each: the longer one is taken.
        pools = max(max(len(each.instances.pools), 1) for each in self.variants)
        longest = max(each.instances.provision_seconds or PROVISION_SECONDS for each in self.variants)
        starts = pools * longest + timeouts.model_download_seconds + timeouts.container_startup_seconds
        largest = max(fleet_limits(each.instances.initial_instance_count, each.scaling)[1] for each in self.variants)
        return rollout.execution_timeout_seconds(largest, start_seconds=starts)

    def _scaling(self, timeouts: Timeouts, rollout: Rollout | None, metrics: EndpointMetrics | None) -> ScalingSteps:
        from constructs_lib.scaling import ScaledVariant, ScalingSteps  # noqa: PLC0415 - types that most need not

        scaled: list[ScaledVariant] = []
        config = {"Metrics": repr(metrics)}
        for number, each in enumerate(self.variants):
            if each.scaling is None:  # RetainAllVariantProperties keeps the instance counts of all variants
                raise ValueError(f"variants: {each.name} has no scaling, and another has: scale each, or none")
            instance = load_catalogue().instance(each.instances.instance_type)
            if instance is None and each.scaling.cpu_utilization is not None:
                raise ValueError(
                    f"cpu_utilization: the catalogue does not have the vCPUs of {each.instances.instance_type}"
                )
            variant = ScaledVariant(
                endpoint_name=self.endpoint_name,
                variant_name=each.name,
                gpu_count=1 if instance is None else instance.gpu_count,
                vcpu=1 if instance is None else instance.vcpu,
                initial_instance_count=each.instances.initial_instance_count,
                scaling=each.scaling,
            )
            scaled.append(variant)
            suffix = str(number) if number else ""
            config |= {
                f"Model{suffix}": " ".join(model.name for model in each.models),
                f"Fleet{suffix}": f"{each.instances.deployed_text} {timeouts!r}",
            }
        if len(self.variants) > 1:
            config["Weights"] = " ".join(f"{each.weight:g}" for each in self.variants)
        if rollout is not None and rollout.kind != "all-at-once":
            consequence = (
                "is refused: deploy kind: all-at-once before it, alone"
                if rollout.kind == "rolling"
                else f"goes all at once, not {rollout.kind}"
            )
            cdk.Annotations.of(self).add_info_v2(
                "tritonstack:type-changes-all-at-once",
                f"{self.endpoint_name}: a deployment that changes the instance type {consequence}: the type is in the "
                "variant's name, and guardrails need the same variant before and after.",
            )
        routing = {} if rollout is None else traffic_routing(rollout)
        return ScalingSteps(self, "Scaling", variants=scaled, routing=routing, config=config)


def _variant(
    variant: ProductionVariant, count: float, timeouts: Timeouts
) -> sagemaker.CfnEndpointConfig.ProductionVariantProperty:
    instances = variant.instances
    return sagemaker.CfnEndpointConfig.ProductionVariantProperty(
        variant_name=variant.name,
        model_name=variant.model.name,
        instance_type=None if instances.pools else instances.instance_type,
        instance_pools=_pools(variant) or None,
        variant_instance_provision_timeout_in_seconds=instances.provision_seconds,
        initial_instance_count=count,
        initial_variant_weight=variant.weight,
        inference_ami_version=instances.host_ami,
        model_data_download_timeout_in_seconds=timeouts.model_download_seconds,
        container_startup_health_check_timeout_in_seconds=timeouts.container_startup_seconds,
        capacity_reservation_config=None
        if instances.capacity_reservation is None
        else sagemaker.CfnEndpointConfig.CapacityReservationConfigProperty(
            capacity_reservation_preference=ONLY_RESERVED, ml_reservation_arn=instances.capacity_reservation
        ),
        routing_config=None
        if instances.routing is None
        else sagemaker.CfnEndpointConfig.RoutingConfigProperty(routing_strategy=instances.routing),
    )


def _pools(variant: ProductionVariant) -> list[sagemaker.CfnEndpointConfig.InstancePoolProperty]:
    """The instance pools of a variant, with their priorities from 1 and the Models of other GPUs."""
    return [
        sagemaker.CfnEndpointConfig.InstancePoolProperty(
            instance_type=name,
            priority=priority,
            model_name_override=variant.pool_models[name].name if name in variant.pool_models else None,
        )
        for priority, name in enumerate(variant.instances.pools, start=1)
    ]
