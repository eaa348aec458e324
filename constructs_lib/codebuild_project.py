"""What CodeBuild's projects have in common: who assumes their roles, where they log, which network they join."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_iam as iam
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge
from constructs_lib.build_access import BuildNetwork
from constructs_lib.build_log import BuildLog


def codebuild_principal(scope: Construct) -> iam.ServicePrincipal:
    """CodeBuild, on behalf of this account alone."""
    return iam.ServicePrincipal(
        "codebuild.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": cdk.Stack.of(scope).account}}
    )


def acknowledge_role_path(project: codebuild.CfnProject) -> None:
    """Accept what CDK's validator says of a service role with a path: it takes the ARN in the template for a Ref."""
    acknowledge(
        project,
        finding="CloudFormation-Validate::E3050",
        reason="The rule asks for the role's ARN where it has a path, and the template has it: ServiceRole is an "
        "Fn::GetAtt of Arn, which CDK's validator reports as a Ref.",
    )


def log_config(log: BuildLog) -> codebuild.CfnProject.LogsConfigProperty:
    """A project's log, in one group of CloudWatch Logs."""
    return codebuild.CfnProject.LogsConfigProperty(
        cloud_watch_logs=codebuild.CfnProject.CloudWatchLogsConfigProperty(status="ENABLED", group_name=log.name)
    )


def vpc_config(network: BuildNetwork | None) -> codebuild.CfnProject.VpcConfigProperty | None:
    """A project's VPC, or None for CodeBuild's own network."""
    if network is None:
        return None
    return codebuild.CfnProject.VpcConfigProperty(
        vpc_id=network.vpc_id,
        subnets=list(network.subnet_ids),
        security_group_ids=list(network.security_group_ids),
    )
