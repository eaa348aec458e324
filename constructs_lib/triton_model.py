"""A SageMaker Model whose container is Triton: which archives it may serve, and how it is set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from constructs_lib.artifact_bucket import ArchiveStore
from constructs_lib.build_access import JoinedNetwork
from constructs_lib.execution_role import ExecutionRole
from constructs_lib.triton_image import TritonImage
from tritonstack import naming


@dataclass(frozen=True, kw_only=True)
class MultiModelData:
    """Every archive under a prefix; a caller picks one by ``TargetModel``.

    Attributes:
        prefix: the key prefix, with its trailing slash.
        cache: keep a model loaded after a call. Without it SageMaker unloads and deletes it after each one
            (``MultiModelConfig.ModelCacheSetting``).
    """

    prefix: str
    cache: bool = True

    def __post_init__(self) -> None:
        if naming.key_prefix(self.prefix) != self.prefix:
            raise ValueError(f"prefix is {self.prefix!r}, and must end with one slash")


@dataclass(frozen=True, kw_only=True)
class SingleModelData:
    """One archive, unpacked before the container starts.

    Attributes:
        key: the archive's key.
    """

    key: str


class TritonModel(Construct):
    """Triton's container, with one archive or many.

    The Model's name is generated: every property of it needs a replacement, and a fixed name would collide with the
    Model that is replaced.

    Attributes:
        model: the resource.
        data: what it serves.
        data_url: where that lies, as an ``s3://`` URL.
        role: what SageMaker runs it with.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        image: TritonImage,
        role: ExecutionRole,
        artifacts: ArchiveStore,
        data: MultiModelData | SingleModelData,
        environment: Mapping[str, str],
        network: JoinedNetwork | None = None,
        isolated: bool = False,
    ) -> None:
        """Make the Model.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            image: the container's image.
            role: what SageMaker runs it with; its policy is attached first.
            artifacts: the bucket of the archives.
            data: one archive, or a prefix with many.
            environment: the container's variables, at most 100 (API reference: ``ContainerDefinition``).
            network: the VPC that containers join, or None for SageMaker's own network.
            isolated: whether the container can reach nothing at all, VPC or not; SageMaker still brings it its
                archives, in both modes (developer guide: "Run Training and Inference Containers in Internet-Free
                Mode"; model deployment feature matrix). Default: False.
        """
        super().__init__(scope, construct_id)
        self.data = data
        self.role = role
        multi_model = isinstance(data, MultiModelData)
        location = data.prefix if isinstance(data, MultiModelData) else data.key
        self.data_url = f"s3://{artifacts.bucket_name}/{location}"
        self.model = sagemaker.CfnModel(
            self,
            "Model",
            execution_role_arn=role.role_arn,
            primary_container=sagemaker.CfnModel.ContainerDefinitionProperty(
                image=image.uri,
                mode="MultiModel" if multi_model else "SingleModel",
                model_data_url=self.data_url,
                multi_model_config=_cache_setting(data),
                environment=dict(environment),
            ),
            vpc_config=_vpc_config(network),
            enable_network_isolation=True if isolated else None,
        )
        self.model.node.add_dependency(role.policy)

    @property
    def name(self) -> str:
        """The generated name."""
        return self.model.attr_model_name

    @property
    def multi_model(self) -> bool:
        """Whether a caller picks the model by ``TargetModel``."""
        return isinstance(self.data, MultiModelData)


def _vpc_config(network: JoinedNetwork | None) -> sagemaker.CfnModel.VpcConfigProperty | None:
    if network is None:
        return None
    return sagemaker.CfnModel.VpcConfigProperty(
        subnets=list(network.subnet_ids), security_group_ids=list(network.security_group_ids)
    )


def _cache_setting(
    data: MultiModelData | SingleModelData,
) -> sagemaker.CfnModel.MultiModelConfigProperty | None:
    if isinstance(data, SingleModelData):
        return None
    return sagemaker.CfnModel.MultiModelConfigProperty(model_cache_setting="Enabled" if data.cache else "Disabled")
