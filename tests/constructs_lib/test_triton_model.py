"""Image, execution role and Model: what the container serves, and what SageMaker may do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from constructs_lib.triton_model import MultiModelData, SingleModelData, TritonImage
from tests.constructs_lib.templates import (
    IMAGE,
    PREFIX,
    built,
    flat,
    listed,
    new_model,
    new_role,
    of_type,
    only,
    properties,
    statements,
)
from tritonstack.catalogue import load_catalogue


def test_a_release_gives_the_image_of_the_catalogue() -> None:
    image = TritonImage.from_release(release="24.09", region="eu-west-1")
    assert image.uri == load_catalogue().image_uri(release="24.09", region="eu-west-1")
    assert image.region == "eu-west-1"
    assert image.repository == "sagemaker-tritonserver"


def test_a_release_without_an_image_is_refused() -> None:
    with pytest.raises(LookupError, match=r"24\.02"):
        TritonImage.from_release(release="24.02", region="eu-west-1")


@pytest.mark.parametrize(
    ("uri", "arn"),
    [
        (
            "123456789012.dkr.ecr.eu-west-1.amazonaws.com/team/triton:24.09-py3",
            "arn:aws:ecr:eu-west-1:123456789012:repository/team/triton",
        ),
        (
            "727897471807.dkr.ecr.cn-north-1.amazonaws.com.cn/sagemaker-tritonserver:23.12-py3",
            "arn:aws:ecr:cn-north-1:727897471807:repository/sagemaker-tritonserver",
        ),
        (
            f"123456789012.dkr.ecr.us-east-1.amazonaws.com/triton@sha256:{'a' * 64}",
            "arn:aws:ecr:us-east-1:123456789012:repository/triton",
        ),
    ],
)
def test_the_repository_follows_from_the_uri(uri: str, arn: str) -> None:
    assert TritonImage.from_uri(uri).repository_arn(partition="aws") == arn


@pytest.mark.parametrize(
    "uri",
    [
        "nvcr.io/nvidia/tritonserver:24.09-py3",
        "123456789012.dkr.ecr.eu-west-1.amazonaws.com/triton",
        "123456789012.dkr.ecr.eu-west-1.amazonaws.com/triton@sha256:abc",
        "12345.dkr.ecr.eu-west-1.amazonaws.com/triton:1",
        "",
    ],
)
def test_an_image_that_no_role_could_be_given_is_refused_with_what_is_allowed(uri: str) -> None:
    with pytest.raises(ValueError, match="an image in ECR, <account>"):
        TritonImage.from_uri(uri)


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


def container(data: MultiModelData | SingleModelData) -> dict[str, Any]:
    template = built(lambda stack: new_model(stack, data))
    return dict(properties(template, "AWS::SageMaker::Model")["PrimaryContainer"])


def test_the_roles_policy_is_attached_before_the_model_is_made() -> None:
    template = built(new_model)
    policy, _ = only(template, "AWS::IAM::Policy")
    assert policy in only(template, "AWS::SageMaker::Model")[1]["DependsOn"]


def test_its_name_is_generated() -> None:
    assert "ModelName" not in properties(built(new_model), "AWS::SageMaker::Model")


def test_many_models_lie_under_a_prefix() -> None:
    rendered = container(MultiModelData(prefix=PREFIX))
    assert rendered["Mode"] == "MultiModel"
    assert flat(rendered["ModelDataUrl"]).endswith(f"}}/{PREFIX}")
    assert flat(rendered["ModelDataUrl"]).startswith("s3://${")


@pytest.mark.parametrize(("cache", "setting"), [(True, "Enabled"), (False, "Disabled")])
def test_the_model_cache_is_rendered_either_way(cache: bool, setting: str) -> None:
    rendered = container(MultiModelData(prefix=PREFIX, cache=cache))
    assert rendered["MultiModelConfig"] == {"ModelCacheSetting": setting}


def test_a_single_model_is_one_archive_and_has_no_cache_setting() -> None:
    rendered = container(SingleModelData(key=f"{PREFIX}bert.0123456789abcdef.tar.gz"))
    assert rendered["Mode"] == "SingleModel"
    assert flat(rendered["ModelDataUrl"]).endswith(f"}}/{PREFIX}bert.0123456789abcdef.tar.gz")
    assert "MultiModelConfig" not in rendered


def test_image_and_environment_are_as_given() -> None:
    rendered = container(MultiModelData(prefix=PREFIX))
    assert rendered["Image"] == IMAGE.uri
    assert rendered["Environment"] == {"SAGEMAKER_TRITON_LOG_VERBOSE": "false"}
