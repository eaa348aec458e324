"""The part of a VPC that machines of SageMaker or CodeBuild join, and the permissions that joining takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from aws_cdk import aws_iam as iam

from constructs_lib.acknowledgement import acknowledge_wildcard
from constructs_lib.permission import allow_group, arn


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
    """The part of a VPC that builds join; a CodeBuild project also names the VPC.

    Attributes:
        vpc_id: the VPC.
    """

    vpc_id: str


def allow_network(policy: iam.Policy, *, network: JoinedNetwork, of: Literal["codebuild", "model"]) -> None:
    """Allow CodeBuild, or SageMaker for a Model, to place machines in the subnets and groups of ``network``."""
    interfaces = arn(policy, "ec2", "network-interface", "*")
    subnets = [arn(policy, "ec2", "subnet", name, account=network.subnet_owner) for name in network.subnet_ids]
    groups = [arn(policy, "ec2", "security-group", name) for name in network.security_group_ids]
    allow_group(policy, f"{of}-network", interfaces=interfaces, subnets=subnets, security_groups=groups)
    acknowledge_wildcard(
        policy,
        resource=interfaces,
        reason="A network interface has no name before it is made; subnets and security groups are named, and "
        "deletion and lending are bounded by a condition on the subnets.",
    )


def allow_any_network(policy: iam.Policy, *, of: Literal["processing", "recommender"]) -> None:
    """Allow SageMaker to place a job's machines in any VPC: validation of such a job fails if the policy names one.

    The policy needs ``acknowledge_nameless``.
    """
    allow_group(policy, f"{of}-network")
