"""The stack of one endpoint: role, Model, EndpointConfig, Endpoint and activation together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from constructs_lib.account_requirements import tag_all
from constructs_lib.activation import Activation, Verification
from constructs_lib.artifact_bucket import ArtifactBucketReference
from constructs_lib.endpoint import Endpoint, ProductionVariant, VariantInstances
from constructs_lib.joined_network import JoinedNetwork
from constructs_lib.monitoring import EndpointLog, capture_data
from constructs_lib.outputs import publish_outputs
from constructs_lib.triton_model import ExecutionRole, MultiModelData, SingleModelData, TritonImage, TritonModel
from tritonstack import naming
from tritonstack.config import EndpointSettings, Environment
from tritonstack.config.endpoint_metrics import metrics_warnings
from tritonstack.config.triton_release import release_warnings

if TYPE_CHECKING:
    from tritonstack.outputs.contract import ServingFields


class ServingStack(cdk.Stack):
    """One endpoint. In several stacks its parts would form cycles, or delete what still runs."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        endpoint: EndpointSettings,
        release_set: Mapping[str, str],
        commits: Mapping[str, str],
        build_sets: Sequence[str] = (),
    ) -> None:
        """Make the stack.

        Args:
            release_set: model name → digest, for every model of the endpoint.
            commits: model name → the commit that its inputs come from.
            build_sets: documents of what the deployment builds and waits for, one for each platform; none where all was
                published before.
        """
        super().__init__(
            scope,
            construct_id,
            stack_name=naming.stack_name(environment=environment.environment, part=naming.serving_part(endpoint.name)),
            description=f"Triton endpoint {endpoint.sagemaker_name(environment.environment)}",
        )
        tag_all(self, {naming.ENDPOINT_TAG: endpoint.name})
        name = endpoint.sagemaker_name(environment.environment)
        reference = naming.EndpointReference(environment=environment.environment, endpoint=endpoint.name)
        platforms = [each.platform for each in endpoint.platform_settings]
        prefix, *further_prefixes = [
            naming.platform_prefix(endpoint=endpoint.name, platform=each) for each in platforms
        ]
        image = self._image(environment, endpoint)
        for number, warning in enumerate(release_warnings(endpoint=endpoint, region=environment.region)):
            cdk.Annotations.of(self).add_warning_v2(f"tritonstack:release{number}", warning)
        for number, warning in enumerate(metrics_warnings(endpoint)):
            cdk.Annotations.of(self).add_warning_v2(f"tritonstack:metrics{number}", warning)
        self.artifacts = ArtifactBucketReference(
            self, "Artifacts", environment=environment.environment, earlier_key=environment.artifacts.earlier_key
        )
        network = self._network(environment)
        self.role = ExecutionRole(
            self,
            "ExecutionRole",
            endpoint_name=name,
            artifacts=self.artifacts,
            archive_prefix=prefix,
            further_prefixes=further_prefixes,
            image=image,
            network=network,
            network_identity="" if environment.network is None else environment.network.identity,
            role=None
            if endpoint.role_arn is None
            else iam.Role.from_role_arn(self, "OwnRole", endpoint.role_arn, mutable=False),
        )
        self.endpoint = Endpoint(
            self,
            "Endpoint",
            endpoint_name=name,
            variants=[self._variant(each, image, network, release_set) for each in endpoint.variant_settings],
            timeouts=endpoint.timeouts,
            rollout=endpoint.rollout,
            metrics=endpoint.metrics,
            isolated=endpoint.network_isolation == "everywhere",
            endpoint_tags=endpoint_tags(endpoint),
            models=release_set,
            reference=reference,
        )
        if endpoint.data_capture is not None:
            capture_data(
                self.endpoint.config,
                settings=endpoint.data_capture,
                prefix=naming.captured_prefix(endpoint=endpoint.name),
                role=self.role,
                artifacts=self.artifacts,
            )
        # Tags of what functions make (release records, log groups): CloudFormation tags only what it makes itself.
        tags = {**environment.resource_tags, naming.ENDPOINT_TAG: endpoint.name}
        if environment.logs.endpoint_days is not None:
            self._own_log(environment, tags=tags, days=environment.logs.endpoint_days)
        self.activation = Activation(
            self,
            "Activation",
            endpoint=reference,
            platform=platforms[0],
            further_platforms=platforms[1:],
            artifacts=self.artifacts,
            release_set=release_set,
            commits=commits,
            tags=tags,
            around=self.endpoint,
        )
        pools = (
            {each.instance_type: each.platform for each in endpoint.type_settings} if endpoint.instance_types else {}
        )
        self.verification = Verification(
            self,
            "Verification",
            endpoint=self.endpoint,
            image=image,
            settings=endpoint.verification,
            activation=self.activation,
            streams=endpoint.streams,
            pools=pools,
        )
        for model in (model for each in self.endpoint.variants for model in each.models):
            # SageMaker looks for a single model's archive when the Model is made; this check has the clearer message.
            model.node.add_dependency(self.activation.archives)
        if build_sets:
            from constructs_lib.model_build import BuildWait  # noqa: PLC0415 - most need no such types

            for number, (build_set, platform) in enumerate(zip(build_sets, platforms, strict=True)):
                name = f"Wait-{platform.gpu}" if number else "Wait"
                wait = BuildWait(self, name, endpoint=reference, build_set=build_set)
                self.activation.checks[0].node.add_dependency(wait.condition)
        self._outputs(prefix=prefix)
        self._publish(environment, endpoint, prefix=prefix, builds=bool(build_sets))

    def _image(self, environment: Environment, endpoint: EndpointSettings) -> TritonImage:
        build = endpoint.image_build
        if build is None:
            return TritonImage.from_uri(endpoint.image_uri(environment.region))
        cdk.Annotations.of(self).add_info_v2(
            "tritonstack:image-built",
            f"{endpoint.name}: cdk deploy builds its image from {build.directory} with Docker, for linux/amd64, and "
            f"pushes it; engines are built in AWS's image of {endpoint.release}. Neither building nor pushing was ever "
            "tried by this project, which has no Docker engine.",
        )
        return TritonImage.from_dockerfile(
            self,
            "Image",
            directory=environment.project / build.directory,
            dockerfile=build.dockerfile,
            build_args=build.build_args,
        )

    def _variant(
        self,
        settings: EndpointSettings,
        image: TritonImage,
        network: JoinedNetwork | None,
        release_set: Mapping[str, str],
    ) -> ProductionVariant:
        """A production variant with its Model. ``settings``: the endpoint's, with this variant's in their place."""
        own = settings.variants[0] if settings.variants else None
        label, weight = (None, 1.0) if own is None else (own.name, own.weight)
        models = {}
        for number, each in enumerate(settings.platform_settings):
            gpu = f"-{each.platform.gpu}" if number else ""
            models[each.platform] = TritonModel(
                self,
                f"Triton{gpu}" if label is None else f"Triton-{label}",
                image=image,
                role=self.role,
                artifacts=self.artifacts,
                data=model_data(each, release_set=release_set),
                environment=settings.container_environment(),
                network=network,
                isolated=bool(settings.network_isolation),
            )
        model = models[settings.platform]
        others = [
            each for each in settings.type_settings if settings.instance_types and each.platform != settings.platform
        ]
        instances = VariantInstances(
            instance_type=settings.instance_type,
            initial_instance_count=settings.initial_instance_count,
            host_ami=settings.inference_ami_version,
            routing=settings.routing_strategy,
            pools=settings.instance_types,
            provision_seconds=settings.provision_seconds,
            capacity_reservation=settings.capacity_reservation,
        )
        return ProductionVariant(
            model=model,
            instances=instances,
            scaling=settings.scaling,
            label=label,
            weight=weight,
            fixed_name=settings.variant,
            pool_models={each.instance_type: models[each.platform] for each in others},
        )

    def _own_log(self, environment: Environment, *, tags: Mapping[str, str], days: int) -> None:
        """Make the log group of the containers, with retention and key, before they write into it."""
        log = EndpointLog(
            self,
            "EndpointLog",
            endpoint_name=self.endpoint.endpoint_name,
            days=days,
            retain=environment.artifacts.retain,
            artifacts=self.artifacts,
            tags=tags,
        )
        self.endpoint.endpoint.node.add_dependency(log.resource)

    def _network(self, environment: Environment) -> JoinedNetwork | None:
        """The subnets and security groups of the containers."""
        joined = environment.joined_network
        if joined is None:
            return None
        from constructs_lib.network import NetworkReference  # noqa: PLC0415 - EC2's types, which most need not

        reference = NetworkReference(self, "Network", environment=environment.environment, settings=joined)
        return reference.of_containers()

    def _outputs(self, *, prefix: str) -> None:
        variants = self.endpoint.variants
        outputs = {
            "EndpointName": (self.endpoint.endpoint_name, "Endpoint to invoke"),
            "EndpointArn": (self.endpoint.endpoint.ref, "ARN of the endpoint, for permissions to invoke it"),
            "VariantName": (", ".join(each.name for each in variants), "Production variant of the endpoint"),
            "ModelDataUrl": (variants[0].model.data_url, "S3 URL of the archives: a prefix, or one archive"),
            "ArchivePrefix": (prefix, "Key prefix of this endpoint's archives in the bucket"),
            "ArtifactBucket": (self.artifacts.bucket_name, "Bucket of the archives"),
            "ExecutionRoleArn": (self.role.role_arn, "Execution role of the containers"),
        }
        if variants[0].instances.pools:
            landed = self.verification.resource.get_att_string("Landed")
            outputs["Landed"] = (landed, "Instances of each type when the endpoint was verified last")
        for name, (value, description) in outputs.items():
            cdk.CfnOutput(self, name, value=value, description=description)

    def _publish(self, environment: Environment, endpoint: EndpointSettings, *, prefix: str, builds: bool) -> None:
        name, platform = environment.environment, endpoint.platform
        outputs: ServingFields = {
            "endpoint": endpoint.name,
            "endpoint_name": self.endpoint.endpoint_name,
            "endpoint_arn": self.endpoint.endpoint.ref,
            "variant": self.endpoint.variant_name,
            "instance_type": endpoint.instance_type,
            "mode": endpoint.mode,
            "release": platform.release,
            "gpu": platform.gpu,
            "platform": str(platform),
            "bucket": self.artifacts.bucket_name,
            "archive_prefix": prefix,
            "manifest_prefix": naming.manifest_prefix(endpoint=endpoint.name, platform=platform),
            "model_data_url": self.endpoint.variants[0].model.data_url,
            "execution_role_arn": self.role.role_arn,
            "log_group": naming.endpoint_log_group(self.endpoint.endpoint_name),
            "release_records": naming.release_parameter(environment=name, endpoint=endpoint.name, model=""),
            "builds_on_deploy": builds,
        }
        if endpoint.streams:
            outputs["streams"] = True
        if endpoint.instance_types:
            outputs["instance_types"] = list(endpoint.instance_types)
            outputs["platforms"] = [str(each.platform) for each in endpoint.platform_settings]
        if endpoint.variants:
            outputs["variants"] = {each.variants[0].name: each.variant_name for each in endpoint.variant_settings}
        publish_outputs(
            self, environment=environment, kind="serving", outputs=outputs, name=naming.serving_part(endpoint.name)
        )


def model_data(endpoint: EndpointSettings, *, release_set: Mapping[str, str]) -> MultiModelData | SingleModelData:
    """The endpoint's model data: the platform prefix in multi-model mode, else its one archive."""
    if endpoint.multi_model:
        prefix = naming.platform_prefix(endpoint=endpoint.name, platform=endpoint.platform)
        return MultiModelData(prefix=prefix, cache=endpoint.model_cache_setting == "Enabled")
    [model] = endpoint.models
    archive = naming.ArchiveName(model=model, digest=release_set[model])
    return SingleModelData(key=naming.archive_key(endpoint=endpoint.name, platform=endpoint.platform, archive=archive))


def endpoint_tags(endpoint: EndpointSettings) -> dict[str, str]:
    """Tags of the endpoint alone: its description, and the limit that only the local runtime reads."""
    tags = {"description": endpoint.description, naming.LOCAL_MAX_LOADED_MODELS_TAG: endpoint.local.max_loaded_models}
    return {key: str(value) for key, value in tags.items() if value is not None}
