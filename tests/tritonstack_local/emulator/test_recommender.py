"""Inference Recommender on the local AWS: life cycle, documented limits, responses in the service's own shape.

The figures are constructed, and their ids say so.
"""

from __future__ import annotations

import json
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import ClientError
from botocore.validate import ParamValidator

from tests.tritonstack_local.emulator.running import IMAGE, ROLE_ARN, Emulator, wait_until

PHASES = [{"InitialNumberOfUsers": 2, "SpawnRate": 2, "DurationInSeconds": 1500}]
ADVANCED: dict[str, Any] = {
    "InputConfig": {
        "JobDurationInSeconds": 7200,
        "TrafficPattern": {"TrafficType": "PHASES", "Phases": PHASES},
        "ResourceLimit": {"MaxNumberOfTests": 1, "MaxParallelOfTests": 1},
        "EndpointConfigurations": [{"InstanceType": "ml.g4dn.xlarge"}],
    },
    "StoppingConditions": {"MaxInvocations": 30000, "FlatInvocations": "Stop"},
    "JobType": "Advanced",
}


def package_request(bucket: str) -> dict[str, Any]:
    container = {"Image": IMAGE, "ModelDataUrl": f"s3://{bucket}/model.tar.gz"}
    return {
        "InferenceSpecification": {
            "Containers": [container],
            "SupportedContentTypes": ["application/json"],
            "SupportedResponseMIMETypes": ["application/json"],
        },
        "Domain": "MACHINE_LEARNING",
        "Task": "OTHER",
        "SamplePayloadUrl": f"s3://{bucket}/payload.tar.gz",
    }


@pytest.fixture
def package(aws: Emulator, bucket: str, name: str) -> str:
    """A model package whose archive and payload are there."""
    for key in ("model.tar.gz", "payload.tar.gz"):
        aws.client("s3").put_object(Bucket=bucket, Key=key, Body=b"bytes")
    sagemaker = aws.client("sagemaker")
    sagemaker.create_model_package_group(ModelPackageGroupName=name)
    made = sagemaker.create_model_package(ModelPackageGroupName=name, **package_request(bucket))
    return str(made["ModelPackageArn"])


def start(aws: Emulator, name: str, package: str, **more: Any) -> None:
    request = json.loads(json.dumps(ADVANCED))
    request["InputConfig"]["ModelPackageVersionArn"] = package
    request["InputConfig"] |= more
    aws.client("sagemaker").create_inference_recommendations_job(JobName=name, RoleArn=ROLE_ARN, **request)


def described(aws: Emulator, name: str) -> dict[str, Any]:
    found = aws.client("sagemaker").describe_inference_recommendations_job(JobName=name)
    return {key: value for key, value in found.items() if key != "ResponseMetadata"}


def status(aws: Emulator, name: str, wanted: str) -> dict[str, Any]:
    found: dict[str, Any] = wait_until(lambda: described(aws, name), lambda one: one["Status"] == wanted)
    return found


def check_shape(operation: str, response: dict[str, Any]) -> None:
    """Assert that the response has the members, types and required members of botocore's output shape."""
    shape = botocore.session.get_session().get_service_model("sagemaker").operation_model(operation).output_shape
    assert shape is not None
    report = ParamValidator().validate(response, shape)
    assert not report.has_errors(), report.generate_report()


def test_a_job_is_pending_then_in_progress_then_completed_in_the_service_s_shape(
    aws: Emulator, name: str, package: str
) -> None:
    start(aws, name, package)
    check_shape("DescribeInferenceRecommendationsJob", described(aws, name))
    assert described(aws, name)["Status"] in ("PENDING", "IN_PROGRESS")
    status(aws, name, "IN_PROGRESS")
    aws.advance(1499)
    assert described(aws, name)["Status"] == "IN_PROGRESS"
    aws.advance(1)
    response = status(aws, name, "COMPLETED")
    check_shape("DescribeInferenceRecommendationsJob", response)
    [found] = response["InferenceRecommendations"]
    assert found["RecommendationId"].startswith("constructed-by-the-local-aws")
    assert found["EndpointConfiguration"]["InstanceType"] == "ml.g4dn.xlarge"
    assert (found["InvocationEndTime"] - found["InvocationStartTime"]).total_seconds() >= 1500


def test_a_stopped_job_is_stopped_and_has_no_recommendation(aws: Emulator, name: str, package: str) -> None:
    start(aws, name, package)
    status(aws, name, "IN_PROGRESS")
    aws.client("sagemaker").stop_inference_recommendations_job(JobName=name)
    response = status(aws, name, "STOPPED")
    check_shape("DescribeInferenceRecommendationsJob", response)
    assert "InferenceRecommendations" not in response
    with pytest.raises(ClientError, match="is in status STOPPED"):
        aws.client("sagemaker").stop_inference_recommendations_job(JobName=name)


