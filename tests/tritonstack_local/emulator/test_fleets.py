"""Instances of endpoints: shortage, counts and weights."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from tests.docs.pages import code_blocks
from tests.models.folders import source_of, write_double
from tests.tritonstack_local.emulator.running import Emulator, make_config, serving
from tests.tritonstack_local.emulator.scaled_variants import Tracked, target
from tests.tritonstack_local.emulator.test_faults import send
from tests.tritonstack_local.emulator.test_stack_operations import PAGE, run
from tritonstack.archives.exporting import fetch_source
from tritonstack.errors import InputError

T4, A10G = "ml.g4dn.xlarge", "ml.g5.12xlarge"
NO_CAPACITY = "Unable to provision requested ML compute capacity due to InsufficientInstanceCapacity error."
LIMIT = "The account-level service limit 'ml.g4dn.xlarge for endpoint usage' is "


@pytest.fixture
def short(aws: Emulator) -> Iterator[Emulator]:
    """An emulator whose faults are removed afterwards."""
    yield aws
    send(aws, "DELETE")


def lacks(aws: Emulator, what: str, *, instance_type: str = T4, times: int = 1) -> None:
    """Make AWS refuse the next instances of a type."""
    status, response = send(aws, "POST", {"instance_type": instance_type, "short_of": what, "times": times})
    assert status == 200, response


def test_an_endpoint_without_capacity_fails_and_can_only_be_deleted(short: Emulator, name: str) -> None:
    make_config(short, name)
    sagemaker = short.client("sagemaker")
    lacks(short, "capacity")
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
    found = sagemaker.describe_endpoint(EndpointName=name)
    assert (found["EndpointStatus"], found["FailureReason"].startswith(NO_CAPACITY)) == ("Failed", True)
    sagemaker.delete_endpoint(EndpointName=name)
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
    assert sagemaker.describe_endpoint(EndpointName=name)["EndpointStatus"] == "InService"


def test_an_endpoint_beyond_the_quota_is_refused_and_never_made(short: Emulator, name: str) -> None:
    make_config(short, name)
    sagemaker = short.client("sagemaker")
    lacks(short, "limit")
    with pytest.raises(sagemaker.exceptions.ResourceLimitExceeded, match="a request delta of 1 Instances") as refused:
        sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
    assert LIMIT in str(refused.value)
    with pytest.raises(ClientError, match="Could not find endpoint"):
        sagemaker.describe_endpoint(EndpointName=name)


@pytest.mark.parametrize(("what", "message"), [("capacity", NO_CAPACITY), ("limit", LIMIT)])
def test_a_stack_without_instances_rolls_back_and_is_deployed_again_once_there_are_some(
    short: Emulator, name: str, what: str, message: str
) -> None:
    lacks(short, what)
    assert short.deploy(name, serving(name)) == "ROLLBACK_COMPLETE"
    assert message in short.failures(name)
    assert short.client("sagemaker").list_endpoints(NameContains=name)["Endpoints"] == []
    assert short.delete_stack(name) == "DELETE_COMPLETE"

    assert short.deploy(name, serving(name)) == "CREATE_COMPLETE"
    before = short.client("sagemaker").describe_endpoint(EndpointName=name)["EndpointConfigName"]
    changed = serving(name, container={"Environment": {"SAGEMAKER_TRITON_LOG_VERBOSE": "false"}})
    lacks(short, what)
    assert short.deploy(name, changed) == "UPDATE_ROLLBACK_COMPLETE"
    assert message in short.failures(name)
    found = short.client("sagemaker").describe_endpoint(EndpointName=name)
    assert (found["EndpointStatus"], found["EndpointConfigName"]) == ("InService", before)
    assert short.deploy(name, changed) == "UPDATE_COMPLETE"


@pytest.mark.parametrize(("what", "message"), [("capacity", NO_CAPACITY), ("limit", f"{LIMIT}1 Instances")])
def test_a_scale_out_without_instances_is_a_failed_activity_and_is_tried_again(
    short: Emulator, name: str, what: str, message: str
) -> None:
    tracked = Tracked(short, name)
    lacks(short, what)
    if what == "limit":  # what the account has is counted over all its endpoints
        for other in short.client("sagemaker").list_endpoints(MaxResults=100)["Endpoints"]:
            if other["EndpointName"] != name:
                short.client("sagemaker").delete_endpoint(EndpointName=other["EndpointName"])
    assert tracked.invoked(1100, minutes=3) == 1
    of = {"ServiceNamespace": "sagemaker", "ResourceId": target(name)["ResourceId"]}
    [failed] = tracked.scaling.describe_scaling_activities(**of)["ScalingActivities"]
    assert failed["StatusCode"] == "Failed"
    assert failed["StatusMessage"].startswith("Failed to set desired instance count to 2. Reason: ")
    assert message in failed["StatusMessage"]
    [documented] = [block for block in code_blocks(PAGE) if block.heading == "No instances"]
    assert f"{of['ResourceId']}\tFailed to set desired instance count to 2." in run(documented, short)
    assert tracked.invoked(700, minutes=2) == 2
    last, *_ = tracked.scaling.describe_scaling_activities(**of)["ScalingActivities"]
    assert last["StatusCode"] == "Successful"


WEIGHTS = bytes(range(256)) * 50_000
DIGEST = hashlib.sha256(WEIGHTS).hexdigest()


def _source(root: Path, key: str) -> Path:
    folder = write_double(root)
    with (folder / "recipe.yaml").open("a") as recipe:
        recipe.write(f"source: {{s3: 's3://weights-of-tests/{key}', sha256: '{DIGEST}'}}\n")
    return folder


def test_weights_are_downloaded_from_a_bucket(aws: Emulator, tmp_path: Path) -> None:
    aws.client("s3").create_bucket(Bucket="weights-of-tests")
    aws.client("s3").put_object(Bucket="weights-of-tests", Key="a/model.pt", Body=WEIGHTS)
    source = source_of(_source(tmp_path / "there", "a/model.pt"))
    file = fetch_source(source, tmp_path / "sources", session=aws, report=print)
    assert file is not None
    assert file.read_bytes() == WEIGHTS
    absent = source_of(_source(tmp_path / "absent", "b/model.pt"))
    with pytest.raises(InputError, match=r"s3://weights-of-tests/b/model\.pt: NoSuchKey"):
        fetch_source(absent, tmp_path / "others", session=aws, report=print)
