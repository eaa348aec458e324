"""Builds of archives: the CPU build, the role of Processing jobs that build engines, and the permissions of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge_wildcard
from constructs_lib.artifact_bucket import ArtifactBucketReference
from constructs_lib.build_access import BuildNetwork, acknowledge_nameless, allow_jobs, allow_network, allow_pull
from constructs_lib.codebuild_project import (
    BuildLog,
    BuildMachine,
    BuildSource,
    EngineProject,
    buildspec,
    codebuild_principal,
    cpu_project,
)
from constructs_lib.permission import allow, boundary
from constructs_lib.triton_image import TritonImage
from tritonstack import aws_names

JOBS_LOG = aws_names.PROCESSING_JOBS
"""SageMaker's own log group for all processing jobs of the account; a job cannot name another."""
METRIC_NAMESPACE = aws_names.PROCESSING_JOBS


class ProcessingRole(Construct):
    """A role that reads its job and writes its output, pulls the Triton images, and logs.

    Attributes:
        role: the role.
        policy: its one policy.
        job_names: how the names of the jobs begin that run with it.
        jobs_arn: the pattern of their ARNs.
        log_arn: of the log group that they write into.
        group_arn: of the same, in the form that calls for all its streams are checked against.
        streams_arn: of their streams in it.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: str,
        artifacts: ArtifactBucketReference,
        images: Sequence[TritonImage],
        network: BuildNetwork | None = None,
        permissions_boundary_arn: str | None = None,
    ) -> None:
        """Make the role.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            environment: the environment's name.
            artifacts: where jobs lie.
            images: the Triton images that engines are built in, at least one.
            network: the VPC that jobs join, or None for SageMaker's own network.
            permissions_boundary_arn: a managed policy that bounds the role, where the account demands one.
                Default: None.
        """
        super().__init__(scope, construct_id)
        stack = cdk.Stack.of(self)
        self.job_names = f"{environment}-engine-"
        self.jobs_arn = stack.format_arn(
            service="sagemaker", resource="processing-job", resource_name=f"{self.job_names}*"
        )
        self.log_arn = stack.format_arn(
            service="logs", resource="log-group", resource_name=JOBS_LOG, arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME
        )
        self.group_arn = f"{self.log_arn}:log-stream:"  # as CloudWatch Logs checks a call for the whole group
        self.streams_arn = f"{self.log_arn}:log-stream:{self.job_names}*"
        self.role = iam.Role(
            self,
            "Role",
            description=f"Builds TensorRT engines of {environment} in SageMaker Processing",
            assumed_by=iam.ServicePrincipal(
                "sagemaker.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": stack.account}}
            ),
            permissions_boundary=boundary(self, permissions_boundary_arn),
        )
        self.policy = iam.Policy(self, "Access", roles=[self.role])
        allow_jobs(self.policy, artifacts=artifacts)
        allow(
            self.policy,
            "UseKey",
            actions=["kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey"],
            resources=[artifacts.key_arn],
        )
        # For the volume of an instance without disks of its own (developer guide: "CreateProcessingJob API: Execution
        # Role Permissions").
        allow(
            self.policy,
            "AttachEncryptedVolume",
            actions=["kms:CreateGrant"],
            resources=[artifacts.key_arn],
            conditions={"Bool": {"kms:GrantIsForAWSResource": "true"}},
        )
        allow_pull(self.policy, images=images)
        self._allow_logs(environment)
        if network is not None:
            allow_network(self.policy, network=network, service="sagemaker")
        acknowledge_nameless(self.policy)

    def _allow_logs(self, environment: str) -> None:
        allow(
            self.policy,
            "WriteLog",
            actions=["logs:CreateLogGroup", "logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
            resources=[self.log_arn, self.group_arn, self.streams_arn],
        )
        acknowledge_wildcard(
            self.policy,
            resource=self.streams_arn,
            reason="SageMaker names a stream after job and machine; the pattern covers those of the engine jobs of "
            f"{environment} alone.",
        )
        allow(
            self.policy,
            "WriteMetrics",
            actions=["cloudwatch:PutMetricData"],
            resources=["*"],
            conditions={"StringEquals": {"cloudwatch:namespace": METRIC_NAMESPACE}},
        )


@dataclass(frozen=True, kw_only=True)
class JobArns:
    """The processing jobs of an environment that build engines, and what they write.

    Attributes:
        jobs: the pattern of their ARNs.
        log: of the log group that they write into.
        group: of the same, in the form that calls for all its streams are checked against.
        streams: of their streams in it.
    """

    jobs: str
    log: str
    group: str
    streams: str


def allow_archives(policy: iam.Policy, artifacts: ArtifactBucketReference) -> None:
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
    allow(policy, "ReadFiles", actions=["s3:GetObject", "s3:GetObjectVersion"], resources=[*patterns.values()])
    allow(
        policy,
        "WriteFiles",
        actions=["s3:AbortMultipartUpload", "s3:ListMultipartUploadParts", "s3:PutObject"],
        resources=[jobs, *committed],
    )
    allow(policy, "RemoveJobs", actions=["s3:DeleteObject"], resources=[jobs])
    for prefix, reason in reasons.items():
        acknowledge_wildcard(
            policy,
            resource=patterns[prefix],
            reason=f"{reason} All keys below {prefix} are of that kind.",
        )
    allow(
        policy,
        "ListFiles",
        actions=["s3:ListBucket"],
        resources=[artifacts.bucket_arn],
        conditions={"StringLike": {"s3:prefix": [f"{prefix}*" for prefix in reasons]}},
    )
    allow(policy, "UseKey", actions=["kms:Decrypt", "kms:GenerateDataKey"], resources=[artifacts.key_arn])


def allow_parameters(policy: iam.Policy, environment: str) -> None:
    """The parameters of the environment may be read: release records and the stacks' own values."""
    folder = cdk.Stack.of(policy).format_arn(
        service="ssm", resource="parameter", resource_name=f"tritonstack/{environment}"
    )
    values = f"{folder}/*"
    allow(
        policy,
        "ReadParameters",
        actions=["ssm:GetParameter", "ssm:GetParameters", "ssm:GetParametersByPath"],
        resources=[folder, values],
    )
    acknowledge_wildcard(
        policy,
        resource=values,
        reason="Release records and the stacks' own values, all of this environment; models and endpoints come "
        "and go, so their names are not known here. None of them is a secret.",
    )


