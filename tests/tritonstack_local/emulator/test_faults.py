"""Faults on request: for the named requests, as often as given."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.local_keys import OWN
from tests.tritonstack_local.emulator.processing_jobs import ended_job, start_job
from tests.tritonstack_local.emulator.running import Emulator, make_role


@pytest.fixture
def bucket(aws: Emulator) -> Iterator[str]:
    """A bucket; faults that were not used are removed afterwards."""
    aws.client("s3").create_bucket(Bucket="faulty")
    yield "faulty"
    send(aws, "DELETE")


def send(aws: Emulator, verb: str, fault: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
    """Send a request to the faults' route; its status and response."""
    connection = http.client.HTTPConnection("127.0.0.1", aws.port, timeout=10)
    try:
        connection.request(verb, "/_tritonstack/faults", json.dumps(fault) if fault else None, OWN)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def fault(*, status: int, times: int = 1) -> dict[str, Any]:
    """A fault of writes below staging/."""
    return {"method": "PUT", "path": "/staging/", "status": status, "times": times}


def s3_of(aws: Emulator, *, attempts: int) -> Any:
    return boto3.client(
        "s3",
        endpoint_url=aws.url,
        region_name="us-east-1",
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
        config=Config(retries={"mode": "standard", "total_max_attempts": attempts}),
    )


def test_a_fault_applies_to_the_named_requests_as_often_as_its_count(aws: Emulator, bucket: str) -> None:
    send(aws, "POST", fault(status=503, times=2))
    s3 = s3_of(aws, attempts=1)
    s3.put_object(Bucket=bucket, Key="other", Body=b"1")
    for _ in range(2):
        with pytest.raises(ClientError, match="SlowDown"):
            s3.put_object(Bucket=bucket, Key="staging/a", Body=b"1")
    s3.put_object(Bucket=bucket, Key="staging/a", Body=b"1")
    assert send(aws, "GET") == (200, {"faults": []})


def test_what_aws_itself_reads_and_writes_for_a_job_outlives_a_short_fault(aws: Emulator, bucket: str) -> None:
    make_role(aws)
    send(aws, "POST", {"method": "GET", "path": "/faulty/job/", "status": 503, "times": 1})
    send(aws, "POST", {"method": "PUT", "path": "/faulty/output/", "status": 500, "times": 1})
    start_job(aws, bucket, "import pathlib; (pathlib.Path(__file__).parents[2] / 'output/made').touch()")
    job = ended_job(aws, bucket)
    assert (job["ProcessingJobStatus"], job.get("FailureReason")) == ("Completed", None)
    assert send(aws, "GET") == (200, {"faults": []})


def test_s3_returns_a_conflict_with_the_code_that_the_fault_names(aws: Emulator, bucket: str) -> None:
    for code, returned in (({}, "ConditionalRequestConflict"), ({"code": "BucketNotEmpty"}, "BucketNotEmpty")):
        send(aws, "POST", {**fault(status=409), **code})
        with pytest.raises(ClientError, match=returned):
            s3_of(aws, attempts=3).put_object(Bucket=bucket, Key="staging/d", Body=b"1", IfNoneMatch="*")
    assert send(aws, "POST", {"operation": "PutParameter", "status": 409, "times": 1})[0] == 400


def refused(operation: str, *, times: int = 1) -> dict[str, Any]:
    """A fault of a JSON service's operation."""
    return {"operation": operation, "status": 403, "times": times}


def test_an_operation_is_refused_in_its_services_own_words_and_no_other_is(aws: Emulator, bucket: str) -> None:
    send(aws, "POST", refused("PutParameter"))
    ssm = aws.client("ssm")
    assert ssm.get_parameters(Names=["/faulty"])["Parameters"] == []  # another operation of the same service
    with pytest.raises(ClientError, match="PutParameter") as error:
        ssm.put_parameter(Name="/faulty", Value="1", Type="String")
    assert error.value.response["Error"]["Code"] == "AccessDeniedException"
    ssm.put_parameter(Name="/faulty", Value="1", Type="String")
    ssm.delete_parameter(Name="/faulty")
    assert send(aws, "GET") == (200, {"faults": []})


def test_cloudformations_own_calls_are_refused_too_and_the_stack_fails_with_the_words(
    aws: Emulator, bucket: str, name: str
) -> None:
    send(aws, "POST", refused("CreateModel"))
    role = "arn:aws:iam::123456789012:role/any"
    resource = {"Type": "AWS::SageMaker::Model", "Properties": {"ExecutionRoleArn": role}}
    assert aws.deploy(name, {"Model": resource}) == "ROLLBACK_COMPLETE"
    assert "a fault that was asked for at /_tritonstack/faults: CreateModel" in aws.failures(name)