def test_a_job_without_its_archive_fails_and_names_it(aws: Emulator, name: str, bucket: str, package: str) -> None:
    aws.client("s3").delete_object(Bucket=bucket, Key="model.tar.gz")
    start(aws, name, package)
    response = status(aws, name, "FAILED")
    check_shape("DescribeInferenceRecommendationsJob", response)
    assert "model.tar.gz" in response["FailureReason"]


def test_a_job_needs_a_package_that_is_there_and_a_name_of_its_own(aws: Emulator, name: str, package: str) -> None:
    with pytest.raises(ClientError, match="does not exist"):
        start(aws, name, f"{package}0")
    start(aws, name, package)
    with pytest.raises(ClientError, match="already existing"):
        start(aws, name, package)


LONG = [{"InitialNumberOfUsers": 2, "SpawnRate": 2, "DurationInSeconds": 3601}]
MANY = [{"InitialNumberOfUsers": 4, "SpawnRate": 2, "DurationInSeconds": 600}]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"TrafficPattern": None}, "TrafficPattern is missing"),
        ({"EndpointConfigurations": None}, "EndpointConfigurations is missing"),
        ({"StoppingConditions": None}, "StoppingConditions is missing"),
        ({"TrafficPattern": {"TrafficType": "PHASES", "Phases": LONG}}, "3601 of a phase is not 120 to 3600"),
        ({"TrafficPattern": {"TrafficType": "PHASES", "Phases": MANY}}, "at most 3 each"),
        ({"JobDurationInSeconds": 7201}, "7201 is above 7200"),
        ({"JobDurationInSeconds": 1000}, "1500 of a phase is not 120 to 1000"),
        ({"ResourceLimit": {"MaxNumberOfTests": 1, "MaxParallelOfTests": 2}}, "MaxParallelOfTests is above"),
        ({"ModelLatencyThresholds": [{"Percentile": "P90", "ValueInMilliseconds": 5}]}, "neither P95 nor P99"),
        ({"JobType": "Default"}, "is of a custom load test"),
    ],
)
def test_what_a_custom_load_test_documents_is_held(
    aws: Emulator, name: str, package: str, changes: dict[str, Any], message: str
) -> None:
    request = json.loads(json.dumps(ADVANCED))
    request["InputConfig"]["ModelPackageVersionArn"] = package
    for member, value in changes.items():
        inside = "StoppingConditions" if member == "ModelLatencyThresholds" else "InputConfig"
        place = request if member in request else request[inside]
        place[member] = value
        if value is None:
            del place[member]
    with pytest.raises(ClientError, match=message):
        aws.client("sagemaker").create_inference_recommendations_job(JobName=name, RoleArn=ROLE_ARN, **request)


@pytest.mark.parametrize("member", ["Domain", "Task", "SamplePayloadUrl"])
def test_a_job_needs_what_its_package_must_name(aws: Emulator, name: str, bucket: str, member: str) -> None:
    sagemaker = aws.client("sagemaker")
    sagemaker.create_model_package_group(ModelPackageGroupName=name)
    request = {key: value for key, value in package_request(bucket).items() if key != member}
    made = sagemaker.create_model_package(ModelPackageGroupName=name, **request)
    with pytest.raises(ClientError, match=f"has no {member}"):
        start(aws, name, made["ModelPackageArn"])


@pytest.mark.parametrize(("member", "value"), [("Task", "BINARY_CLASSIFICATION"), ("Domain", "NLP")])
def test_a_package_with_another_domain_or_task_is_refused(
    aws: Emulator, name: str, bucket: str, member: str, value: str
) -> None:
    aws.client("sagemaker").create_model_package_group(ModelPackageGroupName=name)
    with pytest.raises(ClientError, match="not supported by Inference Recommender: "):
        aws.client("sagemaker").create_model_package(
            ModelPackageGroupName=name, **{**package_request(bucket), member: value}
        )


def test_each_combination_of_container_parameters_is_a_recommendation(aws: Emulator, name: str, package: str) -> None:
    ranges = [{"Name": "A", "Value": ["1", "2"]}, {"Name": "B", "Value": ["x", "y"]}]
    varied = {"EnvironmentParameterRanges": {"CategoricalParameterRanges": ranges}}
    start(
        aws,
        name,
        package,
        EndpointConfigurations=[{"InstanceType": "ml.g4dn.xlarge", **varied}],
        ResourceLimit={"MaxNumberOfTests": 3, "MaxParallelOfTests": 3},
    )
    status(aws, name, "IN_PROGRESS")
    aws.advance(1500)
    response = status(aws, name, "COMPLETED")
    check_shape("DescribeInferenceRecommendationsJob", response)
    found = [
        {each["Key"]: each["Value"] for each in one["ModelConfiguration"]["EnvironmentParameters"]}
        for one in response["InferenceRecommendations"]
    ]
    assert found == [{"A": "1", "B": "x"}, {"A": "1", "B": "y"}, {"A": "2", "B": "x"}], "MaxNumberOfTests is three"
