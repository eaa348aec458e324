"""A SageMaker Model whose container is Triton: image, execution role, archives."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge_wildcard
from constructs_lib.artifact_bucket import ArchiveStore, grant_group
from constructs_lib.joined_network import JoinedNetwork, allow_network
from constructs_lib.permission import acknowledge_nameless, allow_group, arn, asset_repository_name, service_principal
from tritonstack import naming
from tritonstack.arns import AccountRegion
from tritonstack.config.patterns import ECR_URI

CODEBUILD_IMAGES = "aws/codebuild/"
"""How the names of CodeBuild's own images begin (CodeBuild user guide: "Docker images provided by CodeBuild")."""


@dataclass(frozen=True, kw_only=True)
class TritonImage:
    """An image in ECR.

    Attributes:
        uri: what a Model names, with its tag or digest.
        account: the account that holds the repository, 12 digits.
        region: the repository's region.
        repository: the repository's name.
    """

    uri: str
    account: str
    region: str
    repository: str

    @classmethod
    def from_uri(cls, uri: str) -> TritonImage:
        """An image in ECR, by its URI.

        Raises:
            ValueError: the URI is no ECR image with a tag or a digest. A Model takes no other without a VPC
                (API reference: ``ContainerDefinition.Image``), and no permission lets a role pull any other.
        """
        match = ECR_URI.fullmatch(uri)
        if match is None:
            raise ValueError(
                "an image in ECR, <account>.dkr.ecr.<region>.amazonaws.com/<repository>:<tag> "
                "(also amazonaws.com.cn, and @sha256:<digest> for the tag)"
            )
        return cls(uri=uri, account=match["account"], region=match["region"], repository=match["repository"])

    @classmethod
    def of_machine(cls, name: str) -> TritonImage | None:
        """The image that a machine of CodeBuild pulls from ECR; None where it runs one of CodeBuild's own.

        Raises:
            ValueError: as :meth:`from_uri`.
        """
        return None if name.startswith(CODEBUILD_IMAGES) else cls.from_uri(name)

    @classmethod
    def from_dockerfile(
        cls,
        scope: Construct,
        construct_id: str,
        *,
        directory: Path,
        dockerfile: str = "Dockerfile",
        build_args: Mapping[str, str] | None = None,
    ) -> TritonImage:
        """An image for linux/amd64 that the CDK's command line builds with Docker, and pushes, when it deploys.

        Args:
            directory: the build context, whose content is in the image's tag.
            dockerfile: below that folder. Default: ``Dockerfile``.
            build_args: build arguments. Default: None, none.
        """
        from aws_cdk import aws_ecr_assets as ecr_assets  # noqa: PLC0415 - most images are built already

        asset = ecr_assets.DockerImageAsset(
            scope,
            construct_id,
            directory=str(directory),
            file=dockerfile,
            build_args=dict(build_args or {}) or None,
            platform=ecr_assets.Platform.LINUX_AMD64,
        )
        stack = cdk.Stack.of(scope)
        name = asset_repository_name(stack)
        return cls(uri=asset.image_uri, account=stack.account, region=stack.region, repository=name)

    def repository_arn(self, *, partition: str) -> str:
        """The repository's ARN in a partition (``aws``, ``aws-cn``, or a token)."""
        place = AccountRegion(partition=partition, region=self.region, account=self.account)
        return place.arn("ecr", "repository", self.repository)

    @property
    def registry(self) -> str:
        """The host that Docker logs in to."""
        return self.uri.partition("/")[0]


def allow_pull(policy: iam.Policy, *, images: Iterable[TritonImage]) -> None:
    """Allow pulling from the repositories of these images, and no other."""
    partition = cdk.Stack.of(policy).partition
    repositories = sorted({image.repository_arn(partition=partition) for image in images})
    allow_group(policy, "pull", repositories=repositories)


