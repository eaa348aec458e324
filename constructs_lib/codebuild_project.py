"""CodeBuild projects: source, log, network, and the CPU project that runs this repository."""

from __future__ import annotations

import atexit
import functools
import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge
from constructs_lib.artifact_bucket import ArtifactBucketReference, BuildLogOf
from constructs_lib.joined_network import BuildNetwork, allow_network
from constructs_lib.permission import acknowledge_nameless, allow_group, parameter_arn
from constructs_lib.triton_model import TritonImage, allow_pull
from tritonstack import naming
from tritonstack.arns import bucket_arn
from tritonstack.config.builds import QUEUE_MINUTES, BuildSettings, HubSettings
from tritonstack.config.load_test import BenchBuildSettings
from tritonstack.disk import temporary_folder
from tritonstack.paths import CARRIED, LIBRARY, repository_path


class BuildLog(Construct):
    """A log group that the builds of an environment write into, or its VPC.

    Its name is fixed, not generated: the key's policy names it before it exists, so that no other log group can use the
    key.

    Attributes:
        arn: the ARN that permissions for its streams name.
        group: the resource, which must be there before anything writes.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: str,
        of: BuildLogOf,
        days: int,
        artifacts: ArtifactBucketReference,
    ) -> None:
        """Make the log group, under the key of ``artifacts``. ``days``: a retention that CloudWatch Logs takes."""
        super().__init__(scope, construct_id)
        self.name = naming.log_group(environment=environment, of=of)
        self.group = logs.CfnLogGroup(
            self, "Group", log_group_name=self.name, retention_in_days=days, kms_key_id=artifacts.key_arn
        )
        self.group.apply_removal_policy(cdk.RemovalPolicy.DESTROY)
        self.arn: str = self.group.attr_arn


MODELS, REQUIREMENTS = "model_repos", "requirements"
PACKAGES = ("tritonstack", "tritonstack_capacity", "tritonstack_local")
"""Builds prove archives in the local Triton, load tests measure. A package that is not installed is left out."""
FILES = ("pyproject.toml", "scripts/setup.py")
_LEFT_OUT = frozenset({"__pycache__", CARRIED})


class BuildSource(Construct):
    """The source of a build, as an asset. Its hash covers names and contents, and neither time stamps nor paths."""

    def __init__(self, scope: Construct, construct_id: str, *, models: Path | None) -> None:
        """Make the asset. ``models``: the folder of the model folders; in the asset it is ``model_repos``."""
        super().__init__(scope, construct_id)
        folder, digest = _gathered(None if models is None else models.resolve())
        self.asset = s3_assets.Asset(
            self, "Files", path=folder, asset_hash=digest, asset_hash_type=cdk.AssetHashType.CUSTOM
        )

    @property
    def location(self) -> str:
        """Bucket and key, as CodeBuild writes them."""
        return f"{self.asset.s3_bucket_name}/{self.asset.s3_object_key}"

    def allow_reading(self, policy: iam.Policy) -> None:
        """Allow a build's role to download the source; CodeBuild looks up the bucket first."""
        bucket = bucket_arn(self.asset.s3_bucket_name, partition=cdk.Stack.of(self).partition)
        allow_group(policy, "build-source", source=f"{bucket}/{self.asset.s3_object_key}", staging=bucket)


def source_files(models: Path | None) -> Iterator[tuple[str, Path]]:
    """Name in the asset → file, in the order of the names. Links and compiled Python are left out.

    Lock files that lie next to ``models`` take the place of this repository's: digests cover them.
    """
    found = {name: repository_path(name) for name in FILES}
    found |= _below(repository_path(REQUIREMENTS), REQUIREMENTS)
    for package in PACKAGES:
        found |= _below(LIBRARY / package, package)
    if models is not None:
        found |= _below(models.parent / REQUIREMENTS, REQUIREMENTS)
        found |= _below(models, MODELS)
    yield from sorted(found.items())


def _below(folder: Path, name: str) -> dict[str, Path]:
    return {
        f"{name}/{path.relative_to(folder).as_posix()}": path
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink() and not _LEFT_OUT & set(path.relative_to(folder).parts)
    }


@functools.cache
def _gathered(models: Path | None) -> tuple[str, str]:
    """A folder with the files, deleted with the process, and the SHA-256 of their names and contents."""
    digest = hashlib.sha256()
    folder = _temporary() / hashlib.sha256(str(models).encode()).hexdigest()[:16]
    for name, path in source_files(models):
        content = path.read_bytes()
        digest.update(f"{name}\n{len(content)}\n".encode() + content)
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    return str(folder), digest.hexdigest()


@functools.cache
def _temporary() -> Path:
    """A folder that is deleted at the end of this process, or by the next one where this one is killed."""
    held = ExitStack()
    atexit.register(held.close)
    return held.enter_context(temporary_folder("build-source"))


