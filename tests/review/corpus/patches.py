"""Changes that no setting makes: of constructs, once a stage has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3

from stacks.stage import EnvironmentStage


def widen_bucket_policy(stage: EnvironmentStage) -> None:
    """Another account may read every archive."""
    bucket = stage.artifacts.artifacts.bucket
    bucket.add_to_resource_policy(
        iam.PolicyStatement(
            sid="OfAnotherAccount",
            principals=[iam.AccountPrincipal("210987654321")],
            actions=["s3:GetObject"],
            resources=[bucket.arn_for_objects("*")],
        )
    )


def give_the_containers_every_action(stage: EnvironmentStage) -> None:
    """The execution role may do all of S3, on everything."""
    _policy(stage, "ExecutionRole").add_statements(
        iam.PolicyStatement(sid="Everything", actions=["s3:*"], resources=["*"])
    )


def open_the_bucket(stage: EnvironmentStage) -> None:
    """The archives' bucket blocks no public access any more."""
    found = stage.artifacts.artifacts.bucket.node.default_child
    assert isinstance(found, s3.CfnBucket)
    found.public_access_block_configuration = None


def open_a_port(stage: EnvironmentStage) -> None:
    """Port 443 of the containers' security group is open to every address."""
    assert stage.network is not None
    group = next(each for each in stage.network.node.find_all() if isinstance(each, ec2.CfnSecurityGroup))
    group.security_group_ingress = [
        ec2.CfnSecurityGroup.IngressProperty(
            ip_protocol="tcp", from_port=443, to_port=443, cidr_ip="0.0.0.0/0", description="everybody"
        )
    ]


def rename_the_endpoint(stage: EnvironmentStage) -> None:
    """The endpoint's name at SageMaker, which its callers use."""
    for each in _all(stage, "AWS::SageMaker::Endpoint"):
        each.add_property_override("EndpointName", "dev-figures")


def older_runtime(stage: EnvironmentStage) -> None:
    """The function that writes release records runs on another Python."""
    for each in _functions(stage, "Activation"):
        each.runtime = "python3.13"


def other_code(stage: EnvironmentStage) -> None:
    """The function that writes release records has other code: that of the verification."""
    others = {each.node.path: each for each in _functions(stage, "Verification")}
    [other] = others.values()
    for each in _functions(stage, "Activation"):
        each.code = other.code


def another_logical_id(stage: EnvironmentStage) -> None:
    """The Model has another logical id, and is the same else."""
    for each in _all(stage, "AWS::SageMaker::Model"):
        each.override_logical_id("RenamedModel")


def keep_on_deletion(stage: EnvironmentStage) -> None:
    """The archives' bucket outlives the stack: a policy of the template alone."""
    stage.artifacts.artifacts.bucket.apply_removal_policy(cdk.RemovalPolicy.RETAIN)


def own_name_kept(stage: EnvironmentStage) -> None:
    """A Model whose name the template chooses: whatever replaces it is then refused."""
    for each in _all(stage, "AWS::SageMaker::Model"):
        each.add_property_override("ModelName", "digits-by-name")


PATCHES: Mapping[str, Callable[[EnvironmentStage], None]] = {
    each.__name__.replace("_", "-"): each
    for each in (
        widen_bucket_policy,
        give_the_containers_every_action,
        open_the_bucket,
        open_a_port,
        rename_the_endpoint,
        older_runtime,
        other_code,
        another_logical_id,
        keep_on_deletion,
        own_name_kept,
    )
}


def _all(stage: EnvironmentStage, kind: str) -> list[cdk.CfnResource]:
    """Every resource of a type."""
    return [
        each for each in stage.node.find_all() if isinstance(each, cdk.CfnResource) and each.cfn_resource_type == kind
    ]


def _functions(stage: EnvironmentStage, part: str) -> list[lambda_.CfnFunction]:
    """The functions of one part of the serving stacks."""
    found: list[Any] = [each for each in _all(stage, "AWS::Lambda::Function") if f"/{part}/" in each.node.path]
    return found


def _policy(stage: EnvironmentStage, part: str) -> iam.Policy:
    """The policy of one part of the serving stacks."""
    return next(
        each for each in stage.node.find_all() if isinstance(each, iam.Policy) and f"/{part}/" in each.node.path
    )
