"""What of a resource's policy, and of who may assume a role, is said to widen and to narrow."""

from __future__ import annotations

from typing import Any

import pytest

from tests.review.policies import NARROWER, OTHER, WIDER, allow, bucket, changes, deny, role, told
from tests.review.small import Template, resource

GET = "s3:GetObject"
B = "arn:aws:s3:::b/*"
ROLE, OTHERS = "arn:aws:iam::111111111111:role/r", "arn:aws:iam::222222222222:root"
ROOT = "arn:aws:iam::111111111111:root"


def may(*principals: Any, **members: Any) -> dict[str, Any]:
    """A statement of a bucket's policy that lets these read."""
    return allow(GET, B, Principal={"AWS": list(principals)}, **members)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([may(ROLE)], [may(ROLE, OTHERS)], [(WIDER, f"{OTHERS} may now: {GET} on {B}")]),
        ([may(ROLE, OTHERS)], [may(ROLE)], [(NARROWER, f"{OTHERS} may no longer: {GET} on {B}")]),
        ([may("222222222222")], [may(OTHERS)], []),
        ([may("*")], [may("*", ROLE)], []),
        ([may("*")], [allow(GET, B, Principal="*")], []),
        ([may(ROLE)], [may("*")], [(WIDER, f"anybody may now: {GET} on {B}")]),
        (
            [may("*")],
            [may("*"), allow(GET, B, Principal={"Service": "logs.amazonaws.com"})],
            [(WIDER, f"logs.amazonaws.com may now: {GET} on {B}")],
        ),
        (
            [deny("s3:*", B, NotPrincipal={"AWS": [ROLE, ROOT]})],
            [deny("s3:*", B, NotPrincipal={"AWS": [ROLE]})],
            [(NARROWER, f"all but {ROLE} is denied from now on: s3:* on {B}")],
        ),
        (
            [deny("s3:*", B, Principal="*")],
            [deny("s3:Put*", B, Principal="*")],
            [(WIDER, f"anybody is no longer denied: s3:* on {B}")],
        ),
    ],
)
def test_a_bucket_policy(before: list[Any], after: list[Any], expected: list[Any]) -> None:
    """The bucket is there on both sides; the least deny that comes in place of a wider one says nothing."""
    assert told(bucket(*before), bucket(*after)) == expected


def test_principals_of_other_accounts_and_everybody_are_called_out() -> None:
    [change] = changes(bucket(may(ROLE)), bucket(may(ROLE, OTHERS)))
    assert (change.other_accounts, change.wildcards) == (("222222222222",), (f"resource {B}",))
    [change] = changes(bucket(), bucket(may(ROLE, OTHERS)))
    assert change.other_accounts == ("222222222222",)
    [change] = changes(bucket(may(ROLE)), bucket(may("*")))
    assert (change.other_accounts, change.wildcards) == ((), ("principal: anybody", f"resource {B}"))


def test_who_may_assume_a_role() -> None:
    def trusting(*principals: Any) -> Template:
        statements = [{"Effect": "Allow", "Principal": each, "Action": "sts:AssumeRole"} for each in principals]
        return role(AssumeRolePolicyDocument={"Statement": statements})

    service = {"Service": "a.amazonaws.com"}
    [change] = changes(trusting(service), trusting(service, {"AWS": OTHERS}))
    assert (change.kind, change.statement) == (WIDER, f"{OTHERS} may now assume it: sts:AssumeRole")
    assert change.other_accounts == ("222222222222",)


def one(kind: str, name: str, *statements: Any, **members: Any) -> Template:
    """A resource whose policy is a property of its own."""
    return {"It": resource(kind, {name: {"Statement": list(statements)}, **members})}


@pytest.mark.parametrize(
    ("kind", "name", "members"),
    [
        ("AWS::KMS::Key", "KeyPolicy", {}),
        ("AWS::SNS::TopicPolicy", "PolicyDocument", {"Topics": ["arn:topic"]}),
        ("AWS::SQS::QueuePolicy", "PolicyDocument", {"Queues": ["arn:queue"]}),
        ("AWS::Logs::ResourcePolicy", "PolicyDocument", {}),
        ("AWS::ECR::Repository", "RepositoryPolicyText", {}),
        ("AWS::SecretsManager::ResourcePolicy", "ResourcePolicy", {"SecretId": "arn:secret"}),
        ("AWS::EC2::VPCEndpoint", "PolicyDocument", {}),
        ("AWS::S3::AccessPoint", "Policy", {}),
    ],
)
def test_every_kind_of_resource_policy(kind: str, name: str, members: dict[str, Any]) -> None:
    first = allow("x:A", "*", Principal={"AWS": ROLE})
    second = allow("x:B", "*", Principal={"AWS": ROLE})
    assert told(one(kind, name, first, **members), one(kind, name, first, second, **members)) == [
        (WIDER, f"{ROLE} may now: x:B")
    ]


