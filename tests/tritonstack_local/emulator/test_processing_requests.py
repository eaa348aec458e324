"""What CreateProcessingJob refuses, and what is told of jobs."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.tritonstack_local.emulator.processing_jobs import INPUT, ended_job, job_input, job_request, start_job
from tests.tritonstack_local.emulator.running import IMAGE, Emulator


def test_name_of_a_job_is_taken_for_ever(aws: Emulator, bucket: str) -> None:
    arn = start_job(aws, bucket, "")
    ended_job(aws, bucket)
    sagemaker = aws.client("sagemaker")
    with pytest.raises(sagemaker.exceptions.ResourceInUse) as refused:
        sagemaker.create_processing_job(**job_request(bucket))
    assert (
        f"Job name must be unique within an AWS account and region, and a job with this name already exists ({arn})"
        in (str(refused.value))
    )


def test_jobs_are_listed_with_their_status_and_tags(aws: Emulator, bucket: str) -> None:
    arn = start_job(aws, bucket, "raise SystemExit(1)", Tags=[{"Key": "team", "Value": "platform"}])
    ended_job(aws, bucket)
    sagemaker = aws.client("sagemaker")
    listed = sagemaker.list_processing_jobs(NameContains=bucket, StatusEquals="Failed")["ProcessingJobSummaries"]
    assert [(one["ProcessingJobName"], one["ProcessingJobArn"]) for one in listed] == [(bucket, arn)]
    assert listed[0]["FailureReason"].startswith("AlgorithmError")
    assert sagemaker.list_processing_jobs(NameContains=bucket, StatusEquals="Completed")["ProcessingJobSummaries"] == []
    assert sagemaker.list_tags(ResourceArn=arn)["Tags"] == [{"Key": "team", "Value": "platform"}]


def test_unknown_job_is_not_found(aws: Emulator, name: str) -> None:
    for operation in ("describe_processing_job", "stop_processing_job"):
        with pytest.raises(ClientError, match=f"Could not find requested job with name: {name}"):
            getattr(aws.client("sagemaker"), operation)(ProcessingJobName=name)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"ExperimentConfig": {"TrialName": "x"}}, "ExperimentConfig is not in the local AWS"),
        ({"AppSpecification": {"ImageUri": IMAGE}}, "ContainerEntrypoint must be specified"),
        ({"AppSpecification": {"ImageUri": "nginx", "ContainerEntrypoint": ["x"]}}, "is no image of Amazon ECR"),
        ({"ProcessingInputs": [job_input("s3://b/x", S3InputMode="Pipe")]}, "S3InputMode Pipe is not in the local AWS"),
        ({"ProcessingInputs": [job_input("s3://b/x", S3DataType="ManifestFile")]}, "S3DataType ManifestFile"),
        ({"ProcessingInputs": [job_input("s3://b/x", LocalPath="/tmp/x")]}, "must begin with /opt/ml/processing/"),
        ({"ProcessingInputs": [job_input("s3://b/x", LocalPath=INPUT + "/../../../x")]}, "must begin with"),
        ({"ProcessingInputs": [job_input("s3://b/x"), job_input("s3://b/y")]}, "InputName job is used 2 times"),
        ({"ProcessingInputs": [{"InputName": "x", "AppManaged": True}]}, "AppManaged"),
        ({"ProcessingOutputConfig": {"Outputs": [{"OutputName": "x", "AppManaged": True}]}}, "AppManaged"),
        ({"RoleArn": "arn:aws:iam::123456789012:role/nobody"}, "Please ensure that the role exists"),
    ],
)
def test_what_is_not_run_here_is_refused_by_name(
    aws: Emulator, bucket: str, more: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ClientError) as refused:
        aws.client("sagemaker").create_processing_job(**job_request(bucket, **more))
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("cluster", "sentence"),
    [
        ({"InstanceType": "ml.g4dn.xlarg"}, "Member must satisfy enum value set"),
        ({"InstanceType": "ml.m5.xlarge"}, "the GPU of ml.m5.xlarge is not known"),
        ({"InstanceType": "ml.g4dn.xlarge", "InstanceCount": 2}, "more than one instance is not in the local AWS"),
        ({"InstanceType": "ml.g5.xlarge", "VolumeKmsKeyId": "a-key"}, "ml.g5.xlarge has local storage"),
        ({"InstancePreferences": [{"InstanceType": "ml.g4dn.xlarge"}]}, "ClusterConfig.InstancePreferences is not in"),
    ],
)
def test_machines_that_are_not_there_are_refused(
    aws: Emulator, bucket: str, cluster: dict[str, Any], sentence: str
) -> None:
    resources = {"ClusterConfig": {"InstanceCount": 1, "VolumeSizeInGB": 30, **cluster}}
    with pytest.raises(ClientError) as refused:
        aws.client("sagemaker").create_processing_job(**job_request(bucket, ProcessingResources=resources))
    assert sentence in str(refused.value)
