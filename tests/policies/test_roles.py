"""Every role of an environment with everything switched on: what it must be able to do, and what it must not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.arns import ACCOUNT, arn, arn_of
from tests.cases import cases
from tests.policies.rights import BUCKET, BY_ANOTHER_WAY, MAY, NONE_MAY, Row, of_others, requests
from tests.policies.world import KEY, Role, World, world_of
from tests.stacks.everything import everything
from tritonstack.aws.iam_evaluation import Decision, Policies, Request, Statement, evaluate

OF_ONE_ROLE = {
    "s3:DeleteBucket",
    *(
        f"ec2:{each}"
        for each in ("CreateNetworkInterface", "CreateNetworkInterfacePermission", "DeleteNetworkInterface")
    ),
}
"""What no role may, but for the one whose table names the request, with no more context."""


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
    own = [each for each in requests(MAY[role.key]) if each.action in OF_ONE_ROLE]

    def is_own(tried: Request) -> bool:
        same = (each for each in own if (each.action, each.resource) == (tried.action, tried.resource))
        return any(each.context.items() <= tried.context.items() for each in same)

    return [each for each in requests(rows) if not is_own(each)]


def test_every_role_has_a_table_and_every_table_a_role(world: World) -> None:
    assert set(world.roles) == set(MAY)
    assert all(role.statements and role.bounded for role in world.roles.values())


@pytest.mark.parametrize("name", sorted(MAY))
def test_a_role_can_do_what_it_is_for(world: World, name: str) -> None:
    role = world.roles[name]
    assert [each for each in wanted(world, role) if not world.decision(role, each).allowed] == []


@pytest.mark.parametrize("name", sorted(MAY))
def test_a_role_can_do_nothing_to_what_is_not_its_own(world: World, name: str) -> None:
    role = world.roles[name]
    assert [each for each in forbidden(role) if world.decision(role, each).allowed] == []


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
    return evaluate(request, Policies(resource=role.trust, resource_must_allow=True)).allowed


@pytest.mark.parametrize("name", sorted(MAY))
def test_a_role_is_assumed_by_its_service_for_this_account_alone(world: World, name: str) -> None:
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
    """So every statement has a request that it allows and one that it must not."""
    role = world.roles[name]
    tried = [*wanted(world, role), *forbidden(role)]

    def verdicts(of: Role) -> list[tuple[bool, bool]]:
        decisions = [world.decision(of, each) for each in tried]
        return [(each.allowed, each.explicit_deny) for each in decisions]

    before = verdicts(role)
    assert {what for what, mutant in mutants(role) if verdicts(mutant) == before} == set()


def test_the_bucket_takes_nothing_in_the_clear(world: World) -> None:
    archive, plain = f"{BUCKET}/endpoints/e0/24.09-t4/a", {"aws:SecureTransport": "false"}
    tried = Request(principal="", action="s3:GetObject", resource=archive, context=plain)
    assert world.decision(world.roles["serving-e0/ExecutionRole"], tried).explicit_deny


def key_verdict(world: World, service: str, action: str, context: dict[str, str]) -> bool:
    request = Request(principal=service, action=action, resource=KEY, context=context)
    return evaluate(request, Policies(resource=world.key_policy, resource_must_allow=True)).allowed


LOGS = "logs.us-east-1.amazonaws.com"


@cases("group, let_in")
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
def test_the_key_lets_cloudwatch_publish_this_environments_alarms(
    world: World, alarm: str, account: str, let_in: bool
) -> None:
    context = {"aws:SourceArn": arn("cloudwatch", f"alarm:{alarm}"), "aws:SourceAccount": account}
    assert key_verdict(world, "cloudwatch.amazonaws.com", "kms:Decrypt", context) is let_in
    assert not key_verdict(world, "cloudwatch.amazonaws.com", "kms:Encrypt", context)


@pytest.mark.parametrize("service", ["sagemaker.amazonaws.com", "codebuild.amazonaws.com", "ec2.amazonaws.com"])
def test_the_key_lets_no_other_service_in_by_itself(world: World, service: str) -> None:
    assert not key_verdict(world, service, "kms:Decrypt", {"aws:SourceAccount": ACCOUNT})


def through(world: World, service: str, request: Request) -> Decision:
    """What comes of a request, through a VPC endpoint, of a caller who may do everything."""
    everything_allowed = [{"Effect": "Allow", "Action": "*", "Resource": "*"}]
    return evaluate(request, Policies(identity=everything_allowed, endpoint=world.endpoints[service]))


@cases("service, call, account, let_through")
def test_vpc_endpoints_let_through_what_the_environment_does_and_nothing_else(
    world: World, service: str, call: tuple[str, str], account: str, let_through: bool
) -> None:
    context = {"aws:PrincipalAccount": account} if account else {}
    resource = arn_of(call[1])
    request = Request(principal="arn:aws:iam::1:role/any", action=call[0], resource=resource, context=context)
    assert through(world, service, request).allowed is let_through


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
    role, ours = world.roles["load-test/BenchRole"], {"aws:PrincipalAccount": ACCOUNT}
    calls = [each for each in wanted(world, role) if not each.action.startswith(("ec2:", "kms:"))]
    ways = [(BEHIND.get(each.action, BEHIND[each.action.partition(":")[0]]), each) for each in calls]
    assert {service for service, _ in ways} == set(BEHIND.values()), "each of them is on the way"
    tried = [(service, replace(each, principal=role.arn, context=ours | dict(each.context))) for service, each in ways]
    assert [each for each in tried if not through(world, *each).allowed] == []