def test_a_log_groups_policy_may_be_text() -> None:
    text = '{"Statement": {"Effect": "Allow", "Action": "logs:Put*", "Resource": "*", "Principal": "*"}}'
    after = {"It": resource("AWS::Logs::ResourcePolicy", {"PolicyName": "p", "PolicyDocument": text})}
    assert told({}, after) == [(WIDER, "new: anybody may: logs:Put*")]


def test_everything_of_its_service_in_a_keys_policy_is_the_key() -> None:
    after = one("AWS::KMS::Key", "KeyPolicy", allow("kms:*", "*", Principal={"AWS": ROOT}))
    [change] = changes({}, after)
    assert change.wildcards == ("action kms:* (every action of kms)",)


def test_a_permission_to_invoke_is_a_statement_of_the_function() -> None:
    function = {"Function": resource("AWS::Lambda::Function")}
    on = {"FunctionName": {"Fn::GetAtt": ["Function", "Arn"]}, "Principal": "events.amazonaws.com"}
    bound, free = (
        {**function, "Permission": resource("AWS::Lambda::Permission", {**on, **more})}
        for more in ({"SourceArn": "arn:rule"}, {})
    )
    text = "events.amazonaws.com may now: lambda:InvokeFunction, if ArnLike aws:sourcearn arn:rule"
    [change] = changes(function, bound)
    assert (change.kind, change.principal, change.statement) == (WIDER, "Function", text)
    assert [kind for kind, _ in (*told(bound, free), *told(free, bound))] == [WIDER, NARROWER]


@pytest.mark.parametrize("value", [{"Ref": "Given"}, {"Effect": {"Ref": "Given"}, "Action": "s3:*", "Resource": B}])
def test_a_statement_that_only_the_deployment_knows_is_told(value: Any) -> None:
    [change] = changes(bucket(may(ROLE)), bucket(may(ROLE), value))
    assert change.kind is WIDER
    assert change.statement.startswith("a principal that is named there may now: what is known only when deployed: ")
    assert "${Given}" in change.statement


def test_a_document_that_only_the_deployment_knows_is_told() -> None:
    sides = ({"It": resource("AWS::KMS::Key", {"KeyPolicy": {"Ref": name}})} for name in ("One", "Two"))
    (wider, text), (narrower, _) = told(*sides)
    assert (wider, narrower, "${Two}" in text) == (WIDER, NARROWER, True)


def test_everybody_may_invoke_and_so_may_a_service_that_is_none_of_them() -> None:
    anybody = {"FunctionName": "f", "Action": "lambda:InvokeFunction", "Principal": "*"}
    before = {"All": resource("AWS::Lambda::Permission", anybody)}
    after = {**before, "More": resource("AWS::Lambda::Permission", {**anybody, "Principal": "s3.amazonaws.com"})}
    assert told(before, after) == [(WIDER, "s3.amazonaws.com may now: lambda:InvokeFunction")]


def test_a_deny_of_a_new_resource_narrows_nothing() -> None:
    refused = deny("s3:*", B, Principal="*")
    assert [kind for kind, _ in told({}, bucket(refused))] == [OTHER]
    assert [kind for kind, _ in told(bucket(), bucket(refused))] == [NARROWER]


def test_a_statement_under_a_condition_of_the_template_is_not_the_same_as_without() -> None:
    wide, nothing = may(OTHERS), {"Ref": "AWS::NoValue"}
    chosen, otherwise = ({"Fn::If": ["IsShared", *branches]} for branches in ((wide, nothing), (nothing, wide)))
    for before, after in (([chosen], [wide]), ([], [otherwise])):
        [change] = changes(bucket(*before), bucket(*after))
        assert (change.kind, change.who) == (WIDER, (OTHERS,))
