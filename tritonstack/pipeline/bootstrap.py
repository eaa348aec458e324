"""Requirements of each account that a pipeline deploys into: the CDK's bootstrap, trusting the pipeline's account.

The bootstrap makes the roles that a deployment goes through. Principals that may use its deploy role may do, through
CloudFormation, what its execution role may: by default everything (CDK guide: "Customize CDK bootstrapping",
``--cloudformation-execution-policies``). The policies here allow what the stacks of an environment are made of.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tritonstack.arns import iam_arn, role_arn
from tritonstack.catalogue.data_file import read_data
from tritonstack.config.environment import Environment
from tritonstack.config.pipeline import LoadedPipeline
from tritonstack.pipeline.builds import PipelineNames

_NEEDED = read_data("execution_policies.json")
MADE_ROLES = ("iam:CreateRole", "iam:PutRolePermissionsBoundary")
SCALING_SERVICE = "sagemaker.application-autoscaling.amazonaws.com"
SCALING_ROLE = f"aws-service-role/{SCALING_SERVICE}/AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint"
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
        arns = ",".join(iam_arn(f"policy/{name}", partition=partition, account=self.account) for name in self.policies)
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
    """Policy of CloudFormation for the stacks of an environment: by service, and roles by their names."""
    parts, more = ["always"], []
    if environment.builds.on_deploy is not False:
        parts.append("builds")
    if environment.dashboard or environment.alarms is not None:
        parts.append("alarms_or_dashboard")
    if any(each.scaling is not None for endpoint in environment.hosted_endpoints for each in endpoint.variant_settings):
        parts.append("scaling")
        more.append(_scaling_role(role_arn(SCALING_ROLE, partition=names.partition, account=environment.account)))
    if environment.network is not None:
        parts.append("network")
        more.append(_private_dns(f"arn:{names.partition}:route53:::hostedzone/*"))
    if environment.load_test is not None:
        parts.append("load_test")
    roles = [
        role_arn(f"{start}-*", partition=names.partition, account=environment.account, path=environment.role_path)
        for start in (environment.environment, f"{names.pipeline}-{environment.environment}")
    ]
    policy = _policy(parts, roles=roles, boundary=environment.permissions_boundary)
    return {**policy, "Statement": [*policy["Statement"], *more]}


def pipeline_policy(pipeline: LoadedPipeline) -> Policy:
    """The same for the pipeline's own stack."""
    settings, names = pipeline.settings, PipelineNames.of(pipeline.settings)
    roles = [
        role_arn(f"{settings.name}-*", partition=names.partition, account=settings.account, path=settings.role_path)
    ]
    return _policy(["pipeline"], roles=roles, boundary=settings.permissions_boundary)


def _policy(parts: list[str], *, roles: list[str], boundary: str | None) -> Policy:
    services = {f"{each}:*" for part in parts for each in _NEEDED["services"][part]}
    statements = [
        {"Sid": "Services", "Effect": "Allow", "Action": sorted(services), "Resource": "*"},
        *_role_statements(roles, boundary),
        {
            "Sid": "PassRoles",
            "Effect": "Allow",
            "Action": "iam:PassRole",
            "Resource": roles,
            "Condition": {"StringEquals": {"iam:PassedToService": _NEEDED["roles_passed_to"]}},
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

    Source: service authorization reference, Amazon EC2. The hosted zone is EC2's: its id is unknown at synthesis.
    """
    return {
        "Sid": "NamesOfVpcEndpoints",
        "Effect": "Allow",
        "Action": "route53:AssociateVPCWithHostedZone",
        "Resource": zones,
    }


def _role_statements(roles: list[str], boundary: str | None) -> Iterator[Policy]:
    """Roles of these names; with a boundary, none is made without it."""
    actions = _NEEDED["role_actions"]
    if boundary is None:
        yield {"Sid": "Roles", "Effect": "Allow", "Action": actions, "Resource": roles}
        return
    kept = [action for action in actions if action not in (*MADE_ROLES, "iam:DeleteRolePermissionsBoundary")]
    yield {"Sid": "Roles", "Effect": "Allow", "Action": kept, "Resource": roles}
    yield {
        "Sid": "BoundedRoles",
        "Effect": "Allow",
        "Action": list(MADE_ROLES),
        "Resource": roles,
        "Condition": {"StringEquals": {"iam:PermissionsBoundary": boundary}},
    }
