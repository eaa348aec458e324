"""The log group of an endpoint over the life of its stack: role, function and custom resource as they are synthesised.

Permissions are enforced, so that the function's role has what its calls take.
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from constructs_lib.handler_function import pack
from tests.stacks.environments import DIGITS, serving_template
from tests.tritonstack_local.emulator.running import Emulator, parameter

KEY = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
FAILING = {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "no such type", "Value": "1"}, "DependsOn": "Group"}


@pytest.fixture
def resources(guarded: Emulator, name: str, tmp_path: Path) -> dict[str, Any]:
    """The resources of ``EndpointLog`` for an endpoint called ``name``."""
    pack("endpoint_log", tmp_path)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for path in sorted(each for each in tmp_path.rglob("*") if each.is_file()):
            file.write(path, path.relative_to(tmp_path).as_posix())
    guarded.client("s3").create_bucket(Bucket=name)
    guarded.client("s3").put_object(Bucket=name, Key="code.zip", Body=archive.getvalue())
    whole = serving_template(DIGITS, logs={"endpoint_days": 30}, artifacts={"retain": False})["Resources"]
    own = {each: whole[each] for each in whole if each.startswith("EndpointLog")}
    text = json.dumps(own).replace("dev-serving-digits", name).replace("dev-digits", name)
    found: dict[str, Any] = json.loads(text)
    [function] = [each for each in found.values() if each["Type"] == "AWS::Lambda::Function"]
    function["Properties"]["Code"] = {"S3Bucket": name, "S3Key": "code.zip"}
    [(made, group)] = [each for each in found.items() if each[1]["Type"] == "Custom::EndpointLogGroup"]
    group["Properties"]["KmsKeyId"] = KEY
    found["Group"] = found.pop(made)
    return found


def group_of(aws: Emulator, name: str) -> dict[str, Any] | None:
    groups = aws.client("logs").describe_log_groups(logGroupNamePrefix=f"/aws/sagemaker/Endpoints/{name}")["logGroups"]
    return groups[0] if groups else None


def test_an_adopted_group_is_given_back_by_a_rollback_and_stays_when_the_stack_goes(
    guarded: Emulator, name: str, resources: dict[str, Any]
) -> None:
    logs, group = guarded.client("logs"), f"/aws/sagemaker/Endpoints/{name}"
    before = {"Parameter": parameter()}
    assert guarded.deploy(name, before) == "CREATE_COMPLETE"
    logs.create_log_group(logGroupName=group)
    logs.put_retention_policy(logGroupName=group, retentionInDays=365)
    assert guarded.deploy(name, {**before, **resources, "Failing": FAILING}) == "UPDATE_ROLLBACK_COMPLETE"
    found = group_of(guarded, name)
    assert found is not None
    assert (found["retentionInDays"], found.get("kmsKeyId")) == (365, None)
    assert guarded.deploy(name, {**before, **resources}) == "UPDATE_COMPLETE"
    found = group_of(guarded, name)
    assert found is not None
    assert (found["retentionInDays"], found["kmsKeyId"]) == (30, KEY)
    assert guarded.delete_stack(name) == "DELETE_COMPLETE"
    assert group_of(guarded, name) is not None


def test_the_group_of_a_failed_creation_can_be_read_and_goes_with_the_next_stack(
    guarded: Emulator, name: str, resources: dict[str, Any]
) -> None:
    assert guarded.deploy(name, {**resources, "Failing": FAILING}) == "ROLLBACK_COMPLETE"
    assert group_of(guarded, name) is not None
    assert guarded.delete_stack(name) == "DELETE_COMPLETE"
    assert guarded.deploy(name, resources) == "CREATE_COMPLETE", guarded.failures(name)
    assert guarded.delete_stack(name) == "DELETE_COMPLETE"
    assert group_of(guarded, name) is None
