"""The role of the SageMaker Processing jobs that build TensorRT engines on GPUs that CodeBuild does not have."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge_wildcard
from constructs_lib.artifact_bucket import ArtifactBucketReference
from constructs_lib.build_access import BuildNetwork, acknowledge_nameless, allow_jobs, allow_network, allow_pull
from constructs_lib.permission import allow, boundary
from constructs_lib.triton_image import TritonImage

JOBS_LOG = "/aws/sagemaker/ProcessingJobs"
"""SageMaker's own log group for all processing jobs of the account; a job cannot name another."""
METRIC_NAMESPACE = "/aws/sagemaker/ProcessingJobs"


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
