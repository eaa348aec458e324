"""Every role of an environment with everything switched on: what it must be able to do, and what it must not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.policies.evaluation import Request, Statement, Verdict, applies, evaluate
from tests.policies.tables import BUCKET, BY_ANOTHER_WAY, MAY, NONE_MAY, TRITON, Row, of_others, requests
from tests.policies.world import ACCOUNT, KEY, Role, World, arn, world_of
from tests.stacks.everything import everything

OF_ONE_ROLE = {"s3:DeleteBucket"}
"""What no role may, but for the one whose table names it."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return world_of(everything(tmp_path_factory.mktemp("world")))


def wanted(world: World, role: Role) -> list[Request]:
    """What a role must be able to do; a build also reads its source, whose key is a digest."""
    sources = {"ModelBuildRole": world.source, "BenchRole": world.test_source}
    source: list[Row] = [("s3:GetObject s3:GetObjectVersion", sources[role.name], {})] if role.name in sources else []
    return requests([*MAY[role.key], *source])


def forbidden(role: Role) -> list[Request]:
    endpoint = role.stack.removeprefix("serving-") if role.stack.startswith("serving-") else None
    rows = [*NONE_MAY, *BY_ANOTHER_WAY.get(role.name, []), *([] if endpoint is None else of_others(endpoint))]
    own = {(each.action, each.resource) for each in requests(MAY[role.key]) if each.action in OF_ONE_ROLE}
    return [each for each in requests(rows) if (each.action, each.resource) not in own]


def test_every_role_has_a_table_and_every_table_a_role(world: World) -> None:
    assert set(world.roles) == set(MAY)
    assert all(role.statements for role in world.roles.values())


@pytest.mark.parametrize("name", sorted(MAY))
def test_a_role_can_do_what_it_is_for(world: World, name: str) -> None:
    role = world.roles[name]
    refused = [each for each in wanted(world, role) if world.verdict(role, each) is not Verdict.ALLOWED]
    assert refused == []


@pytest.mark.parametrize("name", sorted(MAY))
def test_a_role_can_do_nothing_to_what_is_not_its_own(world: World, name: str) -> None:
    role = world.roles[name]
    assert [each for each in forbidden(role) if world.verdict(role, each) is Verdict.ALLOWED] == []


SERVICES = {
    "ExecutionRole": "sagemaker.amazonaws.com",
    "ProcessingRole": "sagemaker.amazonaws.com",
    "ModelBuildRole": "codebuild.amazonaws.com",
    "EngineProjectRole": "codebuild.amazonaws.com",
    "NetworkFlowLogRole": "vpc-flow-logs.amazonaws.com",
    "BenchRole": "codebuild.amazonaws.com",
    "JobsRole": "sagemaker.amazonaws.com",
    "RecommenderRole": "states.amazonaws.com",
}
"""Role → the service that may assume it; every other role is a function's."""


def may_assume(role: Role, principal: str, *, account: str | None = ACCOUNT) -> bool:
    context = {} if account is None else {"aws:SourceAccount": account}
    request = Request(principal=principal, action="sts:AssumeRole", resource=role.arn, context=context)
    # A trust policy has no resource: the role that it stands on is meant.
    trust = [{**each, "Resource": role.arn} for each in role.trust]
    return evaluate(request, resource=trust, resource_must_allow=True) is Verdict.ALLOWED


@pytest.mark.parametrize("name", sorted(MAY))
def test_a_role_is_assumed_by_its_service_for_this_account_and_by_nobody_else(world: World, name: str) -> None:
    role = world.roles[name]
    service = SERVICES.get(role.name, "lambda.amazonaws.com")
    everyone = {*SERVICES.values(), "lambda.amazonaws.com", "ec2.amazonaws.com", "ecs-tasks.amazonaws.com"}
    assert {each for each in everyone if may_assume(role, each)} == {service}
    assert not may_assume(role, f"arn:aws:iam::{ACCOUNT}:role/admin")
    assert not may_assume(role, "arn:aws:iam::999999999999:role/admin")
    if service == "lambda.amazonaws.com":
        # Lambda assumes a role for functions of the role's own account alone, and gives no source account.
        assert may_assume(role, service, account=None)
    else:
        assert not may_assume(role, service, account="999999999999")
        assert not may_assume(role, service, account=None)


def mutants(role: Role) -> Iterator[tuple[str, Role]]:
    """The role with one statement removed, turned round, widened to every resource, or without its condition."""
    for index, statement in enumerate(role.statements):

        def changed(by: dict[str, Any] | None, index: int = index, statement: Statement = statement) -> Role:
            middle = () if by is None else ({**statement, **by},)
            return replace(role, statements=(*role.statements[:index], *middle, *role.statements[index + 1 :]))

        yield f"{statement['Sid']} removed", changed(None)
        yield f"{statement['Sid']} denies", changed({"Effect": "Deny"})
        if statement["Resource"] != "*":
            yield f"{statement['Sid']} of everything", changed({"Resource": "*"})
        if statement.get("Condition"):
            yield f"{statement['Sid']} unconditionally", changed({"Condition": {}})


