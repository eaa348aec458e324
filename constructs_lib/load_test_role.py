"""The role that SageMaker Inference Recommender's jobs run with: they make endpoints of their own and call them."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge_wildcard
from constructs_lib.artifact_bucket import ENDPOINT_LOGS, ArtifactBucketReference
from constructs_lib.build_access import JoinedNetwork, acknowledge_nameless, allow_network, allow_pull
from constructs_lib.permission import allow, boundary
from constructs_lib.triton_image import TritonImage

JOBS_LOG = "/aws/sagemaker/InferenceRecommendationsJobs"
"""SageMaker's own log group for all such jobs of the account (developer guide: "Get your load test results")."""
METRIC_NAMESPACES = ("AWS/SageMaker", "/aws/sagemaker/Endpoints", JOBS_LOG)
MADE = ("endpoint", "endpoint-config", "model")


class LoadTestRole(Construct):
    """Reads archives and payloads, pulls the image, makes and calls endpoints named after its jobs, and no others.

    AWS lists no least set of actions for this role (its guide has AmazonSageMakerFullAccess): the actions here are
    those that the job's documented work takes, on the names that its documentation gives to what it makes.

    Attributes:
        role: the role.
        policy: its one policy.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: str,
        names: str,
        artifacts: ArtifactBucketReference,
        archive_prefixes: Sequence[str],
        images: Sequence[TritonImage],
        network: JoinedNetwork | None = None,
        permissions_boundary_arn: str | None = None,
    ) -> None:
        """Make the role.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            environment: the environment's name.
            names: how the names of jobs begin, and of what they make.
            artifacts: where archives and payloads lie.
            archive_prefixes: where the archives of the tested endpoints lie.
            images: what the tested endpoints run.
            network: the VPC that jobs join, or None for SageMaker's own network.
            permissions_boundary_arn: a managed policy that bounds the role. Default: None.
        """
        super().__init__(scope, construct_id)
        self._names = names
        stack = cdk.Stack.of(self)
        self.role = iam.Role(
            self,
            "Role",
            description=f"Load tests of {environment} with SageMaker Inference Recommender",
            assumed_by=iam.ServicePrincipal(
                "sagemaker.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": stack.account}}
            ),
            permissions_boundary=boundary(self, permissions_boundary_arn),
        )
        self.policy = iam.Policy(self, "Access", roles=[self.role])
        self._allow_objects(artifacts, archive_prefixes)
        allow(self.policy, "UseKey", actions=["kms:Decrypt"], resources=[artifacts.key_arn])
        allow_pull(self.policy, images=images)
        self._allow_endpoints()
        self._allow_logs()
        if network is not None:
            allow_network(self.policy, network=network, service="sagemaker")
        acknowledge_nameless(self.policy)

    def _allow_objects(self, artifacts: ArtifactBucketReference, archive_prefixes: Sequence[str]) -> None:
        patterns = [*(f"{prefix}*" for prefix in archive_prefixes), "load-tests/*/payloads/*"]
        objects = [artifacts.objects_arn(pattern) for pattern in patterns]
        allow(self.policy, "ReadArchivesAndPayloads", actions=["s3:GetObject"], resources=objects)
        for each in objects:
            acknowledge_wildcard(
                self.policy,
                resource=each,
                reason="An archive is named after its digest, a payload lies in the folder of its test; both come "
                "after the deployment that made this role.",
            )
        allow(
            self.policy,
            "ListArchivesAndPayloads",
            actions=["s3:ListBucket"],
            resources=[artifacts.bucket_arn],
            conditions={"StringLike": {"s3:prefix": patterns}},
        )

    def _allow_endpoints(self) -> None:
        stack = cdk.Stack.of(self)
        made = [stack.format_arn(service="sagemaker", resource=one, resource_name=f"{self._names}*") for one in MADE]
        allow(
            self.policy,
            "MakeAndCallEndpoints",
            actions=[
                "sagemaker:AddTags",
                "sagemaker:CreateEndpoint",
                "sagemaker:CreateEndpointConfig",
                "sagemaker:CreateModel",
                "sagemaker:DeleteEndpoint",
                "sagemaker:DeleteEndpointConfig",
                "sagemaker:DeleteModel",
                "sagemaker:DescribeEndpoint",
                "sagemaker:DescribeEndpointConfig",
                "sagemaker:DescribeModel",
                "sagemaker:InvokeEndpoint",
            ],
            resources=made,
        )
        packages = stack.format_arn(service="sagemaker", resource="model-package", resource_name=f"{self._names}*")
        allow(self.policy, "ReadPackages", actions=["sagemaker:DescribeModelPackage"], resources=[packages])
        for each in (*made, packages):
            acknowledge_wildcard(
                self.policy,
                resource=each,
                reason="Each test has names of its own, and what its jobs make is named after them; the pattern covers "
                "the tests of this environment alone.",
            )
        allow(
            self.policy,
            "PassItself",
            actions=["iam:PassRole"],
            resources=[self.role.role_arn],
            conditions={"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}},
        )

    def _allow_logs(self) -> None:
        stack = cdk.Stack.of(self)
        for sid, name in (("WriteJobLog", JOBS_LOG), ("WriteEndpointLogs", f"{ENDPOINT_LOGS}{self._names}*")):
            group = stack.format_arn(
                service="logs",
                resource="log-group",
                resource_name=name,
                arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
            )
            streams = f"{group}:log-stream:*"
            allow(
                self.policy,
                sid,
                actions=[
                    "logs:CreateLogGroup",
                    "logs:CreateLogStream",
                    "logs:DescribeLogStreams",
                    "logs:PutLogEvents",
                ],
                resources=[group, streams],
            )
            for each in (group, streams):
                if "*" in each.removeprefix("arn:"):
                    acknowledge_wildcard(
                        self.policy,
                        resource=each,
                        reason="SageMaker makes these groups and streams, and names them after jobs, endpoints and "
                        "instances; the pattern covers Inference Recommender's log and this environment's tests.",
                    )
        allow(
            self.policy,
            "WriteMetrics",
            actions=["cloudwatch:PutMetricData"],
            resources=["*"],
            conditions={"StringEquals": {"cloudwatch:namespace": list(METRIC_NAMESPACES)}},
        )
        allow(self.policy, "ReadMetrics", actions=["cloudwatch:GetMetricData"], resources=["*"])
