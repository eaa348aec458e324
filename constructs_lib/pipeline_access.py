"""CDK Pipelines' grants cut to what a pipeline needs, and its findings that are accepted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_iam as iam

from constructs_lib.acknowledgement import acknowledge, acknowledge_wildcard
from constructs_lib.codebuild_project import acknowledge_role_path

# The CDK attaches its statements where no setting reaches: to the roles of its own builds. They are known by their
# text, and a new one of a later version of the CDK is a finding again.
Statement = dict[str, Any]

_ACTIONS = ("s3:GetObject*", "s3:GetBucket*", "s3:List*", "s3:DeleteObject*", "s3:Abort*")
_KEY_ACTIONS = ("kms:ReEncrypt*", "kms:GenerateDataKey*")
_CONNECTION_SERVICES = ("codeconnections", "codestar-connections")


def narrow(stack: cdk.Stack) -> None:
    """Remove permissions that the pipeline does not need; call it when the pipeline is built.

    - logs in groups of CodeBuild's own, for builds write into the pipeline's group, and groups of test reports, for
      there are none;
    - the right of asset publishing to start any build of the account: CodePipeline starts builds;
    - of self-mutation, the right to assume any role with a tag of the bootstrap: it deploys one stack, by two roles.

    The right to use the connection is given anew, for the CDK grants it by the old name of the service alone.
    """
    for policy in _policies(stack):
        kept = []
        for statement in _statements(stack, policy):
            if _is_about(statement, "log-group:/aws/codebuild/") or _does(statement, "codebuild:CreateReportGroup"):
                continue
            if _does(statement, "codebuild:StartBuild") and statement["Resource"] == "*":
                continue
            if _does(statement, "codestar-connections:UseConnection"):
                kept += _connection_statements(statement["Resource"])
                continue
            if statement["Resource"] == f"arn:*:iam::{stack.account}:role/*":
                statement = {key: each for key, each in statement.items() if key != "Condition"}  # noqa: PLW2901
                statement["Resource"] = _bootstrap_roles(stack)
            kept.append(statement)
        policy.policy_document = stack.resolve({"Statement": kept, "Version": "2012-10-17"})


def acknowledge_pipeline(stack: cdk.Stack) -> None:
    """Accept findings in the pipeline's own stack that are right as they stand."""
    store = "CDK Pipelines' own grant for what goes from action to action: the pattern in the action is within one "
    for policy in _policies(stack):
        acknowledge(
            policy,
            finding="NIST.800.53.R5-IAMNoInlinePolicy",
            reason="Each policy is of one role and goes with it. As a managed policy it could be attached to another "
            "principal, and up to four old versions of it would stay.",
        )
        for statement in _statements(stack, policy):
            for action in _listed(statement["Action"]):
                if action in _ACTIONS:
                    reason = f"{store}service's reading, listing or removing, and the resource is the artifact bucket."
                    acknowledge(policy, finding=f"AwsSolutions-IAM5[Action::{action}]", reason=reason)
                elif action in _KEY_ACTIONS:
                    reason = f"{store}call of KMS in its two forms, and the resource is the pipeline's key."
                    acknowledge(policy, finding=f"AwsSolutions-IAM5[Action::{action}]", reason=reason)
            for resource in _listed(statement["Resource"]):
                _accept_resource(stack, policy, statement, resource)


def acknowledge_role_paths(stack: cdk.Stack) -> None:
    """Accept the finding of CDK's validator on each project whose role has a path."""
    for construct in stack.node.find_all():
        if isinstance(construct, codebuild.CfnProject):
            acknowledge_role_path(construct)


def _accept_resource(stack: cdk.Stack, policy: iam.CfnPolicy, statement: Statement, resource: Any) -> None:
    if resource == "*" and set(_listed(statement["Action"])) <= {"cloudformation:DescribeStacks", "s3:ListBucket"}:
        acknowledge(
            policy,
            finding="AwsSolutions-IAM5[Resource::*]",
            reason="Self-mutation runs the CDK's command line, which looks at the bootstrap's stack and bucket before "
            "it takes the bootstrap's roles (aws-cdk-lib, pipelines: CodePipeline); both calls read only.",
        )
    elif isinstance(resource, dict) and json.dumps(resource).endswith('"/*"]]}'):
        acknowledge_wildcard(
            policy,
            resource=stack.resolve(resource),
            reason="CodePipeline names artifacts by execution, in keys that are to come; the bucket is this "
            "pipeline's own and holds nothing else.",
        )


def _policies(stack: cdk.Stack) -> Iterator[iam.CfnPolicy]:
    for construct in stack.node.find_all():
        if isinstance(construct, iam.CfnPolicy):
            yield construct


def _statements(stack: cdk.Stack, policy: iam.CfnPolicy) -> list[Statement]:
    """The statements as they stand in the template, what was narrowed included."""
    found: list[Statement] = stack.resolve(policy.policy_document)["Statement"]
    return found


def _is_about(statement: Statement, text: str) -> bool:
    """Whether every resource of a statement has the text in its ARN."""
    return all(text in json.dumps(resource) for resource in _listed(statement["Resource"]))


def _connection_statements(arn: str) -> list[Statement]:
    """The right to use a connection, under both names of its service.

    "The service prefix needs to match that of the resource" (Developer Tools console user guide, "Connections rename"),
    and a connection's ARN bears the name that the service had when the connection was made.
    """
    prefix, partition, _, rest = arn.split(":", 3)
    return [
        {
            "Action": f"{service}:UseConnection",
            "Effect": "Allow",
            "Resource": ":".join((prefix, partition, service, rest)),
        }
        for service in _CONNECTION_SERVICES
    ]


def _does(statement: Statement, action: str) -> bool:
    return action in _listed(statement["Action"])


def _bootstrap_roles(stack: cdk.Stack) -> list[Any]:
    """The roles by which the CDK's command line publishes and deploys a stack of this account."""
    qualifier = stack.synthesizer.bootstrap_qualifier or cdk.DefaultStackSynthesizer.DEFAULT_QUALIFIER
    ends = f"{stack.account}-{stack.region}"
    return [
        f"arn:{stack.partition}:iam::{stack.account}:role/cdk-{qualifier}-{kind}-role-{ends}"
        for kind in ("deploy", "file-publishing")
    ]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