@pytest.mark.parametrize("name", sorted(MAY))
def test_each_mutation_of_a_statement_changes_a_verdict(world: World, name: str) -> None:
    """So every statement is asked after from both sides."""
    role = world.roles[name]
    asked = [*wanted(world, role), *forbidden(role)]
    before = [world.verdict(role, each) for each in asked]
    survivors = {what for what, mutant in mutants(role) if [world.verdict(mutant, each) for each in asked] == before}
    assert survivors == set()


def test_a_boundary_that_allows_less_leaves_less(world: World) -> None:
    role = world.roles["serving-e0/ExecutionRole"]
    archive = Request(principal=role.arn, action="s3:GetObject", resource=f"{BUCKET}/endpoints/e0/24.09-t4/a")
    log = Request(
        principal=role.arn,
        action="logs:PutLogEvents",
        resource=arn("logs", "log-group:/aws/sagemaker/Endpoints/local-e0:log-stream:a"),
    )
    narrow: list[Statement] = [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]
    verdicts = [evaluate(each, identity=role.statements, boundary=narrow) for each in (archive, log)]
    assert verdicts == [Verdict.ALLOWED, Verdict.NOT_ALLOWED]
    assert all(each.bounded for each in world.roles.values())


def test_the_bucket_takes_nothing_in_the_clear(world: World) -> None:
    role = world.roles["serving-e0/ExecutionRole"]
    plain = Request(
        principal="",
        action="s3:GetObject",
        resource=f"{BUCKET}/endpoints/e0/24.09-t4/a",
        context={"aws:SecureTransport": "false"},
    )
    assert world.verdict(role, plain) is Verdict.DENIED


def key_verdict(world: World, service: str, action: str, context: dict[str, str]) -> bool:
    request = Request(principal=service, action=action, resource=KEY, context=context)
    return evaluate(request, resource=world.key_policy, resource_must_allow=True) is Verdict.ALLOWED


LOGS = "logs.us-east-1.amazonaws.com"


@pytest.mark.parametrize(
    ("group", "let_in"),
    [
        ("/tritonstack/local/builds", True),
        ("/tritonstack/local/engines", True),
        ("/tritonstack/local/network", True),
        ("/aws/sagemaker/Endpoints/local-e0", True),
        ("/tritonstack/prod/builds", False),
        ("/aws/sagemaker/Endpoints/prod-e0", False),
        ("/aws/lambda/any", False),
    ],
)
def test_the_key_encrypts_the_logs_of_this_environment_alone(world: World, group: str, let_in: bool) -> None:
    context = {"kms:EncryptionContext:aws:logs:arn": arn("logs", f"log-group:{group}")}
    assert key_verdict(world, LOGS, "kms:GenerateDataKey", context) is let_in
    assert not key_verdict(world, LOGS, "kms:GenerateDataKey", {})
    assert not key_verdict(world, LOGS, "kms:CreateGrant", context)
    assert not key_verdict(world, "logs.eu-west-1.amazonaws.com", "kms:GenerateDataKey", context)


@pytest.mark.parametrize(
    ("alarm", "account", "let_in"),
    [("local-e0-errors", ACCOUNT, True), ("prod-e0", ACCOUNT, False), ("local-e0", "999999999999", False)],
)
def test_the_key_lets_cloudwatch_tell_of_this_environments_alarms(
    world: World, alarm: str, account: str, let_in: bool
) -> None:
    context = {"aws:SourceArn": arn("cloudwatch", f"alarm:{alarm}"), "aws:SourceAccount": account}
    assert key_verdict(world, "cloudwatch.amazonaws.com", "kms:Decrypt", context) is let_in
    assert not key_verdict(world, "cloudwatch.amazonaws.com", "kms:Encrypt", context)


@pytest.mark.parametrize("service", ["sagemaker.amazonaws.com", "codebuild.amazonaws.com", "ec2.amazonaws.com"])
def test_the_key_lets_no_other_service_in_by_itself(world: World, service: str) -> None:
    assert not key_verdict(world, service, "kms:Decrypt", {"aws:SourceAccount": ACCOUNT})


OURS, THEIRS = {"aws:PrincipalAccount": ACCOUNT}, {"aws:PrincipalAccount": "999999999999"}
LAYERS = "arn:aws:s3:::prod-us-east-1-starport-layer-bucket/layer"


