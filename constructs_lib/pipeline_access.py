"""The roles by which a pipeline of another account works in an environment: one that prepares, one that verifies."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge, acknowledge_wildcard
from constructs_lib.archive_making import (
    JobArns,
    allow_archives,
    allow_engine_builds,
    allow_engine_jobs,
    allow_parameters,
    allow_weights,
)
from constructs_lib.artifact_bucket import ArtifactBucketReference, build_log_name
from constructs_lib.permission import allow, boundary
from constructs_lib.processing_role import JOBS_LOG
from tritonstack import naming

SESSION_HOURS = 1
"""A role that is assumed from another role is assumed for an hour at most, whatever it allows (IAM user guide: "Role
chaining"); the SDK assumes it anew in time."""


class PipelineRole(Construct):
    """A role that the builds of a pipeline assume, and nobody else.

    Attributes:
        role: the role.
        policy: its one policy.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        role_name: str,
        description: str,
        trusted: str,
        permissions_boundary_arn: str | None = None,
    ) -> None:
        """Make the role.

        The trust policy names the pipeline's account and, as a condition, the one role in it: a role that is named as
        principal must be there first, and stays unknown once it was deleted and made anew (IAM user guide: "AWS JSON
        policy elements: Principal").

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            role_name: fixed, for the pipeline's account must name it.
            description: what it is for.
            trusted: the ARN of the role that assumes it.
            permissions_boundary_arn: a managed policy that bounds the role. Default: None.
        """
        super().__init__(scope, construct_id)
        self.role = iam.Role(
            self,
            "Role",
            role_name=role_name,
            description=description,
            assumed_by=iam.PrincipalWithConditions(
                iam.AccountPrincipal(trusted.split(":")[4]), {"ArnEquals": {"aws:PrincipalArn": trusted}}
            ),
            max_session_duration=cdk.Duration.hours(SESSION_HOURS),
            permissions_boundary=boundary(self, permissions_boundary_arn),
        )
        self.policy = iam.Policy(self, "Access", roles=[self.role])


def allow_preparing(
    policy: iam.Policy, *, environment: str, artifacts: ArtifactBucketReference, weights: Sequence[str]
) -> None:
    """What ``tritonstack prepare`` does in an environment, engines left out: what the environment's own build may."""
    allow_weights(policy, weights)
    allow_archives(policy, artifacts)
    allow_parameters(policy, environment)


def allow_engines_by_codebuild(policy: iam.Policy, *, environment: str, project_name: str) -> None:
    """The engines that the environment's own engine project builds."""
    stack = cdk.Stack.of(policy)
    log = stack.format_arn(
        service="logs",
        resource="log-group",
        resource_name=f"{build_log_name(environment=environment, of='engines')}:*",
        arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
    )
    project = stack.format_arn(service="codebuild", resource="project", resource_name=project_name)
    allow_engine_builds(policy, project_arn=project, log_arn=log)
    acknowledge_wildcard(
        policy,
        resource=log,
        reason="The streams of one log group, which CodeBuild names after builds that are to come.",
    )


def allow_engines_by_processing(policy: iam.Policy, *, environment: str, role_arn: str) -> None:
    """The engines that processing jobs of the environment's name build."""
    stack = cdk.Stack.of(policy)
    names = f"{environment}-engine-"
    log = stack.format_arn(
        service="logs", resource="log-group", resource_name=JOBS_LOG, arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME
    )
    jobs = JobArns(
        jobs=stack.format_arn(service="sagemaker", resource="processing-job", resource_name=f"{names}*"),
        log=log,
        group=f"{log}:log-stream:",
        streams=f"{log}:log-stream:{names}*",
    )
    allow_engine_jobs(policy, environment=environment, role_arn=role_arn, jobs=jobs)


def allow_verifying(
    policy: iam.Policy, *, environment: str, endpoints: Sequence[str], artifacts: ArtifactBucketReference
) -> None:
    """What ``tritonstack verify`` does: it reads what is deployed and recorded, and sends sample requests."""
    allow_parameters(policy, environment)
    _allow_endpoints(policy, environment=environment, endpoints=endpoints)
    stack = cdk.Stack.of(policy)
    reasons = {
        artifacts.objects_arn("manifests/*"): "The manifests of every archive of the environment, and the files for "
        "clients beside them.",
        artifacts.objects_arn("endpoints/*"): "Whether the archive that a record names is there; archives come and go.",
    }
    sets = f"arn:{stack.partition}:s3:::{_assets_bucket(stack)}/*.release-set"
    allow(policy, "ReadManifests", actions=["s3:GetObject"], resources=list(reasons))
    allow(policy, "ReadReleaseSets", actions=["s3:GetObject"], resources=[sets])
    reasons[sets] = (
        "What is deployed is told by a release set, an asset called after its content. Nothing else ends so."
    )
    for pattern, reason in reasons.items():
        acknowledge_wildcard(policy, resource=pattern, reason=reason)
    allow(
        policy,
        "ListArchives",
        actions=["s3:ListBucket"],
        resources=[artifacts.bucket_arn],
        conditions={"StringLike": {"s3:prefix": ["endpoints/*", "manifests/*"]}},
    )
    allow(
        policy,
        "DecryptManifests",
        actions=["kms:Decrypt"],
        resources=[artifacts.key_arn],
        conditions={"StringEquals": {"kms:ViaService": f"s3.{stack.region}.amazonaws.com"}},
    )


def _allow_endpoints(policy: iam.Policy, *, environment: str, endpoints: Sequence[str]) -> None:
    stack = cdk.Stack.of(policy)
    arns = [
        stack.format_arn(
            service="sagemaker",
            resource="endpoint",
            resource_name=naming.endpoint_name(environment=environment, endpoint=endpoint),
        )
        for endpoint in endpoints
    ]
    stacks = [
        stack.format_arn(
            service="cloudformation", resource="stack", resource_name=f"{environment}-serving-{endpoint}/*"
        )
        for endpoint in endpoints
    ]
    allow(policy, "AskModels", actions=["sagemaker:DescribeEndpoint", "sagemaker:InvokeEndpoint"], resources=arns)
    allow(
        policy,
        "SeeStacks",
        actions=[
            "cloudformation:DescribeStacks",
            "cloudformation:DescribeStackResources",
            "cloudformation:GetTemplate",
        ],
        resources=stacks,
    )
    for each in stacks:
        acknowledge_wildcard(
            policy,
            resource=each,
            reason="A stack's ARN ends in an id that CloudFormation gives; the name before it is whole.",
        )
    allow(policy, "SeeLoads", actions=["cloudwatch:GetMetricData"], resources=["*"])
    acknowledge(
        policy,
        finding="AwsSolutions-IAM5[Resource::*]",
        reason="cloudwatch:GetMetricData has no resource type and no condition key (service authorization reference, "
        "CloudWatch); it reads figures and changes nothing.",
    )


def _assets_bucket(stack: cdk.Stack) -> str:
    """Where the bootstrap of the stack's account keeps assets, as the stack's own synthesizer names it."""
    qualifier = stack.synthesizer.bootstrap_qualifier or cdk.DefaultStackSynthesizer.DEFAULT_QUALIFIER
    return f"cdk-{qualifier}-assets-{stack.account}-{stack.region}"
