"""The execution role: what SageMaker may do with it, and what not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.constructs_lib.templates import (
    IMAGE,
    PREFIX,
    built,
    flat,
    listed,
    new_role,
    of_type,
    only,
    properties,
    statements,
)


def role_template(**changes: Any) -> dict[str, Any]:
    return built(lambda stack: new_role(stack, **changes))


@pytest.fixture(scope="module")
def template() -> dict[str, Any]:
    return role_template()


@pytest.fixture(scope="module")
def access(template: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return statements(properties(template, "AWS::IAM::Policy"))


def test_sagemaker_may_assume_it_for_this_account_alone(template: dict[str, Any]) -> None:
    [trust] = properties(template, "AWS::IAM::Role")["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "sagemaker.amazonaws.com"}
    assert trust["Condition"] == {"StringEquals": {"aws:SourceAccount": "123456789012"}}


def test_it_reads_archives_of_its_platform_and_nothing_else(access: dict[str, dict[str, Any]]) -> None:
    assert access["ReadArchives"]["Action"] == "s3:GetObject"
    assert flat(access["ReadArchives"]["Resource"]).endswith(f"}}/{PREFIX}*")
    assert access["ListArchives"]["Condition"] == {"StringLike": {"s3:prefix": [f"{PREFIX}*"]}}
    s3_actions = [action for each in access.values() for action in listed(each["Action"]) if action.startswith("s3:")]
    assert sorted(s3_actions) == ["s3:GetObject", "s3:ListBucket"]


def test_it_decrypts_with_the_key_of_the_archives_alone(access: dict[str, dict[str, Any]]) -> None:
    kms = [each for each in access.values() if any(action.startswith("kms:") for action in listed(each["Action"]))]
    [statement] = kms
    assert statement["Action"] == "kms:Decrypt"
    assert "KeyArn" in flat(statement["Resource"])


def test_it_pulls_one_repository(access: dict[str, dict[str, Any]]) -> None:
    assert access["PullImage"]["Resource"] == "arn:aws:ecr:us-east-1:763104351884:repository/sagemaker-tritonserver"
    assert access["LogInToRegistry"]["Action"] == "ecr:GetAuthorizationToken"


def test_it_writes_the_logs_of_its_endpoint_alone(access: dict[str, dict[str, Any]]) -> None:
    group = "arn:aws:logs:us-east-1:123456789012:log-group:/aws/sagemaker/Endpoints/local-digits"
    assert access["WriteLogs"]["Resource"] == [group, f"{group}:log-stream:*"]
    logs = [sid for sid, each in access.items() if any(action.startswith("logs:") for action in listed(each["Action"]))]
    assert logs == ["WriteLogs"]


def test_it_writes_metrics_in_the_namespaces_of_endpoints_alone(access: dict[str, dict[str, Any]]) -> None:
    assert access["WriteMetrics"]["Condition"] == {
        "StringEquals": {"cloudwatch:namespace": ["AWS/SageMaker", "/aws/sagemaker/Endpoints"]}
    }


def test_no_managed_policy_and_no_inline_policy_widens_it(template: dict[str, Any]) -> None:
    role = properties(template, "AWS::IAM::Role")
    assert "ManagedPolicyArns" not in role
    assert "Policies" not in role


@pytest.mark.parametrize(
    "change",
    [
        {"archive_prefix": "endpoints/digits/25.04-t4/"},
        {"archive_prefix": "endpoints/digits/24.09-a10g/"},
        {"image": replace(IMAGE, account="785573368785")},
    ],
)
def test_a_new_platform_gets_a_policy_beside_the_old_one_on_the_same_role(
    template: dict[str, Any], change: dict[str, Any]
) -> None:
    """CloudFormation removes the old one in its clean-up, after the old fleet has gone."""
    changed = role_template(**change)
    assert only(changed, "AWS::IAM::Role")[0] == only(template, "AWS::IAM::Role")[0]
    assert only(changed, "AWS::IAM::Policy")[0] != only(template, "AWS::IAM::Policy")[0]


def test_a_volume_key_may_be_used_through_grants_for_aws_resources_alone() -> None:
    key = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    statement = statements(properties(role_template(volume_key_arn=key), "AWS::IAM::Policy"))["AttachEncryptedVolume"]
    assert statement["Action"] == "kms:CreateGrant"
    assert statement["Resource"] == key
    assert statement["Condition"] == {"Bool": {"kms:GrantIsForAWSResource": "true"}}


def test_a_volume_key_named_by_alias_is_narrowed_to_that_alias() -> None:
    alias = "arn:aws:kms:us-east-1:123456789012:alias/volumes"
    statement = statements(properties(role_template(volume_key_arn=alias), "AWS::IAM::Policy"))["AttachEncryptedVolume"]
    assert statement["Resource"] == "arn:aws:kms:us-east-1:123456789012:key/*"
    assert statement["Condition"]["ForAnyValue:StringEquals"] == {"kms:ResourceAliases": "alias/volumes"}


def test_the_role_has_one_policy(template: dict[str, Any]) -> None:
    role_id, _ = only(template, "AWS::IAM::Role")
    [policy] = of_type(template, "AWS::IAM::Policy").values()
    assert policy["Properties"]["Roles"] == [{"Ref": role_id}]
