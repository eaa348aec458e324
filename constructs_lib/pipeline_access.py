"""Roles by which a pipeline of another account works in an environment, and CDK Pipelines' grants cut to its needs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_iam as iam
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge, acknowledge_wildcard
from constructs_lib.artifact_bucket import ArtifactBucketReference
from constructs_lib.codebuild_project import acknowledge_role_path
from constructs_lib.model_build import allow_engine_builds, allow_parameters
from constructs_lib.permission import (
    allow,
    allow_key_through_s3,
    allow_listing,
    allow_metrics,
    arn,
    endpoint_arns,
    staging_bucket_name,
)
from tritonstack import naming

SESSION_HOURS = 1
"""A role that is assumed from another role is assumed for an hour at most, whatever it allows (IAM user guide: "Role
chaining"); the SDK assumes it anew in time."""


class PipelineRole(Construct):
    """A role that only the builds of a pipeline may assume.

    Attributes:
        role: the role.
        policy: its one policy.
    """

    def __init__(self, scope: Construct, construct_id: str, *, role_name: str, description: str, trusted: str) -> None:
        """Make the role.

        The trust policy names the pipeline's account and, as a condition, the one role in it: a role that is named as
        principal must be there first, and stays unknown once it was deleted and made anew (IAM user guide: "AWS JSON
        policy elements: Principal").

        Args:
            role_name: fixed, for the pipeline's account must name it.
            description: what it is for.
            trusted: the ARN of the role that assumes it.
        """
        super().__init__(scope, construct_id)
        self.role = iam.Role(
            self,
            "Role",
            role_name=role_name,
            description=description,
            assumed_by=iam.PrincipalWithConditions(
                iam.AccountPrincipal(trusted.split(":")[4]), {"ArnEquals": {"aws:PrincipalArn": trusted}}
            ),
            max_session_duration=cdk.Duration.hours(SESSION_HOURS),
        )
        self.policy = iam.Policy(self, "Access", roles=[self.role])


def allow_engines_by_codebuild(policy: iam.Policy, *, environment: str, project_name: str) -> None:
    """Allow building engines with the environment's engine project."""
    log = arn(policy, "logs", "log-group", f"{naming.log_group(environment=environment, of='engines')}:*")
    project = arn(policy, "codebuild", "project", project_name)
    allow_engine_builds(policy, project_arn=project, log_arn=log)
    reason = "The streams of one log group, which CodeBuild names after builds that are to come."
    acknowledge_wildcard(policy, resource=log, reason=reason)


def allow_verifying(
    policy: iam.Policy, *, environment: str, endpoints: Sequence[str], artifacts: ArtifactBucketReference
) -> None:
    """Allow ``tritonstack verify``: read what is deployed and recorded, send sample requests."""
    allow_parameters(policy, environment)
    _allow_endpoints(policy, environment=environment, endpoints=endpoints)
    stack = cdk.Stack.of(policy)
    reasons = {
        artifacts.objects_arn("manifests/*"): "The manifests of every archive of the environment, and the files for "
        "clients beside them.",
        artifacts.objects_arn("endpoints/*"): "Whether the archive that a record names is there; archives come and go.",
    }
    sets = f"arn:{stack.partition}:s3:::{staging_bucket_name(stack)}/*.release-set"
    allow(policy, "ReadManifests", ["s3:GetObject"], list(reasons))
    allow(policy, "ReadReleaseSets", ["s3:GetObject"], [sets])
    reasons[sets] = (
        "What is deployed is listed in a release set, an asset named after its content. Nothing else ends so."
    )
    for pattern, reason in reasons.items():
        acknowledge_wildcard(policy, resource=pattern, reason=reason)
    allow_listing(policy, "ListArchives", artifacts=artifacts, prefixes=["endpoints/", "manifests/"])
    allow_key_through_s3(policy, "DecryptManifests", ["kms:Decrypt"], artifacts=artifacts)


def _allow_endpoints(policy: iam.Policy, *, environment: str, endpoints: Sequence[str]) -> None:
    arns = endpoint_arns(policy, environment, endpoints)
    stacks = [arn(policy, "cloudformation", "stack", f"{environment}-serving-{endpoint}/*") for endpoint in endpoints]
    allow(policy, "SendSampleRequests", ["sagemaker:DescribeEndpoint", "sagemaker:InvokeEndpoint"], arns)
    allow(
        policy,
        "SeeStacks",
        ["cloudformation:DescribeStacks", "cloudformation:DescribeStackResources", "cloudformation:GetTemplate"],
        stacks,
        wildcard="A stack's ARN ends in an id that CloudFormation gives; the name before it is whole.",
    )
    allow_metrics(policy, "SeeLoads", "cloudwatch:GetMetricData")


# The CDK attaches its statements where no setting reaches: to the roles of its own builds. They are known by their
# text, and a new one of a later version of the CDK is a finding again.
Statement = dict[str, Any]

_ACTIONS = ("s3:GetObject*", "s3:GetBucket*", "s3:List*", "s3:DeleteObject*", "s3:Abort*")
_KEY_ACTIONS = ("kms:ReEncrypt*", "kms:GenerateDataKey*")
_LEGACY_LOGS = "log-group:/aws/codebuild/"
_REPORTS = "codebuild:CreateReportGroup"
_STARTS = "codebuild:StartBuild"
_USES = "codestar-connections:UseConnection"
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
            if _is_about(statement, _LEGACY_LOGS) or _does(statement, _REPORTS):
                continue
            if _does(statement, _STARTS) and statement["Resource"] == "*":
                continue
            if _does(statement, _USES):
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
