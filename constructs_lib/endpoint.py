"""A SageMaker endpoint with one production variant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from constructs_lib.rollout import allow_alarms, deployment_config
from constructs_lib.triton_model import TritonModel
from tritonstack import naming
from tritonstack.settings import Rollout


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


class Endpoint(Construct):
    """The endpoint and its configuration.

    The configuration's name is generated, for it is replaced at every change; the endpoint's is fixed, for callers know
    it. The variant's name carries the instance type, so that a change of type is a new variant.

    Attributes:
        config: the EndpointConfig.
        endpoint: the Endpoint.
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
        endpoint_tags: Mapping[str, str] | None = None,
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
            endpoint_tags: tags on the endpoint alone, besides those of the stack.
        """
        super().__init__(scope, construct_id)
        self.endpoint_name = endpoint_name
        self.variant_name = naming.variant_name(instance_type=fleet.instance_type)
        self.model = model
        self.config = sagemaker.CfnEndpointConfig(
            self,
            "Config",
            kms_key_id=fleet.volume_key_arn,
            production_variants=[_variant(self.variant_name, model=model, fleet=fleet, timeouts=timeouts)],
        )
        self.endpoint = sagemaker.CfnEndpoint(
            self,
            "Endpoint",
            endpoint_name=endpoint_name,
            endpoint_config_name=self.config.attr_endpoint_config_name,
            deployment_config=None if rollout is None else deployment_config(rollout),
        )
        if rollout is not None:
            allow_alarms(model.role, rollout)
        for key, value in (endpoint_tags or {}).items():
            cdk.Tags.of(self.endpoint).add(key, value)

    @property
    def endpoint_arn(self) -> str:
        """The endpoint's ARN, from its name, so that a grant needs no deployed endpoint."""
        return cdk.Stack.of(self).format_arn(service="sagemaker", resource="endpoint", resource_name=self.endpoint_name)

    def grant_invoke(self, grantee: iam.IGrantable, *, models: Sequence[str] | None = None) -> iam.Grant:
        """Let someone call this endpoint.

        Args:
            grantee: who may call.
            models: in multi-model mode, the models that may be called, whichever their current archive; None is all of
                them.

        Returns:
            The grant.

        Raises:
            ValueError: ``models`` is empty, or names models at a single-model endpoint, where there is nothing to pick.
        """
        if models is None:
            conditions = None
        elif not self.model.multi_model:
            raise ValueError(f"endpoint {self.endpoint_name} serves a single model: grant it without `models`")
        elif not models:
            raise ValueError("`models` is empty: name at least one model, or leave it out to grant all")
        else:
            # The dot ends the model's name, so a grant of `bert` does not cover `bert-large`.
            targets = [f"{model}.*.tar.gz" for model in sorted(models)]
            conditions = {"StringLike": {"sagemaker:TargetModel": targets}}
        return iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["sagemaker:InvokeEndpoint"],
            resource_arns=[self.endpoint_arn],
            conditions=conditions,
        )


def _variant(
    name: str, *, model: TritonModel, fleet: Fleet, timeouts: Timeouts
) -> sagemaker.CfnEndpointConfig.ProductionVariantProperty:
    return sagemaker.CfnEndpointConfig.ProductionVariantProperty(
        variant_name=name,
        model_name=model.name,
        instance_type=fleet.instance_type,
        initial_instance_count=fleet.initial_instance_count,
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