class ExecutionRole(Construct):
    """A role that can read one endpoint's archives for its platforms, pull one image, and write its logs and metrics.

    Attributes:
        role: the role.
        policy: its one policy. A Model must depend on it: SageMaker checks the role when the Model is made and when the
            endpoint starts, and with a reference to the role alone CloudFormation may make the Model first.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint_name: str,
        artifacts: ArchiveStore,
        archive_prefix: str,
        further_prefixes: Sequence[str] = (),
        image: TritonImage,
        network: JoinedNetwork | None = None,
        network_identity: str = "",
        role: iam.IRole | None = None,
    ) -> None:
        """Make the role.

        Args:
            endpoint_name: name of the endpoint at SageMaker; names its log group.
            artifacts: the bucket of the archives.
            archive_prefix: the platform prefix of this endpoint's archives, with its trailing slash.
            further_prefixes: those of its other GPUs, where instance pools have several. Default: none.
            image: the one image that may be pulled.
            network: the VPC that containers join. Default: None, SageMaker's own network.
            network_identity: distinguishes that network from an earlier one, which the old fleet is still in.
                Default: empty.
            role: a role of yours, which gets the policy too. Default: None, one is made. Of an imported role the trust
                policy cannot be written; of one that is imported as immutable, or is another account's, no policy:
                then its owner must allow what ``required_policy`` lists, and a warning points to it.
        """
        super().__init__(scope, construct_id)
        self.role: iam.IRole = role or iam.Role(
            self,
            "Role",
            description=f"Execution role of endpoint {endpoint_name}",
            assumed_by=service_principal(self, "sagemaker"),
        )
        # A new platform, image or network makes a second policy. CloudFormation removes the first when the update is
        # over, so the old fleet, which still serves, can load models and start instances until then.
        prefixes = [naming.key_prefix(each) for each in (archive_prefix, *further_prefixes)]
        identity = [*prefixes, image.account, image.repository, *([network_identity] if network_identity else [])]
        generation = hashlib.sha256("\n".join(identity).encode()).hexdigest()[:8]
        self.policy = iam.Policy(self, f"Access{generation}")
        self.role.attach_inline_policy(self.policy)  # which a role that is imported as immutable leaves undone
        grant_group(
            self.policy,
            "serving",
            artifacts=artifacts,
            prefixes=prefixes,
            prefix=" and ".join(prefixes),
            repositories=[image.repository_arn(partition=cdk.Stack.of(self).partition)],
            log_group=arn(self, "logs", "log-group", naming.endpoint_log_group(endpoint_name)),
            endpoint=endpoint_name,
        )
        if network is not None:
            allow_network(self.policy, network=network, of="model")
            acknowledge_nameless(self.policy)
        else:
            acknowledge_wildcard(
                self.policy,
                resource="*",
                reason="ecr:GetAuthorizationToken and cloudwatch:PutMetricData have no resource type to name (service "
                "authorization reference); the second is bounded by a condition on cloudwatch:namespace.",
            )
        if role is not None and not isinstance(role, iam.Role):
            self._annotate_imported_role()

    @property
    def required_policy(self) -> iam.PolicyDocument:
        """Permissions that the role needs: publish them as an output where another team owns the role."""
        return self.policy.document

    @property
    def role_arn(self) -> str:
        """The role's ARN."""
        return self.role.role_arn

    @property
    def written(self) -> bool:
        """Whether its policy is written here: not that of a role that is immutable, or of another account."""
        resource = self.policy.node.default_child
        assert isinstance(resource, iam.CfnPolicy)  # noqa: S101 - the CDK makes it with the policy
        return bool(cdk.Stack.of(self).resolve(resource.roles))

    def _annotate_imported_role(self) -> None:
        if not self.written:
            cdk.Annotations.of(self).add_warning_v2(
                "tritonstack:role-policy-not-written",
                "The execution role is imported and cannot be written here (immutable, or another account's). Its "
                "owner must allow what `required_policy` says of this construct (of an environment: `tritonstack "
                "preflight --role-policy`), before the first deployment; otherwise the Model or the endpoint fails.",
            )
        cdk.Annotations.of(self).add_info_v2(
            "tritonstack:role-trust-not-written",
            "The execution role is imported, so that its trust policy cannot be written here: it must let "
            "sagemaker.amazonaws.com assume it.",
        )


@dataclass(frozen=True, kw_only=True)
class MultiModelData:
    """Every archive under a prefix; a request names one by ``TargetModel``.

    Attributes:
        prefix: the key prefix, with its trailing slash.
        cache: keep a model loaded after a request. Without it SageMaker unloads and deletes it after each one
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

    @property
    def archive(self) -> naming.ArchiveName | None:
        """The archive's name; None where the key ends in a name of another form."""
        return naming.ArchiveName.parse(self.key.rpartition("/")[2])


class TritonModel(Construct):
    """Triton's container, with one archive or many.

    The Model's name is generated: every property of it needs a replacement, and a fixed name would collide with the
    Model that is replaced.

    Attributes:
        model: the resource.
        data: the archives that it serves.
        data_url: where that lies, as an ``s3://`` URL.
        role: its execution role.
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
            image: the container's image.
            role: execution role; its policy is attached first.
            artifacts: the bucket of the archives.
            data: one archive, or a prefix with many.
            environment: the container's variables, at most 100 (API reference: ``ContainerDefinition``).
            network: the VPC that containers join. Default: None, SageMaker's own network.
            isolated: whether the container can reach nothing at all, VPC or not; SageMaker still brings it its
                archives, in both modes (developer guide: "Run Training and Inference Containers in Internet-Free
                Mode"; model deployment feature matrix). Default: False.
        """
        super().__init__(scope, construct_id)
        self.data = data
        self.role = role
        if isinstance(data, MultiModelData):
            mode, location = "MultiModel", data.prefix
            setting = "Enabled" if data.cache else "Disabled"
            cache = sagemaker.CfnModel.MultiModelConfigProperty(model_cache_setting=setting)
        else:
            mode, location, cache = "SingleModel", data.key, None
        self.data_url = f"s3://{artifacts.bucket_name}/{location}"
        self.model = sagemaker.CfnModel(
            self,
            "Model",
            execution_role_arn=role.role_arn,
            primary_container=sagemaker.CfnModel.ContainerDefinitionProperty(
                image=image.uri,
                mode=mode,
                model_data_url=self.data_url,
                multi_model_config=cache,
                environment=dict(environment),
            ),
            vpc_config=None
            if network is None
            else sagemaker.CfnModel.VpcConfigProperty(
                subnets=list(network.subnet_ids), security_group_ids=list(network.security_group_ids)
            ),
            enable_network_isolation=True if isolated else None,
        )
        self.model.node.add_dependency(role.policy)

    @property
    def name(self) -> str:
        """The generated name."""
        return self.model.attr_model_name

    @property
    def archive(self) -> naming.ArchiveName | None:
        """The one archive that it serves; None of many, and of a name of another form."""
        return self.data.archive if isinstance(self.data, SingleModelData) else None

    @property
    def multi_model(self) -> bool:
        """Whether a request names its model by ``TargetModel``."""
        return isinstance(self.data, MultiModelData)
