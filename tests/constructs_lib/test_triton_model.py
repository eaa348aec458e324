"""Image, execution role and Model: what the container serves, and what SageMaker may do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from constructs_lib.triton_model import TritonImage
from tests.constructs_lib.templates import IMAGE, built, new_role, only


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


@pytest.mark.parametrize(
    "change",
    [
        {"archive_prefix": "endpoints/digits/25.04-t4/"},
        {"archive_prefix": "endpoints/digits/24.09-a10g/"},
        {"image": replace(IMAGE, account="785573368785")},
    ],
)
def test_a_new_platform_gets_a_policy_next_to_the_old_one_on_the_same_role(
    template: dict[str, Any], change: dict[str, Any]
) -> None:
    """CloudFormation removes the old one in its clean-up, after the old fleet has gone."""
    changed = role_template(**change)
    assert only(changed, "AWS::IAM::Role")[0] == only(template, "AWS::IAM::Role")[0]
    assert only(changed, "AWS::IAM::Policy")[0] != only(template, "AWS::IAM::Policy")[0]
