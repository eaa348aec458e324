"""The fake of AWS hides neither requests that AWS refuses nor responses that AWS never gives."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from botocore.exceptions import ClientError

from tests.fake_aws import ARTIFACTS, AwsError, FakeAws


def test_a_request_beyond_the_service_model_is_an_error_of_the_code_that_sends_it() -> None:
    with pytest.raises(AssertionError, match="Member must have length less than or equal to 10"):
        FakeAws().client("ssm").get_parameters(Names=[f"/{number}" for number in range(11)])


def test_a_response_beyond_the_service_model_is_an_error_of_the_fake() -> None:
    aws = FakeAws(responses={"sagemaker.DescribeEndpoint": {"Status": "InService"}})
    with pytest.raises(AssertionError, match="DescribeEndpoint never responds so"):
        aws.client("sagemaker").describe_endpoint(EndpointName="e")


def test_an_operation_without_a_response_is_an_error_of_the_test() -> None:
    with pytest.raises(AssertionError, match=r"no response for sagemaker\.ListModels"):
        FakeAws().client("sagemaker").list_models()


def test_a_refused_head_request_has_its_status_alone_as_its_response_has_no_body() -> None:
    aws = FakeAws(denied={"key"})
    for request, code in (("head_object", "403"), ("get_object", "AccessDenied")):
        with pytest.raises(ClientError) as refused:
            getattr(aws.client("s3"), request)(Bucket=ARTIFACTS, Key="key")
        assert refused.value.response["Error"]["Code"] == code


def test_timestamps_and_streams_are_as_botocore_parses_them() -> None:
    response = {"EndpointName": "e", "CreationTime": 0}
    aws = FakeAws(responses={"sagemaker.DescribeEndpoint": response})
    aws.artifacts["key"] = b"content"
    described = aws.client("sagemaker").describe_endpoint(EndpointName="e")
    assert described["CreationTime"] == datetime.fromtimestamp(0, tz=UTC)
    stream = aws.client("s3").get_object(Bucket=ARTIFACTS, Key="key")["Body"]
    assert b"".join(stream.iter_chunks(3)) == b"content"


def test_a_refusal_by_service_is_one_of_all_its_operations() -> None:
    aws = FakeAws(refused={"ssm": AwsError("ThrottlingException", "Rate exceeded")})
    with pytest.raises(ClientError, match="Rate exceeded"):
        aws.client("ssm").get_parameter(Name="/a")
