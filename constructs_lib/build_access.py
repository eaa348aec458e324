"""Statements that the roles of several builders share: job folders, images, network interfaces."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import aws_cdk as cdk
from aws_cdk import aws_iam as iam

from constructs_lib.acknowledgement import acknowledge_wildcard
from constructs_lib.artifact_bucket import ArtifactBucketReference
from constructs_lib.permission import allow
from constructs_lib.triton_image import TritonImage

JOBS = "staging/jobs/"


@dataclass(frozen=True, kw_only=True)
class JoinedNetwork:
    """The part of a VPC that machines of SageMaker or CodeBuild join.

    Attributes:
        subnet_ids: its subnets.
        security_group_ids: its security groups.
        subnet_owner: the account that shares the subnets (AWS RAM); None: the stack's own.
    """

    subnet_ids: tuple[str, ...]
    security_group_ids: tuple[str, ...]
    subnet_owner: str | None = None


@dataclass(frozen=True, kw_only=True)
class BuildNetwork(JoinedNetwork):
    """The same for builders; a CodeBuild project also names the VPC.

    Attributes:
        vpc_id: the VPC.
    """

    vpc_id: str


def allow_jobs(policy: iam.Policy, *, artifacts: ArtifactBucketReference) -> None:
    """An engine's machine reads its job and leaves its output, and sees nothing else of the bucket."""
    jobs = artifacts.objects_arn(f"{JOBS}*")
    allow(
        policy,
        "ReadAndWriteJobs",
        actions=["s3:AbortMultipartUpload", "s3:GetObject", "s3:GetObjectVersion", "s3:PutObject"],
        resources=[jobs],
    )
    acknowledge_wildcard(
        policy,
        resource=jobs,
        reason=f"Each build makes folders of new names below {JOBS} for the jobs of its engines; nothing else lies "
        "there, and what does is removed after the build.",
    )
    allow(
        policy,
        "ListJobs",
        actions=["s3:ListBucket"],
        resources=[artifacts.bucket_arn],
        conditions={"StringLike": {"s3:prefix": [f"{JOBS}*"]}},
    )


def allow_pull(policy: iam.Policy, *, images: Iterable[TritonImage]) -> None:
    """The images' repositories may be pulled from, and no other."""
    partition = cdk.Stack.of(policy).partition
    allow(
        policy,
        "PullImage",
        actions=["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"],
        resources=sorted({image.repository_arn(partition=partition) for image in images}),
    )
    allow(policy, "LogInToRegistry", actions=["ecr:GetAuthorizationToken"], resources=["*"])


def allow_network(policy: iam.Policy, *, network: JoinedNetwork, service: Literal["codebuild", "sagemaker"]) -> None:
    """A service may put its machines into the subnets and security groups of ``network``.

    The actions are those that the services ask for ("Use CodeBuild with Amazon Virtual Private Cloud"; "Give SageMaker
    AI Processing Jobs Access to Resources in Your Amazon VPC"). Only CodeBuild's guide names the service that an
    interface is lent to; what SageMaker's is called there is not known, so only the subnets bound it.

    A shared subnet's ARN carries the account of its owner; interfaces and security groups in it are the participant's
    (VPC user guide, "Responsibilities and permissions for owners and participants").
    """
    stack = cdk.Stack.of(policy)

    def arn(resource: str, name: str, *, account: str | None = None) -> str:
        return stack.format_arn(service="ec2", resource=resource, resource_name=name, account=account)

    interfaces = arn("network-interface", "*")
    subnets = [arn("subnet", name, account=network.subnet_owner) for name in network.subnet_ids]
    groups = [arn("security-group", name) for name in network.security_group_ids]
    within: dict[str, dict[str, object]] = {"ArnEquals": {"ec2:Subnet": subnets}}
    lent: dict[str, dict[str, object]] = dict(within)
    if service == "codebuild":
        lent["StringEquals"] = {"ec2:AuthorizedService": "codebuild.amazonaws.com"}
    allow(policy, "MakeInterfaces", actions=["ec2:CreateNetworkInterface"], resources=[interfaces, *subnets, *groups])
    allow(
        policy,
        "RemoveInterfaces",
        actions=["ec2:DeleteNetworkInterface"],
        resources=[interfaces],
        conditions=within,
    )
    allow(
        policy,
        "LendInterfaces",
        actions=["ec2:CreateNetworkInterfacePermission"],
        resources=[interfaces],
        conditions=lent,
    )
    if service == "sagemaker":
        allow(policy, "TakeInterfacesBack", actions=["ec2:DeleteNetworkInterfacePermission"], resources=["*"])
    allow(
        policy,
        "DescribeNetwork",
        actions=[
            "ec2:DescribeDhcpOptions",
            "ec2:DescribeNetworkInterfaces",
            "ec2:DescribeSecurityGroups",
            "ec2:DescribeSubnets",
            "ec2:DescribeVpcs",
        ],
        resources=["*"],
    )
    acknowledge_wildcard(
        policy,
        resource=interfaces,
        reason="A network interface has no name before it is made; subnets and security groups are named, and "
        "deletion and lending are bounded by a condition on the subnets.",
    )


def acknowledge_nameless(policy: iam.Policy) -> None:
    """The one acknowledgement of ``*`` in a builder's policy, for whichever of these actions it has."""
    acknowledge_wildcard(
        policy,
        resource="*",
        reason="ecr:GetAuthorizationToken, CloudWatch's PutMetricData, GetMetricData and GetMetricStatistics, "
        "ec2:DeleteNetworkInterfacePermission and EC2's Describe actions have no resource type to name (service "
        "authorization reference); metrics are written under a condition on cloudwatch:namespace, and reading them "
        "changes nothing.",
    )
