"""Changes of role permissions, resource policies and trust policies that are reported as wider or narrower."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases import cases
from tests.review.policies import (
    NARROWER,
    OTHER,
    WIDER,
    allow,
    bucket,
    changes,
    deny,
    environment,
    policy,
    reported,
    role,
)
from tests.review.small import Template, resource
from tests.stacks.app_process import ROOT
from tritonstack.review.access.permissions import Direction, permission_changes
from tritonstack.review.snapshot import NO_ENVIRONMENT, Finding
from tritonstack.review.stored import read_snapshots

GET, PUT = "s3:GetObject", "s3:PutObject"
B = "arn:aws:s3:::b/*"
HERE = {"StringEquals": {"aws:SourceAccount": "111111111111"}}
IF_HERE = "StringEquals aws:sourceaccount 111111111111"
Statements = list[dict[str, Any]]
Line = tuple[Direction, str]
"""What a change does, and the sentence for it."""


@cases("before, after, expected")
def test_statement_by_statement(before: Statements, after: Statements, expected: list[Line]) -> None:
    assert reported(role(*before), role(*after)) == expected


@cases("before, after, kinds")
def test_what_is_stricter(before: Statements, after: Statements, kinds: list[Direction]) -> None:
    assert [each.kind for each in changes(role(*before), role(*after))] == kinds


def test_a_grant_that_moved_to_another_policy_of_its_role_is_no_change() -> None:
    inline = role(
        Policies=[{"PolicyName": "P", "PolicyDocument": {"Statement": allow(PUT)}}], ManagedPolicyArns=[{"Ref": "M"}]
    )
    managed = resource("AWS::IAM::ManagedPolicy", {"PolicyDocument": {"Statement": [allow("s3:ListBucket")]}})
    before = {**role(allow([GET, PUT]), allow("s3:ListBucket"))}
    assert reported(before, {**inline, "M": managed, "Access": policy(allow(GET))}) == []


def test_a_new_role_lists_what_it_may_do_and_who_may_be_it() -> None:
    after = role(allow(GET), deny(PUT, Condition=HERE))
    assert reported(None, after) == [
        (WIDER, f"new: may: {GET} on {B}"),
        (OTHER, f"new, with a Deny: may not: {PUT} on {B}, if {IF_HERE}"),
        (WIDER, "new: sagemaker.amazonaws.com may assume it: sts:AssumeRole"),
    ]
    assert [kind for kind, _ in reported(after, None)] == [NARROWER, OTHER, NARROWER]


@pytest.mark.parametrize(
    ("before", "after", "kind", "words"),
    [
        (None, "arn:boundary", NARROWER, "is bounded from now on by arn:boundary"),
        ("arn:boundary", None, WIDER, "is no longer bounded by arn:boundary"),
        ("arn:a", "arn:b", OTHER, "is bounded by arn:b, no longer by arn:a; what they allow is not known here"),
    ],
)
def test_a_permissions_boundary(before: str | None, after: str | None, kind: Any, words: str) -> None:
    templates = [role(allow(GET), **({"PermissionsBoundary": each} if each else {})) for each in (before, after)]
    assert reported(*templates) == [(kind, words)]


def test_a_managed_policy_of_aws_is_named() -> None:
    [change] = changes(role(), role(ManagedPolicyArns=["arn:aws:iam::aws:policy/AdministratorAccess"]))
    assert change.kind == WIDER
    assert change.statement == "may now do what the managed policy arn:aws:iam::aws:policy/AdministratorAccess allows"
    assert change.wildcards == ("managed policy AdministratorAccess is broad by its name",)


def test_a_reference_in_another_spelling_of_the_same_value_is_no_change() -> None:
    before = {**bucket(), **role(allow(GET, {"Fn::Sub": "arn:${AWS::Partition}:s3:::${Bucket}/*"}))}
    after = {**bucket(), **role(allow(GET, {"Fn::Sub": "${Bucket.Arn}/*"}))}
    assert reported(before, after) == []


def test_a_parameter_that_reads_another_value_is_news() -> None:
    template = role(allow(GET, {"Fn::Sub": "arn:aws:s3:::${Name}/*"}))
    name = {"Type": "AWS::SSM::Parameter::Value<String>"}
    sides = [
        environment(template, sections={"Parameters": {"Name": {**name, "Default": default}}})
        for default in ("/a", "/b")
    ]
    assert [(each.kind, each.statement) for each in permission_changes(*sides)] == [
        (WIDER, f"may now: {GET} on arn:aws:s3:::${{ssm:/b}}/*"),
        (NARROWER, f"may no longer: {GET} on arn:aws:s3:::${{ssm:/a}}/*"),
    ]


def test_wildcards_are_called_out_with_the_reason_for_them() -> None:
    found = Finding(
        stack="serving", path="Access", rule="AwsSolutions-IAM5[Resource::<Other.Arn>/*]", accepted="For x."
    )
    after = role(allow(["s3:*"], [{"Fn::Sub": "${Other.Arn}/*"}, "arn:aws:s3:::*"]))
    [change] = changes(role(allow(GET)), after, findings=(found,))[:1]
    assert change.wildcards == (
        "action s3:* (every action of s3) — no reason is written",
        "resource ${Other.Arn}/* — accepted: For x.",
        "resource arn:aws:s3:::* (every resource of s3) — no reason is written",
    )


def test_every_wildcard_of_the_committed_environments_has_its_reason() -> None:
    """Synthesis refuses one without; here they are found by cdk-nag's way to write a reference."""
    environments = read_snapshots(ROOT / "snapshots").environments.values()
    reported_of = [
        wild for each in environments for one in permission_changes(NO_ENVIRONMENT, each) for wild in one.wildcards
    ]
    assert any("accepted: " in each and "${" in each for each in reported_of)
    assert [each for each in reported_of if "no reason" in each] == []