def acknowledge_role_paths(stack: cdk.Stack) -> None:
    """Accept a finding of CDK's validator on projects whose role has a path: it reads the ARN in the template as a Ref.

    Called when the projects of the stack are made.
    """
    for construct in stack.node.find_all():
        if isinstance(construct, codebuild.CfnProject):
            acknowledge(
                construct,
                finding="CloudFormation-Validate::E3050",
                reason="The rule asks for the role's ARN where it has a path, and the template has it: ServiceRole is "
                "an Fn::GetAtt of Arn, which CDK's validator reports as a Ref.",
            )


def log_config(log: BuildLog) -> codebuild.CfnProject.LogsConfigProperty:
    """A project's log, in one group of CloudWatch Logs."""
    return codebuild.CfnProject.LogsConfigProperty(
        cloud_watch_logs=codebuild.CfnProject.CloudWatchLogsConfigProperty(status="ENABLED", group_name=log.name)
    )


def vpc_config(network: BuildNetwork | None) -> codebuild.CfnProject.VpcConfigProperty | None:
    """A project's VPC, or None for CodeBuild's own network."""
    if network is None:
        return None
    return codebuild.CfnProject.VpcConfigProperty(
        vpc_id=network.vpc_id, subnets=list(network.subnet_ids), security_group_ids=list(network.security_group_ids)
    )


PYTHON = "3.11"


def cpu_project(
    scope: Construct,
    *,
    description: str,
    build_spec: str,
    role: iam.Role,
    policy: iam.Policy,
    source: BuildSource,
    machine: BuildSettings | BenchBuildSettings,
    network: BuildNetwork | None,
    hub: HubSettings | None = None,
    artifacts: ArtifactBucketReference,
    log: BuildLog,
) -> codebuild.CfnProject:
    """Make the project; its role, by its one ``policy``, may write the log, pull the image and join the network.

    ``network``: None for CodeBuild's own. ``hub``: its variables are the project's.
    """
    allow_group(policy, "write-log", log=log.arn)
    own_image = TritonImage.of_machine(machine.image)
    if own_image is not None:
        allow_pull(policy, images=[own_image])
    if network is not None:
        allow_network(policy, network=network, of="codebuild")
    if own_image is not None or network is not None:
        acknowledge_nameless(policy)
    if hub is not None and hub.parameters:
        secrets = sorted({parameter_arn(scope, name) for name in hub.parameters.values()})
        allow_group(policy, "build-variables", variables=secrets)
    project = codebuild.CfnProject(
        scope,
        "Project",
        description=description,
        artifacts=codebuild.CfnProject.ArtifactsProperty(type="NO_ARTIFACTS"),
        environment=codebuild.CfnProject.EnvironmentProperty(
            type="LINUX_CONTAINER",
            image=machine.image,
            image_pull_credentials_type="CODEBUILD" if own_image is None else "SERVICE_ROLE",
            compute_type=machine.compute_type,
            environment_variables=None if hub is None else _variables(hub),
        ),
        source=codebuild.CfnProject.SourceProperty(type="S3", location=source.location, build_spec=build_spec),
        service_role=role.role_arn,
        encryption_key=artifacts.key_arn,
        timeout_in_minutes=machine.timeout_minutes,
        queued_timeout_in_minutes=QUEUE_MINUTES,
        logs_config=log_config(log),
        vpc_config=vpc_config(network),
    )
    if own_image is not None:
        acknowledge(
            project,
            finding="AwsSolutions-CB5",
            reason="The settings name an image of the account's own in ECR, which may hold the environments that "
            "builds need where they cannot be fetched; by default the image is one of CodeBuild's.",
        )
    # CodeBuild checks the role when the project is made, and again when a build starts.
    project.node.add_dependency(policy, log.group)
    return project


def _variables(hub: HubSettings) -> list[codebuild.CfnProject.EnvironmentVariableProperty] | None:
    """The environment variables of a project; None where there are none.

    SSM decrypts under the key aws/ssm for every principal of the account that may read the parameter (Systems Manager
    user guide: "Restricting decryption of SecureString parameter values").
    """
    made = [
        codebuild.CfnProject.EnvironmentVariableProperty(name=name, type=kind, value=value)
        for kind, named in (("PLAINTEXT", hub.variables), ("PARAMETER_STORE", hub.parameters))
        for name, value in sorted(named.items())
    ]
    return made or None


def buildspec(command: str, *, environments: Sequence[str]) -> str:
    """A build specification: make the repository's Python environments, unless the image has them; run a command."""
    document = {
        "version": "0.2",
        "env": {"variables": {"PYTHONUNBUFFERED": "1"}},
        "phases": {
            "install": {
                "runtime-versions": {"python": PYTHON},
                "commands": [f"test -e .envs/main/bin/python || python3 scripts/setup.py {' '.join(environments)}"],
            },
            "build": {"commands": [command]},
        },
    }
    return json.dumps(document, indent=1)
