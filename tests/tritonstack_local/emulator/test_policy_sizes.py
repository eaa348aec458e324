"""IAM refuses policies for their length (user guide, "IAM and AWS STS quotas"); whitespace does not count."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.tritonstack_local.emulator.running import Emulator

TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}


def of_length(characters: int, *, base: dict[str, Any] | None = None) -> dict[str, Any]:
    """A policy of so many characters, without whitespace."""
    [first] = (base or {"Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}]})["Statement"]
    document: dict[str, Any] = {"Version": "2012-10-17", "Statement": [{"Sid": "", **first}]}
    document["Statement"][0]["Sid"] = "a" * (characters - len(json.dumps(document, separators=(",", ":"))))
    return document


def put_role(iam: Any, name: str, document: str) -> None:
    iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(TRUST))
    iam.put_role_policy(RoleName=name, PolicyName="first", PolicyDocument=document)


def put_user(iam: Any, name: str, document: str) -> None:
    iam.create_user(UserName=name)
    iam.put_user_policy(UserName=name, PolicyName="first", PolicyDocument=document)


def put_group(iam: Any, name: str, document: str) -> None:
    iam.create_group(GroupName=name)
    iam.put_group_policy(GroupName=name, PolicyName="first", PolicyDocument=document)


def create_version(iam: Any, name: str, document: str) -> None:
    made = iam.create_policy(PolicyName=name, PolicyDocument=json.dumps(of_length(200)))
    iam.create_policy_version(PolicyArn=made["Policy"]["Arn"], PolicyDocument=document, SetAsDefault=True)


def change_trust(iam: Any, name: str, document: str) -> None:
    iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(TRUST))
    iam.update_assume_role_policy(RoleName=name, PolicyDocument=document)


CALLS: list[tuple[Callable[[Any, str, str], Any], int, str]] = [
    (put_role, 10240, "Maximum policy size of 10240 bytes exceeded for role"),
    (put_user, 2048, "Maximum policy size of 2048 bytes exceeded for user"),
    (put_group, 5120, "Maximum policy size of 5120 bytes exceeded for group"),
    (lambda iam, name, document: iam.create_policy(PolicyName=name, PolicyDocument=document), 6144, "PolicySize: 6144"),
    (create_version, 6144, "Cannot exceed quota for PolicySize: 6144"),
    (
        lambda iam, name, document: iam.create_role(RoleName=name, AssumeRolePolicyDocument=document),
        2048,
        "Cannot exceed quota for ACLSizePerRole: 2048",
    ),
    (change_trust, 2048, "Cannot exceed quota for ACLSizePerRole: 2048"),
]


@pytest.mark.parametrize(("call", "longest", "sentence"), CALLS)
def test_a_policy_is_taken_up_to_its_longest_without_whitespace(
    aws: Emulator, name: str, call: Callable[[Any, str, str], Any], longest: int, sentence: str
) -> None:
    iam, base = aws.client("iam"), TRUST if "ACL" in sentence else None
    call(iam, f"{name}-a", json.dumps(of_length(longest, base=base), indent=8))
    with pytest.raises(ClientError, match=sentence) as refused:
        call(iam, f"{name}-b", json.dumps(of_length(longest + 1, base=base)))
    assert refused.value.response["Error"]["Code"] == "LimitExceeded"
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 409


def test_inline_policies_count_together_and_one_that_is_written_anew_counts_once(aws: Emulator, name: str) -> None:
    iam = aws.client("iam")
    for _ in range(2):
        if not iam.list_roles(PathPrefix=f"/{name}/")["Roles"]:
            iam.create_role(RoleName=name, Path=f"/{name}/", AssumeRolePolicyDocument=json.dumps(TRUST))
        for policy in ("first", "second"):
            iam.put_role_policy(RoleName=name, PolicyName=policy, PolicyDocument=json.dumps(of_length(5120)))
    with pytest.raises(ClientError, match="Maximum policy size of 10240 bytes exceeded"):
        iam.put_role_policy(RoleName=name, PolicyName="third", PolicyDocument=json.dumps(of_length(200)))


def role(**properties: Any) -> dict[str, Any]:
    return {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": TRUST, **properties}}


@pytest.mark.parametrize(
    ("resource", "sentence"),
    [
        (role(Policies=[{"PolicyName": each, "PolicyDocument": of_length(5121)} for each in "ab"]), "Maximum policy"),
        (role(AssumeRolePolicyDocument=of_length(2049, base=TRUST)), "ACLSizePerRole"),
        ({"Type": "AWS::IAM::ManagedPolicy", "Properties": {"PolicyDocument": of_length(6145)}}, "PolicySize"),
        (
            {
                "Type": "AWS::IAM::Policy",
                "Properties": {"PolicyName": "a", "PolicyDocument": of_length(10241), "Roles": [{"Ref": "Role"}]},
            },
            "Maximum policy size of 10240 bytes exceeded for role",
        ),
    ],
)
def test_a_stack_whose_policy_is_too_long_fails_with_iam_s_sentence(
    aws: Emulator, name: str, resource: dict[str, Any], sentence: str
) -> None:
    resources = {"Role": role(), "Long": resource}
    assert aws.deploy(name, resources) == "ROLLBACK_COMPLETE"
    events = aws.client("cloudformation").describe_stack_events(StackName=name)["StackEvents"]
    reasons = [each.get("ResourceStatusReason", "") for each in events if each["LogicalResourceId"] == "Long"]
    assert any(sentence in each for each in reasons), reasons
