"""Statements of whoever makes an environment's archives: the build of its builds stack, and a pipeline's own step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_iam as iam

from constructs_lib.acknowledgement import acknowledge_wildcard
from constructs_lib.artifact_bucket import ArtifactBucketReference
from constructs_lib.permission import allow
from constructs_lib.processing_role import JOBS_LOG


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
