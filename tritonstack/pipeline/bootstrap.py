"""What each account needs before a pipeline deploys into it: the CDK's bootstrap, trusting the pipeline's account.

The bootstrap makes the roles that a deployment goes through. Principals that may use its deploy role may do, through
CloudFormation, what its execution role may: by default everything (CDK guide: "Customize CDK bootstrapping",
``--cloudformation-execution-policies``). The policies here allow what the stacks of an environment are made of.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tritonstack.config.environment import Environment
from tritonstack.config.pipeline import LoadedPipeline
from tritonstack.pipeline.builds import PipelineNames

ALWAYS = ("cloudformation", "kms", "lambda", "logs", "s3", "sagemaker", "ssm")
SCALED = ("application-autoscaling",)
WATCHED = ("cloudwatch", "events", "sns", "sqs")
BUILT = ("codebuild", "events", "sqs")
NETWORKED = ("ec2",)
LOAD_TESTED = ("codebuild", "events", "sqs", "states")
PIPELINED = (
    "cloudformation",
    "codebuild",
    "codeconnections",
    "codepipeline",
    "codestar-connections",
    "events",
    "kms",
    "logs",
    "s3",
    "sns",
)
ROLE_ACTIONS = (
    "iam:AttachRolePolicy",
    "iam:CreateRole",
    "iam:DeleteRole",
    "iam:DeleteRolePermissionsBoundary",
    "iam:DeleteRolePolicy",
    "iam:DetachRolePolicy",
    "iam:GetRole",
    "iam:GetRolePolicy",
    "iam:ListAttachedRolePolicies",
    "iam:ListRolePolicies",
    "iam:ListRoleTags",
    "iam:PutRolePermissionsBoundary",
    "iam:PutRolePolicy",
    "iam:TagRole",
    "iam:UntagRole",
    "iam:UpdateAssumeRolePolicy",
    "iam:UpdateRole",
    "iam:UpdateRoleDescription",
)
MADE_ROLES = ("iam:CreateRole", "iam:PutRolePermissionsBoundary")
SCALING_SERVICE = "sagemaker.application-autoscaling.amazonaws.com"
SCALING_ROLE = f"aws-service-role/{SCALING_SERVICE}/AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint"
PASSED_TO = ("codebuild", "codepipeline", "events", "lambda", "sagemaker", "states", "vpc-flow-logs")

Policy = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Account:
    """One account and region to bootstrap."""

    account: str  # its number
    region: str  # the region
    trusts: str | None  # the pipeline's account, where it is another one
    policies: dict[str, Policy]  # name → document of the execution policies, in the order of the environments
    boundary: str | None  # the ARN of the permissions boundary of the account's roles, or None

    def commands(self, *, partition: str, folder: str) -> list[str]:
        """The command lines, with credentials of this account; policies are read from ``folder``."""
        lines = [
            shlex.join(
                [
                    "aws", "iam", "create-policy", "--policy-name", name,
                    "--policy-document", f"file://{folder}/{name}.json",
                ]
            )
            for name in self.policies
        ]  # fmt: skip
        arns = ",".join(f"arn:{partition}:iam::{self.account}:policy/{name}" for name in self.policies)
        line = ["npx", "cdk", "bootstrap", f"aws://{self.account}/{self.region}"]
        if self.trusts is not None:
            line += ["--trust", self.trusts]
        line += ["--cloudformation-execution-policies", arns]
        if self.boundary is not None:
            line += ["--custom-permissions-boundary", self.boundary.partition(":policy/")[2]]
        return [*lines, shlex.join(line)]


def accounts_of(pipeline: LoadedPipeline) -> list[Account]:
    """Every account and region of a pipeline, its own first. Two environments in one share its bootstrap."""
    settings, names = pipeline.settings, PipelineNames.of(pipeline.settings)
    own = {f"{settings.name}-pipeline-execution": pipeline_policy(pipeline)}
    made: dict[tuple[str, str], Account] = {
        (settings.account, settings.region): Account(
            account=settings.account,
            region=settings.region,
            trusts=None,
            policies=own,
            boundary=settings.permissions_boundary,
        )
    }
    for stage in pipeline.stages:
        environment = stage.environment
        place = (environment.account, environment.region)
        before = made.get(place)
        policies = {} if before is None else before.policies
        made[place] = Account(
            account=environment.account,
            region=environment.region,
            trusts=None if environment.account == settings.account else settings.account,
            policies={**policies, f"{environment.environment}-execution": environment_policy(environment, names)},
            boundary=environment.permissions_boundary if before is None else before.boundary,
        )
    return list(made.values())


def environment_policy(environment: Environment, names: PipelineNames) -> Policy:
    """What CloudFormation may do for the stacks of an environment: by service, and roles by their names."""
    services = set(ALWAYS)
    services |= set(BUILT) if environment.builds.on_deploy is not False else set()
    services |= set(WATCHED) if environment.dashboard or environment.alarms is not None else set()
    services |= set(WATCHED[:1])  # alarms that take an update back
    more = []
    if any(each.scaling is not None for endpoint in environment.endpoints for each in endpoint.fleets):
        services |= set(SCALED)
        more.append(_scaling_role(f"arn:{names.partition}:iam::{environment.account}:role/{SCALING_ROLE}"))
    if environment.network is not None:
        services |= set(NETWORKED)
        more.append(_private_dns(f"arn:{names.partition}:route53:::hostedzone/*"))
    services |= set(LOAD_TESTED) if environment.load_test is not None else set()
    path = environment.role_path or "/"
    roles = [
        f"arn:{names.partition}:iam::{environment.account}:role{path}{start}-*"
        for start in (environment.environment, f"{names.pipeline}-{environment.environment}")
    ]
    policy = _policy(services, roles=roles, boundary=environment.permissions_boundary)
    return {**policy, "Statement": [*policy["Statement"], *more]}


def pipeline_policy(pipeline: LoadedPipeline) -> Policy:
    """The same for the pipeline's own stack."""
    settings, names = pipeline.settings, PipelineNames.of(pipeline.settings)
    roles = [f"arn:{names.partition}:iam::{settings.account}:role{settings.role_path or '/'}{settings.name}-*"]
    return _policy({*PIPELINED, "ssm"}, roles=roles, boundary=settings.permissions_boundary)


