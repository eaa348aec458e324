"""Policy statements, ARNs and service roles that several constructs share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct, IConstruct

from constructs_lib.acknowledgement import acknowledge_wildcard
from tritonstack import naming
from tritonstack.arns import AccountRegion
from tritonstack.catalogue import dns_suffix
from tritonstack.iam_statements import Statement, Value, statements


def allow(
    policy: iam.Policy,
    sid: str,
    actions: Sequence[str],
    resources: Sequence[str],
    *,
    conditions: Mapping[str, Mapping[str, object]] | None = None,
    wildcard: str | None = None,
) -> None:
    """Add one statement to a policy.

    Args:
        sid: purpose of the statement, in CamelCase: reviewers read it in the difference of two templates.
        actions: each spelled out; a wildcard in an action would grant what is added to the service later.
        conditions: operator → condition key → value or values.
        wildcard: why the resources with a wildcard are no wider than needed: accepts cdk-nag's findings on them.
    """
    statement = Statement(
        sid=sid,
        actions=tuple(actions),
        resources=tuple(resources),
        conditions=conditions,
        wildcards={} if wildcard is None else {each: wildcard for each in resources if "*" in each},
    )
    _add(policy, statement)


def allow_group(policy: iam.Policy, group: str, **values: Value) -> None:
    """Add the statements of a group of ``iam_statements.yaml`` with these values."""
    for each in statements(group, at=account_region(policy), **values):
        _add(policy, each)


def _add(policy: iam.Policy, statement: Statement) -> None:
    policy.add_statements(
        iam.PolicyStatement(
            sid=statement.sid,
            actions=list(statement.actions),
            resources=list(statement.resources),
            conditions=statement.conditions,
        )
    )
    for resource, reason in statement.wildcards.items():
        acknowledge_wildcard(policy, resource=resource, reason=reason)


def account_region(scope: IConstruct) -> AccountRegion:
    """Partition, account and region of the scope's stack: tokens where they are not known."""
    stack = cdk.Stack.of(scope)
    return AccountRegion(partition=stack.partition, region=stack.region, account=stack.account)


def arn(scope: IConstruct, service: str, resource: str, name: str, *, account: str | None = None) -> str:
    """ARN of a resource in the partition, account and region of the scope's stack."""
    return account_region(scope).arn(service, resource, name, account=account)


def parameter_arn(scope: IConstruct, name: str) -> str:
    """ARN of an SSM parameter, from its name with or without the leading slash."""
    return arn(scope, "ssm", "parameter", name.removeprefix("/"))


def delivery_policy(
    *, sid: str, service: str, action: str, resource: str, condition: Mapping[str, object], refused: str
) -> dict[str, object]:
    """A resource policy that allows one AWS service to deliver, and denies the action ``refused`` without TLS."""
    delivers = {
        "Sid": sid,
        "Effect": "Allow",
        "Principal": {"Service": f"{service}.amazonaws.com"},
        "Action": action,
        "Resource": resource,
        "Condition": condition,
    }
    plain_text = {
        "Sid": "RefusePlainText",
        "Effect": "Deny",
        "Principal": "*",
        "Action": refused,
        "Resource": resource,
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    return {"Version": "2012-10-17", "Statement": [delivers, plain_text]}


def endpoint_arns(scope: IConstruct, environment: str, endpoints: Sequence[str]) -> list[str]:
    """ARNs of an environment's endpoints at SageMaker, from their names in its settings."""
    names = [naming.endpoint_name(environment=environment, endpoint=each) for each in endpoints]
    return [arn(scope, "sagemaker", "endpoint", name) for name in names]


def staging_bucket_name(stack: cdk.Stack) -> str:
    """The bucket of CDK's assets in the stack's account and region, as the bootstrap template names it."""
    return _bootstrapped(stack, "assets")


def asset_repository_name(stack: cdk.Stack) -> str:
    """The ECR repository of images that the CDK builds, as the bootstrap template names it."""
    return _bootstrapped(stack, "container-assets")


def _bootstrapped(stack: cdk.Stack, kind: str) -> str:
    qualifier = stack.synthesizer.bootstrap_qualifier or cdk.DefaultStackSynthesizer.DEFAULT_QUALIFIER
    return f"cdk-{qualifier}-{kind}-{stack.account}-{stack.region}"


def regional_service(scope: IConstruct, service: str) -> str:
    """A service's name in the stack's region: ``logs.us-east-1.amazonaws.com``, in China with ``amazonaws.com.cn``.

    The form of KMS's ``kms:ViaService`` and of CloudWatch Logs as a principal (KMS developer guide, "kms:ViaService",
    and CloudWatch Logs user guide, "Encrypt log data", both in China's edition).
    """
    stack = cdk.Stack.of(scope)
    suffix = stack.url_suffix if cdk.Token.is_unresolved(stack.region) else dns_suffix(stack.region)
    return f"{service}.{stack.region}.{suffix}"


def service_principal(scope: IConstruct, service: str) -> iam.ServicePrincipal:
    """An AWS service as a principal, for requests on behalf of this account alone (``aws:SourceAccount``)."""
    return iam.ServicePrincipal(
        f"{service}.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": cdk.Stack.of(scope).account}}
    )


def service_role(scope: Construct, service: str, *, description: str) -> tuple[iam.Role, iam.Policy]:
    """A role for an AWS service and its one policy, which is empty: ``allow_group`` adds statements."""
    role = iam.Role(scope, "Role", description=description, assumed_by=service_principal(scope, service))
    return role, iam.Policy(scope, "Access", roles=[role])


def acknowledge_nameless(policy: iam.Policy) -> None:
    """Accept ``*`` as the resource of actions in a builder's policy that have no resource type."""
    acknowledge_wildcard(
        policy,
        resource="*",
        reason="ecr:GetAuthorizationToken, CloudWatch's PutMetricData, GetMetricData and GetMetricStatistics, "
        "ec2:DeleteNetworkInterfacePermission and EC2's Describe actions have no resource type to name (service "
        "authorization reference); metrics are written under a condition on cloudwatch:namespace, and reading them "
        "changes nothing. Where a SageMaker job joins a VPC, its creation fails if actions on network interfaces have "
        "a resource or a condition (SageMaker developer guide: CreateProcessingJob API, Inference Recommender in a "
        "VPC).",
    )
