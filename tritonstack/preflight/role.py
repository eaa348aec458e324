"""Execution roles of your own: they exist, SageMaker may assume them, and they are allowed what an endpoint needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tritonstack import naming
from tritonstack.arns import AccountRegion, bucket_arn
from tritonstack.aws.read_only import NotKnownError
from tritonstack.catalogue import partition
from tritonstack.config import EndpointSettings, Environment
from tritonstack.config.patterns import ECR_URI
from tritonstack.iam_statements import Statement, statements
from tritonstack.preflight.account import lets_in, qualifier_of
from tritonstack.preflight.subject import CheckedItem, PreflightResult, Subject

_PRINCIPAL = "sagemaker.amazonaws.com"
_SAMPLE = "preflight"
"""Stands for a wildcard in what is simulated: a name that only a wildcard of the role's policies covers."""


def check_role(subject: Subject) -> Iterator[PreflightResult]:
    """The roles that endpoints name in ``role_arn``: their trust policy, then their permissions."""
    environment = subject.environment
    for endpoint in environment.endpoints:
        if endpoint.role_arn is None:
            continue
        name = f"{endpoint.name}: {endpoint.role_arn}"
        item = CheckedItem(check="role", subject=name, needed=f"a role that {_PRINCIPAL} may assume")
        results = list(item.look(_trust, subject, endpoint.role_arn))
        yield from results
        if any(result.outcome == "fails" for result in results):
            continue
        needed = f"allowed what tritonstack preflight -e {environment.environment} --role-policy prints"
        item = CheckedItem(check="role", subject=f"policies of {name}", needed=needed)
        yield from item.look(_permissions, subject, endpoint, endpoint.role_arn)


def _trust(item: CheckedItem, subject: Subject, arn: str) -> PreflightResult:
    name = arn.rpartition("/")[2]
    answer = subject.calls.ask("iam", "get_role", absent=("NoSuchEntity",), RoleName=name)
    if answer is None:
        return item.fails("no such role", advice="Make it, or name one that is there in role_arn.")
    found = answer["Role"]["Arn"]
    if found != arn:
        return item.fails(f"the role is {found}", advice="Write its whole ARN, with its path, in role_arn.")
    policy: dict[str, Any] = answer["Role"].get("AssumeRolePolicyDocument", {})
    if not lets_in(policy, (_PRINCIPAL, f"{_PRINCIPAL}.cn"), action="sts:AssumeRole"):
        advice = f"Allow sts:AssumeRole to the service {_PRINCIPAL} in its trust policy."
        return item.fails(f"its trust policy lets in no {_PRINCIPAL}", advice=advice)
    return item.passes(f"lets in {_PRINCIPAL} (conditions are not looked at)")


def _permissions(item: CheckedItem, subject: Subject, endpoint: EndpointSettings, arn: str) -> PreflightResult:
    if subject.local:
        return item.unknown(
            "the local AWS simulates no policy under its conditions, and checks no permission of a container",
            advice="Run it against AWS.",
        )
    needed = list(needed_statements(subject, endpoint))
    denied = [f"{each.sid} ({', '.join(wrong)})" for each in needed if (wrong := _denied(subject, arn, each))]
    if denied:
        return item.fails(
            f"its own policies, boundary and organization do not allow {'; '.join(denied)}",
            advice=f"Attach what tritonstack preflight -e {subject.environment.environment} --role-policy prints.",
        )
    return item.passes(f"{len(needed)} statements simulated, all allowed")


def needed_statements(subject: Subject, endpoint: EndpointSettings) -> Iterator[Statement]:
    """Statements that an endpoint's role needs, with the names of deployed resources.

    Raises NotKnownError where the stack that holds a name is not deployed yet, or AWS does not respond.
    """
    environment = subject.environment

    def parameter(name: str) -> str:
        answer = subject.calls.ask("ssm", "get_parameter", absent=("ParameterNotFound",), Name=name)
        if answer is None:
            names = " ".join(f"{environment.environment}/{each}" for each in ("artifacts", "network"))
            raise NotKnownError(f"there is no parameter {name} yet", advice=f"First deploy: cdk deploy {names}")
        return str(answer["Parameter"]["Value"])

    account, region = environment.account, environment.region
    repository = f"cdk-{qualifier_of(subject.project)}-container-assets-{account}-{region}"
    image = ECR_URI.fullmatch(endpoint.image_uri(region)) if endpoint.image_build is None else None
    if image is not None:
        account, region, repository = image["account"], image["region"], image["repository"]
    held = AccountRegion(partition=partition(region), region=region, account=account)
    repository_arn = held.arn("ecr", "repository", repository)
    yield from required_statements(environment, endpoint, repository_arn=repository_arn, parameter=parameter)


