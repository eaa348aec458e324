"""Policy statements and roles that several constructs share; house rules and tags of an account."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import aws_cdk as cdk
import jsii
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct, IConstruct

from constructs_lib.acknowledgement import acknowledge_wildcard
from tritonstack import naming

if TYPE_CHECKING:
    from constructs_lib.artifact_bucket import ArtifactBucketReference
    from constructs_lib.triton_model import TritonImage


def allow(
    policy: iam.Policy,
    sid: str,
    *,
    actions: Sequence[str],
    resources: Sequence[str],
    conditions: Mapping[str, Mapping[str, object]] | None = None,
) -> None:
    """Add one statement to a policy.

    Args:
        policy: the policy.
        sid: what the statement is for, in CamelCase: a reviewer reads it in the difference of two templates.
        actions: each spelled out; a wildcard in an action would grant what comes to exist later.
        resources: ARNs; for a pattern, say why with ``acknowledge_wildcard``.
        conditions: operator → condition key → value or values.
    """
    policy.add_statements(
        iam.PolicyStatement(sid=sid, actions=list(actions), resources=list(resources), conditions=conditions)
    )


def parameter_arns(scope: Construct, parameters: Mapping[str, str]) -> list[str]:
    """ARNs of SSM parameters in the stack's account and region. ``parameters``: environment variable → name."""
    stack = cdk.Stack.of(scope)
    return [
        stack.format_arn(service="ssm", resource="parameter", resource_name=name.removeprefix("/"))
        for name in sorted(set(parameters.values()))
    ]


def boundary(scope: Construct, arn: str | None) -> iam.IManagedPolicy | None:
    """The managed policy with this ARN, to bound the one role under ``scope`` with; None where there is none."""
    return None if arn is None else iam.ManagedPolicy.from_managed_policy_arn(scope, "PermissionsBoundary", arn)


@jsii.implements(cdk.IAspect)
class HouseRules:
    """Sets the path of every role, and the retention of every log group whose name is generated: those of functions.

    An aspect, so that a role which is added later cannot be forgotten. It visits every construct, which takes a tenth
    of a second; apps without such rules do without it.
    """

    def __init__(self, *, role_path: str | None = None, function_log_days: int | None = None) -> None:
        """Rules; None leaves what the constructs say."""
        self._role_path = role_path
        self._days = function_log_days

    def visit(self, node: IConstruct) -> None:
        """Called by the CDK with each construct."""
        if isinstance(node, iam.CfnRole) and self._role_path is not None:
            node.path = self._role_path
        elif isinstance(node, logs.CfnLogGroup) and self._days is not None and _generated(node.log_group_name):
            node.retention_in_days = self._days


def _generated(name: str | None) -> bool:
    """Whether CloudFormation makes the name: the construct above then gives a token that resolves to nothing."""
    return name is None or bool(cdk.Token.is_unresolved(name))


ENVIRONMENT_TAG = naming.ENVIRONMENT_TAG
ENDPOINT_TAG = naming.ENDPOINT_TAG
LOCAL_MAX_LOADED_MODELS_TAG = naming.LOCAL_MAX_LOADED_MODELS_TAG


def tag_all(scope: IConstruct, tags: Mapping[str, str]) -> None:
    """Put tags on every resource under ``scope`` that takes tags."""
    for key in sorted(tags):
        cdk.Tags.of(scope).add(key, tags[key])


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