def _policy(services: set[str], *, roles: list[str], boundary: str | None) -> Policy:
    statements = [
        {"Sid": "Services", "Effect": "Allow", "Action": sorted(f"{each}:*" for each in services), "Resource": "*"},
        *_role_statements(roles, boundary),
        {
            "Sid": "PassRoles",
            "Effect": "Allow",
            "Action": "iam:PassRole",
            "Resource": roles,
            "Condition": {"StringEquals": {"iam:PassedToService": [f"{each}.amazonaws.com" for each in PASSED_TO]}},
        },
    ]
    return {"Version": "2012-10-17", "Statement": statements}


def _scaling_role(arn: str) -> Policy:
    """The role that Application Auto Scaling makes for SageMaker when an account registers its first variant.

    It is made with the caller's rights (Application Auto Scaling user guide, "Permissions required to create a
    service-linked role"; AWS::ApplicationAutoScaling::ScalableTarget's handlers name the action).
    """
    return {
        "Sid": "FirstScalableTarget",
        "Effect": "Allow",
        "Action": "iam:CreateServiceLinkedRole",
        "Resource": arn,
        "Condition": {"StringEquals": {"iam:AWSServiceName": SCALING_SERVICE}},
    }


def _private_dns(zones: str) -> Policy:
    """Private DNS names of interface endpoints: a dependent action of ec2:CreateVpcEndpoint.

    Source: service authorization reference, Amazon EC2. The hosted zone is EC2's, so that its id is not known.
    """
    return {
        "Sid": "NamesOfVpcEndpoints",
        "Effect": "Allow",
        "Action": "route53:AssociateVPCWithHostedZone",
        "Resource": zones,
    }


def _role_statements(roles: list[str], boundary: str | None) -> Iterator[Policy]:
    """Roles of these names; with a boundary, none is made without it."""
    if boundary is None:
        yield {"Sid": "Roles", "Effect": "Allow", "Action": list(ROLE_ACTIONS), "Resource": roles}
        return
    kept = [action for action in ROLE_ACTIONS if action not in (*MADE_ROLES, "iam:DeleteRolePermissionsBoundary")]
    yield {"Sid": "Roles", "Effect": "Allow", "Action": kept, "Resource": roles}
    yield {
        "Sid": "BoundedRoles",
        "Effect": "Allow",
        "Action": list(MADE_ROLES),
        "Resource": roles,
        "Condition": {"StringEquals": {"iam:PermissionsBoundary": boundary}},
    }
