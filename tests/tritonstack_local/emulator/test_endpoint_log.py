"""The function of an endpoint's log group against the local CloudWatch Logs."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest

from tests.tritonstack_local.emulator.running import Emulator

KEY = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"


@pytest.fixture(scope="module")
def log_group() -> ModuleType:
    return importlib.import_module("lambda.endpoint_log.handler")


def test_a_group_that_was_retained_is_adopted_with_new_retention_and_key(
    aws: Emulator, name: str, log_group: ModuleType
) -> None:
    logs = aws.client("logs")
    group = f"/aws/sagemaker/Endpoints/{name}"
    properties = {"LogGroupName": group, "RetentionInDays": "30", "KmsKeyId": KEY, "Retain": "true"}

    def described() -> list[tuple[object, object]]:
        found = logs.describe_log_groups(logGroupNamePrefix=group)["logGroups"]
        return [(each.get("retentionInDays"), each.get("kmsKeyId")) for each in found]

    assert log_group.apply(logs, "Create", properties) == "made"
    assert log_group.apply(logs, "Delete", properties) == "kept"
    assert described() == [(30, KEY)]
    assert log_group.apply(logs, "Create", {**properties, "RetentionInDays": "90"}) == "adopted"
    assert described() == [(90, KEY)]
    gone = {**properties, "Retain": "false"}
    assert [log_group.apply(logs, "Delete", gone) for _ in range(2)] == ["deleted", "deleted"]
    assert described() == []


def test_the_key_of_a_group_that_is_not_there_is_refused_and_one_can_be_taken_away(aws: Emulator, name: str) -> None:
    logs = aws.client("logs")
    with pytest.raises(logs.exceptions.ResourceNotFoundException):
        logs.associate_kms_key(logGroupName=name, kmsKeyId=KEY)
    logs.create_log_group(logGroupName=name, kmsKeyId=KEY)
    logs.disassociate_kms_key(logGroupName=name)
    [group] = logs.describe_log_groups(logGroupNamePrefix=name)["logGroups"]
    assert "kmsKeyId" not in group