def required_statements(
    environment: Environment, endpoint: EndpointSettings, *, repository_arn: str, parameter: Callable[[str], str]
) -> Iterator[Statement]:
    """Everything that a role of your own needs for an endpoint: as the stack's own role, by the same groups.

    ``repository_arn``: of the endpoint's image. ``parameter``: value of an SSM parameter of the environment, by its
    name. An alarm has no name before it is made: of alarms all of account and region may be read.
    """
    name, region = environment.environment, environment.region
    at = AccountRegion(partition=partition(region), region=region, account=environment.account)
    named = ["key-arn", *([] if environment.artifacts.earlier_key is None else ["earlier-key-arn"])]
    key = [parameter(naming.artifact_parameter(environment=name, value=each)) for each in named]
    bucket_name = parameter(naming.artifact_parameter(environment=name, value="bucket-name"))
    bucket, at_sagemaker = bucket_arn(bucket_name, partition=at.partition), endpoint.sagemaker_name(name)
    platforms = [each.platform for each in endpoint.platform_settings]
    prefixes = [naming.platform_prefix(endpoint=endpoint.name, platform=each) for each in platforms]
    yield from statements(
        "serving",
        at=at,
        bucket=bucket,
        prefix=" and ".join(prefixes),
        prefixes=prefixes,
        key=key,
        repositories=[repository_arn],
        log_group=at.arn("logs", "log-group", naming.endpoint_log_group(at_sagemaker)),
        endpoint=at_sagemaker,
    )
    network = environment.joined_network
    if network is not None:

        def of_network(kind: str, each: str | int, *, account: str | None = None) -> str:
            value = parameter(naming.network_parameter(environment=name, value=f"{kind}-{each}"))
            return at.arn("ec2", kind, value, account=account)

        yield from statements(
            "model-network",
            at=at,
            interfaces=at.arn("ec2", "network-interface", "*"),
            subnets=[of_network("subnet", zone, account=network.subnet_owner) for zone in network.zones],
            security_groups=[of_network("security-group", each) for each in range(network.security_groups)],
        )
    if endpoint.rollout is not None and endpoint.rollout.own_alarms is not None:
        yield from statements("alarms", at=at, alarms=[at.arn("cloudwatch", "alarm", "*")])
    if endpoint.data_capture is not None:
        captured = naming.captured_prefix(endpoint=endpoint.name)
        yield from statements("capture", at=at, bucket=bucket, prefix=captured, key=key)


def _denied(subject: Subject, arn: str, statement: Statement) -> list[str]:
    """The actions that IAM's simulator does not allow, on a sample of each resource, under the statement's conditions.

    It reads the role's own policies, its boundary and the organization's policies, and no resource's policy (API
    reference: SimulatePrincipalPolicy).
    """
    context = [
        {
            "ContextKeyName": key,
            "ContextKeyValues": [(given if isinstance(given, str) else given[0]).replace("*", _SAMPLE)],
            "ContextKeyType": "string",
        }
        for tests in (statement.conditions or {}).values()
        for key, given in tests.items()
    ]
    # A log group without its streams: a policy may name it in one of two forms.
    resources = [
        one for one in statement.resources if not any(each.startswith(f"{one}:") for each in statement.resources)
    ]
    rows = [
        row
        for resource in resources
        for row in subject.calls.must(
            "iam",
            "simulate_principal_policy",
            PolicySourceArn=arn,
            ActionNames=list(statement.actions),
            ResourceArns=[resource if resource == "*" else resource.replace("*", _SAMPLE)],
            ContextEntries=context,
        ).get("EvaluationResults", ())
    ]
    return list(dict.fromkeys(row["EvalActionName"] for row in rows if row["EvalDecision"] != "allowed"))


def role_policies(subject: Subject) -> dict[str, dict[str, Any]]:
    """Endpoint → the policy document that its role needs. Raises as ``needed_statements``."""
    return {
        each.name: {
            "Version": "2012-10-17",
            "Statement": [statement.document for statement in needed_statements(subject, each)],
        }
        for each in subject.environment.endpoints
    }
