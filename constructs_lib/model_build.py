"""The build that makes archives: exports and proofs on a CPU, engines elsewhere, and the commit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_iam as iam
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge, acknowledge_wildcard
from constructs_lib.artifact_bucket import ArtifactBucketReference
from constructs_lib.build_access import BuildNetwork, acknowledge_nameless, allow_network, allow_pull
from constructs_lib.build_log import BuildLog
from constructs_lib.build_source import BuildSource
from constructs_lib.codebuild_project import codebuild_principal, log_config, vpc_config
from constructs_lib.engine_project import EngineProject
from constructs_lib.permission import allow, boundary
from constructs_lib.processing_role import JOBS_LOG, ProcessingRole
from constructs_lib.triton_image import TritonImage

PYTHON = "3.11"


@dataclass(frozen=True, kw_only=True)
class BuildMachine:
    """What a build runs on.

    Attributes:
        image: the CPU image, one of CodeBuild's or one in ECR.
        compute_type: CodeBuild's machine.
        timeout_minutes: the longest that a build takes.
        queue_minutes: the longest that it stands in the queue.
        network: the VPC, or None for CodeBuild's own network.
    """

    image: str
    compute_type: str
    timeout_minutes: int
    queue_minutes: int
    network: BuildNetwork | None = None


class ModelBuild(Construct):
    """The CodeBuild project that an order is given to, its log, and its role.

    Attributes:
        project: the project.
        policy: the one policy of its role.
        log: where it writes.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: str,
        artifacts: ArtifactBucketReference,
        source: BuildSource,
        environments: Sequence[str],
        weights: Sequence[str],
        machine: BuildMachine,
        log: BuildLog,
        permissions_boundary_arn: str | None = None,
    ) -> None:
        """Make the project.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            environment: the environment's name.
            artifacts: the bucket that orders come from and archives go to.
            source: what it starts from.
            environments: Python environments to install, by the names that ``scripts/setup.py`` knows.
            weights: URLs of the objects in S3 that recipes take weights from.
            machine: what it runs on.
            log: where it writes.
            permissions_boundary_arn: a managed policy that bounds the role, where the account demands one.
                Default: None.
        """
        super().__init__(scope, construct_id)
        self.log = log
        self._environment = environment
        self._role = iam.Role(
            self,
            "Role",
            description=f"Builds the archives of {environment}",
            assumed_by=codebuild_principal(self),
            permissions_boundary=boundary(self, permissions_boundary_arn),
        )
        self.policy = iam.Policy(self, "Access", roles=[self._role])
        self._allow_source(source, weights)
        self._allow_archives(artifacts)
        self._allow_parameters()
        allow(self.policy, "WriteLog", actions=["logs:CreateLogStream", "logs:PutLogEvents"], resources=[log.arn])
        own_image = None if machine.image.startswith("aws/codebuild/") else TritonImage.from_uri(machine.image)
        if own_image is not None:
            allow_pull(self.policy, images=[own_image])
        if machine.network is not None:
            allow_network(self.policy, network=machine.network, service="codebuild")
        if own_image is not None or machine.network is not None:
            acknowledge_nameless(self.policy)
        self.project = codebuild.CfnProject(
            self,
            "Project",
            description=f"Builds the archives of {environment} that are missing in its bucket",
            artifacts=codebuild.CfnProject.ArtifactsProperty(type="NO_ARTIFACTS"),
            environment=codebuild.CfnProject.EnvironmentProperty(
                type="LINUX_CONTAINER",
                image=machine.image,
                image_pull_credentials_type="CODEBUILD" if own_image is None else "SERVICE_ROLE",
                compute_type=machine.compute_type,
            ),
            source=codebuild.CfnProject.SourceProperty(
                type="S3", location=source.location, build_spec=buildspec(environments)
            ),
            service_role=self._role.role_arn,
            encryption_key=artifacts.key_arn,
            timeout_in_minutes=machine.timeout_minutes,
            queued_timeout_in_minutes=machine.queue_minutes,
            logs_config=log_config(log),
            vpc_config=vpc_config(machine.network),
        )
        if own_image is not None:
            acknowledge(
                self.project,
                finding="AwsSolutions-CB5",
                reason="The settings name an image of the account's own in ECR, which may hold the environments that "
                "builds need where they cannot be fetched; by default the image is one of CodeBuild's.",
            )
        # CodeBuild checks the role when the project is made, and again when a build starts.
        self.project.node.add_dependency(self.policy, log.group)

    def allow_engine_project(self, engines: EngineProject) -> None:
        """The build may start builds of this project, stop them, ask after them and read what they said."""
        allow(
            self.policy,
            "BuildEngines",
            actions=["codebuild:StartBuild", "codebuild:StopBuild", "codebuild:BatchGetBuilds"],
            resources=[engines.project.attr_arn],
        )
        allow(
            self.policy,
            "ReadEngineLog",
            actions=["logs:GetLogEvents", "logs:FilterLogEvents"],
            resources=[engines.log.arn],
        )

    def allow_processing(self, processing: ProcessingRole) -> None:
        """The build may run processing jobs of its environment's name with this role, and read what they said."""
        jobs = processing.jobs_arn
        allow(
            self.policy,
            "ProcessEngines",
            actions=[
                "sagemaker:AddTags",
                "sagemaker:CreateProcessingJob",
                "sagemaker:DescribeProcessingJob",
                "sagemaker:StopProcessingJob",
            ],
            resources=[jobs],
        )
        acknowledge_wildcard(
            self.policy,
            resource=jobs,
            reason="A job's name is used once and never again, so each ends in new digits; the pattern covers the "
            f"engine jobs of {self._environment} alone.",
        )
        allow(
            self.policy,
            "PassProcessingRole",
            actions=["iam:PassRole"],
            resources=[processing.role.role_arn],
            conditions={"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}},
        )
        streams = processing.streams_arn
        allow(
            self.policy,
            "ReadProcessingLog",
            actions=["logs:GetLogEvents", "logs:DescribeLogStreams", "logs:FilterLogEvents"],
            resources=[processing.log_arn, processing.group_arn, streams],
        )
        acknowledge_wildcard(
            self.policy,
            resource=streams,
            reason=f"SageMaker names a stream of {JOBS_LOG} after job and machine; the pattern covers those of the "
            f"engine jobs of {self._environment} alone.",
        )

    def _allow_source(self, source: BuildSource, weights: Sequence[str]) -> None:
        allow(
            self.policy,
            "ReadSource",
            actions=["s3:GetObject", "s3:GetObjectVersion"],
            resources=[source.object_arn],
        )
        allow(
            self.policy,
            "FindSource",
            actions=["s3:GetBucketAcl", "s3:GetBucketLocation"],
            resources=[source.bucket_arn],
        )
        if weights:
            partition = cdk.Stack.of(self).partition
            objects = [f"arn:{partition}:s3:::{url.removeprefix('s3://')}" for url in sorted(set(weights))]
            allow(self.policy, "ReadWeights", actions=["s3:GetObject"], resources=objects)

    def _allow_archives(self, artifacts: ArtifactBucketReference) -> None:
        """By prefix. Nothing that was committed can be deleted, and the waits cannot be read."""
        reasons = {
            "staging/orders/": "An order is called after the request that made it.",
            "staging/jobs/": "Each engine's job gets a folder of a new name, which the build removes.",
            "endpoints/": "The archives of every endpoint of the environment, under the platform of each order.",
            "manifests/": "A manifest, and files for clients, beside each archive of the environment.",
            "inputs/": "The inputs of an archive are called after its digest, which the order names.",
            "timing-caches/": "One file for each GPU model and TensorRT version that engines are built for.",
        }
        patterns = {prefix: artifacts.objects_arn(f"{prefix}*") for prefix in reasons}
        committed = [patterns[name] for name in ("endpoints/", "manifests/", "inputs/", "timing-caches/")]
        jobs = patterns["staging/jobs/"]
        allow(self.policy, "ReadFiles", actions=["s3:GetObject", "s3:GetObjectVersion"], resources=[*patterns.values()])
        allow(
            self.policy,
            "WriteFiles",
            actions=["s3:AbortMultipartUpload", "s3:ListMultipartUploadParts", "s3:PutObject"],
            resources=[jobs, *committed],
        )
        allow(self.policy, "RemoveJobs", actions=["s3:DeleteObject"], resources=[jobs])
        for prefix, reason in reasons.items():
            acknowledge_wildcard(
                self.policy,
                resource=patterns[prefix],
                reason=f"{reason} All keys below {prefix} are of that kind.",
            )
        allow(
            self.policy,
            "ListFiles",
            actions=["s3:ListBucket"],
            resources=[artifacts.bucket_arn],
            conditions={"StringLike": {"s3:prefix": [f"{prefix}*" for prefix in reasons]}},
        )
        allow(
            self.policy,
            "UseKey",
            actions=["kms:Decrypt", "kms:GenerateDataKey"],
            resources=[artifacts.key_arn],
        )

    def _allow_parameters(self) -> None:
        folder = cdk.Stack.of(self).format_arn(
            service="ssm", resource="parameter", resource_name=f"tritonstack/{self._environment}"
        )
        values = f"{folder}/*"
        allow(
            self.policy,
            "ReadParameters",
            actions=["ssm:GetParameter", "ssm:GetParameters", "ssm:GetParametersByPath"],
            resources=[folder, values],
        )
        acknowledge_wildcard(
            self.policy,
            resource=values,
            reason="Release records and the stacks' own values, all of this environment; models and endpoints come "
            "and go, so their names are not known here. None of them is a secret.",
        )


def buildspec(environments: Sequence[str]) -> str:
    """What a build does, as a buildspec: environments first, unless the image brings them, then the order."""
    names = " ".join(environments)
    document = {
        "version": "0.2",
        "env": {"variables": {"PYTHONUNBUFFERED": "1"}},
        "phases": {
            "install": {
                "runtime-versions": {"python": PYTHON},
                "commands": [f"test -e .envs/main/bin/python || python3 scripts/setup.py {names}"],
            },
            "build": {"commands": ['.envs/main/bin/python -m tritonstack prepare --order "$TRITONSTACK_ORDER"']},
        },
    }
    return json.dumps(document, indent=1)