def test_a_resource_that_acts_as_another_role_is_reported() -> None:
    def running(name: str) -> Template:
        model = resource("AWS::SageMaker::Model", {"ExecutionRoleArn": {"Fn::GetAtt": [name, "Arn"]}})
        return {**role(), "Other": role()["Role"], "Model": model}

    [change] = changes(running("Role"), running("Other"))
    assert (change.kind, change.principal, change.source) == (OTHER, "Model", "ExecutionRoleArn")
    assert change.statement == "acts as Other; before: Role"
    assert changes(running("Role"), running("Role")) == ()


def test_a_role_outside_the_app_is_reported_of_a_new_resource_too() -> None:
    arn = "arn:aws:iam::111111111111:role/team/containers"
    model = resource("AWS::SageMaker::Model", {"ExecutionRoleArn": arn})
    [new] = changes({}, {"Model": model})
    assert (new.kind, new.principal) == (OTHER, "Model")
    assert new.statement == f"acts as {arn}, a role outside the app, whose permissions no stack sets"
    own = resource("AWS::SageMaker::Model", {"ExecutionRoleArn": {"Fn::GetAtt": ["Role", "Arn"]}})
    [changed] = changes({**role(), "Model": own}, {**role(), "Model": model})
    assert changed.statement == f"{new.statement}; before: Role"


def test_an_attached_managed_policy_is_reported_at_its_role() -> None:
    managed = {"M": resource("AWS::IAM::ManagedPolicy", {"PolicyDocument": {"Statement": [allow(GET)]}})}
    before, after = {**role(), **managed}, {**role(ManagedPolicyArns=[{"Ref": "M"}]), **managed}
    assert [(each.principal, each.kind) for each in changes(before, after)] == [("Role", WIDER)]
    assert [(each.principal, each.kind) for each in changes(role(), before)] == [("M", WIDER)]


# Policies of resources, and who may assume a role.
ROLE, OTHERS = "arn:aws:iam::111111111111:role/r", "arn:aws:iam::222222222222:root"


def may(*principals: Any, **members: Any) -> dict[str, Any]:
    """A statement of a bucket's policy that lets these read."""
    return allow(GET, B, Principal={"AWS": list(principals)}, **members)


@cases("before, after, expected")
def test_a_bucket_policy(before: Statements, after: Statements, expected: list[Line]) -> None:
    """The bucket exists on both sides; a Deny in place of a wider one has no line of its own."""
    assert reported(bucket(*before), bucket(*after)) == expected


def test_principals_of_other_accounts_and_everybody_are_called_out() -> None:
    [change] = changes(bucket(may(ROLE)), bucket(may(ROLE, OTHERS)))
    assert (change.other_accounts, change.wildcards) == (("222222222222",), (f"resource {B}",))
    [change] = changes(bucket(), bucket(may(ROLE, OTHERS)))
    assert change.other_accounts == ("222222222222",)
    [change] = changes(bucket(may(ROLE)), bucket(may("*")))
    assert (change.other_accounts, change.wildcards) == ((), ("principal: anybody", f"resource {B}"))


def one(kind: str, name: str, *statements: Any, **members: Any) -> Template:
    """A resource whose policy is a property of its own."""
    return {"It": resource(kind, {name: {"Statement": list(statements)}, **members})}


@cases("kind, name, members")
def test_every_kind_of_resource_policy(kind: str, name: str, members: dict[str, Any]) -> None:
    first = allow("x:A", "*", Principal={"AWS": ROLE})
    second = allow("x:B", "*", Principal={"AWS": ROLE})
    assert reported(one(kind, name, first, **members), one(kind, name, first, second, **members)) == [
        (WIDER, f"{ROLE} may now: x:B")
    ]


def test_a_log_groups_policy_may_be_text() -> None:
    text = '{"Statement": {"Effect": "Allow", "Action": "logs:Put*", "Resource": "*", "Principal": "*"}}'
    after = {"It": resource("AWS::Logs::ResourcePolicy", {"PolicyName": "p", "PolicyDocument": text})}
    assert reported({}, after) == [(WIDER, "new: anybody may: logs:Put*")]


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
    assert [kind for kind, _ in (*reported(bound, free), *reported(free, bound))] == [WIDER, NARROWER]


@pytest.mark.parametrize(
    "value",
    [
        {"Ref": "Given"},
        {"Effect": {"Ref": "Given"}, "Action": "s3:*", "Resource": B},
        {"Fn::If": ["IsShared", {"Ref": "Given"}, {"Ref": "AWS::NoValue"}]},
    ],
)
def test_a_statement_with_values_known_only_at_deployment_is_reported(value: Any) -> None:
    [change] = changes(bucket(may(ROLE)), bucket(may(ROLE), value))
    assert change.kind == WIDER
    assert change.statement.startswith("a principal that is named there may now: what is known only when deployed: ")
    assert "${Given}" in change.statement


def test_a_deny_of_a_new_resource_narrows_nothing() -> None:
    refused = deny("s3:*", B, Principal="*")
    assert [kind for kind, _ in reported({}, bucket(refused))] == [OTHER]
    assert [kind for kind, _ in reported(bucket(), bucket(refused))] == [NARROWER]
