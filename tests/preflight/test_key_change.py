"""A changed KMS key without the earlier key in the settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fake_aws import AwsError, Response
from tests.preflight.subjects import results_of, served
from tritonstack.preflight.deployed import check_key_change

IDS = ("11111111-2222-3333-4444-555555555555", "99999999-2222-3333-4444-555555555555")
OWN, OTHER = (f"arn:aws:kms:us-east-1:123456789012:key/{each}" for each in IDS)


def deployed(key: str, *, made: bool) -> dict[str, Response]:
    """An environment whose objects are under the key; ``made``: by its own stack."""
    resource = {
        "ResourceType": "AWS::KMS::Key",
        "PhysicalResourceId": key.rpartition("/")[2],
        "ResourceStatus": "CREATE_COMPLETE",
    }
    return {
        "ssm.GetParameter": {"Parameter": {"Name": "n", "Value": key}},
        "cloudformation.ListStackResources": {"StackResourceSummaries": [resource] if made else []},
    }


@pytest.mark.parametrize(
    ("responses", "artifacts", "advised"),
    [
        ({"ssm.GetParameter": AwsError("ParameterNotFound")}, {"key_arn": OWN}, None),
        (deployed(OWN, made=False), {"key_arn": OWN}, None),
        (deployed(OTHER, made=True), {}, None),
        (deployed(OTHER, made=True), {"key_arn": OWN}, "created"),
        (deployed(OTHER, made=True), {"key_arn": OWN, "earlier_key": "created"}, None),
        (deployed(OTHER, made=False), {"key_arn": OWN}, OTHER),
        (deployed(OTHER, made=False), {"key_arn": OWN, "earlier_key": OTHER}, None),
        (deployed(OWN, made=False), {}, OWN),
        (deployed(OWN, made=False), {"earlier_key": OWN}, None),
    ],
)
def test_the_key_of_the_objects_stays_allowed(
    tmp_path: Path, responses: dict[str, Response], artifacts: dict[str, Any], advised: str | None
) -> None:
    (result,) = results_of(check_key_change, served(tmp_path, artifacts=artifacts), responses).values()
    assert result.outcome == ("passes" if advised is None else "fails")
    if advised is not None:
        assert f"earlier_key: {advised}}}" in result.advice
        assert "tritonstack docs updates#change-the-key" in result.advice