@pytest.mark.parametrize(
    ("service", "call", "context", "let_through"),
    [
        ("s3", ("s3:GetObject", f"{BUCKET}/endpoints/e0/24.09-t4/a"), OURS, True),
        ("s3", ("s3:GetObject", f"{BUCKET}/endpoints/e0/24.09-t4/a"), THEIRS, False),
        ("s3", ("s3:PutObject", "arn:aws:s3:::another/a"), OURS, False),
        ("s3", ("s3:GetObject", LAYERS), {}, True),
        ("s3", ("s3:PutObject", LAYERS), {}, False),
        ("s3", ("s3:GetObject", f"arn:aws:s3:::cdk-hnb659fds-assets-{ACCOUNT}-us-east-1/source.zip"), OURS, True),
        ("s3", ("s3:PutObject", f"arn:aws:s3:::cdk-hnb659fds-assets-{ACCOUNT}-us-east-1/source.zip"), OURS, False),
        ("sagemaker.runtime", ("sagemaker:InvokeEndpoint", arn("sagemaker", "endpoint/local-e0")), OURS, True),
        ("sagemaker.runtime", ("sagemaker:InvokeEndpoint", arn("sagemaker", "endpoint/prod-e0")), OURS, False),
        ("ssm", ("ssm:GetParameter", arn("ssm", "parameter/tritonstack/local/e0/fast")), OURS, True),
        ("ssm", ("ssm:PutParameter", arn("ssm", "parameter/tritonstack/local/e0/fast")), OURS, False),
        ("ssm", ("ssm:GetParameter", arn("ssm", "parameter/tritonstack/prod/e0/fast")), OURS, False),
        ("ecr.api", ("ecr:BatchGetImage", TRITON), OURS, True),
        ("ecr.dkr", ("ecr:BatchGetImage", arn("ecr", "repository/another")), OURS, False),
        (
            "sagemaker.api",
            ("sagemaker:CreateProcessingJob", arn("sagemaker", "processing-job/local-engine-a")),
            OURS,
            True,
        ),
        ("sagemaker.api", ("sagemaker:DeleteEndpoint", arn("sagemaker", "endpoint/local-e0")), OURS, False),
        ("codebuild", ("codebuild:StartBuild", arn("codebuild", "project/EngineProject")), OURS, True),
        ("codebuild", ("codebuild:UpdateProject", arn("codebuild", "project/EngineProject")), OURS, False),
        ("logs", ("logs:GetLogEvents", arn("logs", "log-group:/tritonstack/local/engines:log-stream:a")), OURS, True),
        ("logs", ("logs:GetLogEvents", arn("logs", "log-group:/another:log-stream:a")), OURS, False),
        ("logs", ("logs:PutLogEvents", arn("logs", "log-group:/tritonstack/local/builds:log-stream:a")), OURS, True),
        ("logs", ("logs:PutLogEvents", arn("logs", "log-group:/tritonstack/local/network:log-stream:a")), OURS, False),
        ("logs", ("logs:DeleteLogGroup", arn("logs", "log-group:/tritonstack/local/builds:*")), OURS, False),
        ("logs", ("logs:PutLogEvents", arn("logs", "log-group:/tritonstack/local/load-tests:*")), OURS, True),
        ("logs", ("logs:GetLogEvents", arn("logs", "log-group:/tritonstack/local/load-tests:*")), OURS, False),
        ("sagemaker.api", ("sagemaker:DescribeEndpoint", arn("sagemaker", "endpoint/local-e0")), OURS, True),
        ("sagemaker.api", ("sagemaker:DescribeEndpoint", arn("sagemaker", "endpoint/prod-e0")), OURS, False),
        ("sagemaker.api", ("sagemaker:DescribeModel", arn("sagemaker", "model/any")), OURS, True),
        ("sagemaker.api", ("sagemaker:DeleteModel", arn("sagemaker", "model/any")), OURS, False),
        ("monitoring", ("cloudwatch:GetMetricStatistics", "*"), OURS, True),
        ("monitoring", ("cloudwatch:PutMetricData", "*"), OURS, False),
        ("monitoring", ("cloudwatch:GetMetricStatistics", "*"), THEIRS, False),
    ],
)
def test_vpc_endpoints_let_through_what_the_environment_does_and_nothing_else(
    world: World, service: str, call: tuple[str, str], context: dict[str, str], let_through: bool
) -> None:
    request = Request(principal="arn:aws:iam::1:role/any", action=call[0], resource=call[1], context=context)
    assert any(each["Effect"] == "Allow" and applies(each, request) for each in world.endpoints[service]) is let_through


BEHIND = {
    "cloudwatch": "monitoring",
    "logs": "logs",
    "s3": "s3",
    "sagemaker": "sagemaker.api",
    "sagemaker:InvokeEndpoint": "sagemaker.runtime",
    "ssm": "ssm",
}
"""Action, or its service → the VPC endpoint that it goes through."""


def test_a_load_test_inside_the_network_reaches_all_that_it_calls(world: World) -> None:
    """But EC2 and KMS, which other services call in its name: CodeBuild for its machine, S3 for objects."""
    role = world.roles["load-test/BenchRole"]
    calls = [each for each in wanted(world, role) if not each.action.startswith(("ec2:", "kms:"))]
    ways = [(BEHIND.get(each.action, BEHIND[each.action.partition(":")[0]]), each) for each in calls]
    assert {service for service, _ in ways} == set(BEHIND.values()), "each of them is on the way"
    cut_off = [
        f"{each.action} by {service}"
        for service, each in ways
        if not any(
            statement["Effect"] == "Allow" and applies(statement, replace(each, context=OURS | dict(each.context)))
            for statement in world.endpoints[service]
        )
    ]
    assert cut_off == []
