"""Names that the account has already."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fake_aws import AwsError, Response
from tests.preflight.subjects import results_of, served
from tritonstack.preflight.deployed import check_endpoint_name

NAME = "test-e0"
ARN = f"arn:aws:sagemaker:us-east-1:123456789012:endpoint/{NAME}"
THERE: dict[str, Response] = {"sagemaker.DescribeEndpoint": {"EndpointName": NAME, "EndpointArn": ARN}}


def tagged(**tags: str) -> dict[str, Response]:
    """An endpoint of that name with tags of ours."""
    listed = [{"Key": f"tritonstack:{name}", "Value": value} for name, value in tags.items()]
    return {**THERE, "sagemaker.ListTags": {"Tags": [*listed, {"Key": "team", "Value": "platform"}]}}


@pytest.mark.parametrize(
    ("responses", "outcome", "found"),
    [
        ({"sagemaker.DescribeEndpoint": AwsError("ValidationException")}, "passes", "no endpoint"),
        (tagged(environment="test", endpoint="e0"), "passes", "own"),
        (tagged(environment="te", endpoint="st-e0"), "fails", "endpoint st-e0 of environment te"),
        (tagged(), "fails", "no stack made it"),
        ({**THERE, "sagemaker.ListTags": AwsError("AccessDeniedException")}, "unknown", "sagemaker:ListTags"),
    ],
)
def test_an_endpoint_of_the_name_is_the_environments_own_or_not_there(
    tmp_path: Path, responses: dict[str, Response], outcome: str, found: str
) -> None:
    (result,) = results_of(check_endpoint_name, served(tmp_path), responses).values()
    assert result.subject == NAME
    assert result.outcome == outcome
    assert found in result.found
    if outcome == "fails":
        assert "delete-endpoint --region us-east-1 --endpoint-name test-e0" in result.advice