def allow_weights(policy: iam.Policy, weights: Sequence[str]) -> None:
    """The objects in S3 (``s3://…``) that recipes take weights from may be read."""
    if weights:
        partition = cdk.Stack.of(policy).partition
        objects = [f"arn:{partition}:s3:::{url.removeprefix('s3://')}" for url in sorted(set(weights))]
        allow(policy, "ReadWeights", actions=["s3:GetObject"], resources=objects)


def allow_engine_builds(policy: iam.Policy, *, project_arn: str, log_arn: str) -> None:
    """Builds of the engine project may be started, stopped, asked after and read."""
    allow(
        policy,
        "BuildEngines",
        actions=["codebuild:StartBuild", "codebuild:StopBuild", "codebuild:BatchGetBuilds"],
        resources=[project_arn],
    )
    allow(policy, "ReadEngineLog", actions=["logs:GetLogEvents", "logs:FilterLogEvents"], resources=[log_arn])


def allow_engine_jobs(policy: iam.Policy, *, environment: str, role_arn: str, jobs: JobArns) -> None:
    """Processing jobs of the environment's name may be run with this role, and what they said be read."""
    allow(
        policy,
        "ProcessEngines",
        actions=[
            "sagemaker:AddTags",
            "sagemaker:CreateProcessingJob",
            "sagemaker:DescribeProcessingJob",
            "sagemaker:StopProcessingJob",
        ],
        resources=[jobs.jobs],
    )
    acknowledge_wildcard(
        policy,
        resource=jobs.jobs,
        reason="A job's name is used once and never again, so each ends in new digits; the pattern covers the "
        f"engine jobs of {environment} alone.",
    )
    allow(
        policy,
        "PassProcessingRole",
        actions=["iam:PassRole"],
        resources=[role_arn],
        conditions={"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}},
    )
    allow(
        policy,
        "ReadProcessingLog",
        actions=["logs:GetLogEvents", "logs:DescribeLogStreams", "logs:FilterLogEvents"],
        resources=[jobs.log, jobs.group, jobs.streams],
    )
    acknowledge_wildcard(
        policy,
        resource=jobs.streams,
        reason=f"SageMaker names a stream of {JOBS_LOG} after job and machine; the pattern covers those of the "
        f"engine jobs of {environment} alone.",
    )


PREPARE = '.envs/main/bin/python -m tritonstack prepare --order "$TRITONSTACK_ORDER"'
"""What a build does: the order."""


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
        source.allow_reading(self.policy)
        allow_weights(self.policy, weights)
        allow_archives(self.policy, artifacts)
        allow_parameters(self.policy, environment)
        self.project = cpu_project(
            self,
            "Project",
            description=f"Builds the archives of {environment} that are missing in its bucket",
            build_spec=buildspec(PREPARE, environments=environments),
            role=self._role,
            policy=self.policy,
            source=source,
            machine=machine,
            artifacts=artifacts,
            log=log,
        )

    def allow_engine_project(self, engines: EngineProject) -> None:
        """The build may start builds of this project, stop them, ask after them and read what they said."""
        allow_engine_builds(self.policy, project_arn=engines.project.attr_arn, log_arn=engines.log.arn)

    def allow_processing(self, processing: ProcessingRole) -> None:
        """The build may run processing jobs of its environment's name with this role, and read what they said."""
        allow_engine_jobs(
            self.policy,
            environment=self._environment,
            role_arn=processing.role.role_arn,
            jobs=JobArns(
                jobs=processing.jobs_arn,
                log=processing.log_arn,
                group=processing.group_arn,
                streams=processing.streams_arn,
            ),
        )
