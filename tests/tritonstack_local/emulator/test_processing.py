"""Processing jobs of the local AWS: what runs, how jobs end, what is refused."""

from __future__ import annotations

import errno
import json
from typing import Any

import psutil
import pytest
from botocore.exceptions import ClientError

from tests.tritonstack_local.emulator.processing_jobs import (
    HANGING,
    INPUT,
    OUTPUT,
    ended_job,
    entrypoint_of,
    job_input,
    job_log,
    job_output,
    job_request,
    job_status,
    keys_of,
    need_namespaces,
    start_job,
    wait_for_log,
)
from tests.tritonstack_local.emulator.running import IMAGE, Emulator, make_function, wait_until


def test_job_downloads_its_inputs_runs_and_uploads_its_outputs(aws: Emulator, bucket: str) -> None:
    aws.client("s3").put_object(Bucket=bucket, Key="job/deep/data.txt", Body=b"data")
    step = """
        import os, pathlib, subprocess, sys
        here = pathlib.Path(__file__).parent
        output = pathlib.Path(os.environ["WHERE"])
        (output / "below").mkdir()
        (output / "below/copy.txt").write_text((here / "deep/data.txt").read_text() + sys.argv[1])
        smi = [os.environ["TRITONSTACK_NVIDIA_SMI"], "--query-gpu=name", "--format=csv,noheader"]
        (output / "gpu.txt").write_text(subprocess.run(smi, capture_output=True, text=True, check=True).stdout)
        (output / "config.txt").write_text((output.parent.parent / "config/resourceconfig.json").read_text())
        print("worked")
    """
    application = {
        "ImageUri": IMAGE,
        "ContainerEntrypoint": ["python3", f"{INPUT}/step.py"],
        "ContainerArguments": ["--from=/opt/ml/processing"],
    }
    arn = start_job(aws, bucket, step, AppSpecification=application, Environment={"WHERE": OUTPUT})
    job = ended_job(aws, bucket)
    assert (job["ProcessingJobStatus"], job.get("FailureReason")) == ("Completed", None)
    assert job["ProcessingJobArn"] == arn
    assert job["CreationTime"] <= job["ProcessingStartTime"] <= job["ProcessingEndTime"]
    assert job["StoppingCondition"]["MaxRuntimeInSeconds"] == 86400
    s3 = aws.client("s3")
    assert keys_of(aws, bucket, "output/") == ["output/below/copy.txt", "output/config.txt", "output/gpu.txt"]
    read = {
        key: s3.get_object(Bucket=bucket, Key=key)["Body"].read().decode() for key in keys_of(aws, bucket, "output/")
    }
    assert read["output/below/copy.txt"].startswith("data--from=/")
    assert not read["output/below/copy.txt"].startswith("data--from=/opt")
    assert read["output/gpu.txt"] == "NVIDIA T4 (nvidia-smi-stand-in)\n"
    assert json.loads(read["output/config.txt"]) == {"current_host": "algo-1", "hosts": ["algo-1"]}
    log = job_log(aws, bucket)
    assert "worked" in log
    assert "No GPU: " in log
    assert "stands for /opt/ml" in log


def test_failed_job_reports_why_and_uploads_nothing_at_its_end(aws: Emulator, bucket: str) -> None:
    step = """
        import pathlib, sys
        root = pathlib.Path(__file__).parents[3]
        (root / "output/message").write_text("no kernel image for this device" + "é" * 1000)
        pathlib.Path(root / "processing/output/half.plan").write_text("x")
        print("trtexec failed", file=sys.stderr)
        sys.exit(4)
    """
    start_job(aws, bucket, step)
    job = ended_job(aws, bucket)
    assert job["ProcessingJobStatus"] == "Failed"
    assert job["FailureReason"] == "AlgorithmError: See job logs for more information, exit code: 4"
    assert job["ExitMessage"].startswith("no kernel image for this device")
    assert 1023 <= len(job["ExitMessage"].encode()) <= 1024
    assert keys_of(aws, bucket, "output/") == []
    assert "trtexec failed" in job_log(aws, bucket)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"ProcessingInputs": [job_input("s3://no-such-bucket/job/")]}, "Data download failed"),
        ({"ProcessingInputs": [job_input("s3://{bucket}/nothing/")]}, "No S3 objects found under S3 URL"),
        ({"ProcessingOutputConfig": {"Outputs": [job_output("s3://no-such-bucket/x")]}}, "Data upload failed"),
        (
            {"AppSpecification": {"ImageUri": IMAGE, "ContainerEntrypoint": ["/no/such/program"]}},
            "the entrypoint could not be started",
        ),
        (
            {"AppSpecification": {"ImageUri": IMAGE.replace("24.09", "19.09"), "ContainerEntrypoint": ["true"]}},
            "no Triton release 19.09",
        ),
    ],
)
def test_job_whose_surroundings_are_wrong_fails_with_a_client_error(
    aws: Emulator, bucket: str, more: dict[str, Any], reason: str
) -> None:
    step = "import pathlib; (pathlib.Path(__file__).parents[2] / 'output/x').write_text('x')"
    start_job(aws, bucket, step, **json.loads(json.dumps(more).replace("{bucket}", bucket)))
    job = ended_job(aws, bucket)
    assert job["ProcessingJobStatus"] == "Failed"
    assert job["FailureReason"].startswith("ClientError: ")
    assert reason in job["FailureReason"]


def test_isolated_job_has_an_opt_ml_of_its_own_and_no_network(aws: Emulator, bucket: str) -> None:
    network = {
        "EnableNetworkIsolation": True,
        "VpcConfig": {"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-1", "subnet-2"]},
    }
    step = f"""
        import os, pathlib, socket, subprocess
        print("told", os.environ.get("AWS_ENDPOINT_URL"))
        smi = [os.environ["TRITONSTACK_NVIDIA_SMI"], "--query-gpu=name", "--format=csv,noheader"]
        print(subprocess.run(smi, capture_output=True, text=True, check=True).stdout)
        pathlib.Path("{OUTPUT}/plan").write_text("x")
        pathlib.Path("/opt/ml/output/message").write_text("told through the image's own path")
        with socket.socket() as one:
            print("network", one.connect_ex(("127.0.0.1", {aws.port})))
    """
    start_job(aws, bucket, step, NetworkConfig=network)
    job = ended_job(aws, bucket)
    need_namespaces(aws, bucket)
    assert (job["ProcessingJobStatus"], job["NetworkConfig"]) == ("Completed", network)
    assert job["ExitMessage"] == "told through the image's own path"
    assert keys_of(aws, bucket, "output/") == ["output/plan"]
    log = job_log(aws, bucket)
    assert "told None" in log
    assert "NVIDIA T4" in log
    assert f"network {errno.ECONNREFUSED}" in log


def test_stopped_job_gets_sigterm_and_its_output_is_not_uploaded(aws: Emulator, bucket: str) -> None:
    start_job(aws, bucket, HANGING)
    wait_for_log(aws, bucket, "hanging")
    process = entrypoint_of(aws, bucket)
    aws.client("sagemaker").stop_processing_job(ProcessingJobName=bucket)
    job = ended_job(aws, bucket)
    assert (job["ProcessingJobStatus"], job.get("FailureReason")) == ("Stopped", None)
    assert not process.is_running()
    assert keys_of(aws, bucket, "output/") == []
    with pytest.raises(ClientError, match="because the processing job is in status Stopped"):
        aws.client("sagemaker").stop_processing_job(ProcessingJobName=bucket)


def test_job_over_its_longest_runtime_is_stopped_by_the_clock(aws: Emulator, bucket: str) -> None:
    start_job(aws, bucket, HANGING, StoppingCondition={"MaxRuntimeInSeconds": 7200})
    wait_for_log(aws, bucket, "hanging")
    aws.advance(7000)
    assert job_status(aws, bucket)["ProcessingJobStatus"] == "InProgress"
    aws.advance(200)
    assert ended_job(aws, bucket)["ProcessingJobStatus"] == "Stopped"
    assert "its 7200 s are over" in job_log(aws, bucket)


FUNCTION = """
    import json
    import boto3

    def handler(event, context):
        detail = event["detail"]
        name = f"/events/{detail['ProcessingJobName']}/{detail['ProcessingJobStatus']}"
        boto3.client("ssm").put_parameter(Name=name, Value=json.dumps(event), Type="String", Overwrite=True)
"""


def test_changes_of_status_reach_a_function_through_a_rule(aws: Emulator, bucket: str) -> None:
    function = make_function(aws, bucket, FUNCTION)
    pattern = {
        "source": ["aws.sagemaker"],
        "detail-type": ["SageMaker Processing Job State Change"],
        "detail": {"ProcessingJobName": [{"prefix": bucket}]},
    }
    events = aws.client("events")
    events.put_rule(Name=bucket, EventPattern=json.dumps(pattern))
    events.put_targets(Rule=bucket, Targets=[{"Id": "1", "Arn": function}])
    arn = start_job(aws, bucket, HANGING)
    wait_for_log(aws, bucket, "hanging")
    aws.client("sagemaker").stop_processing_job(ProcessingJobName=bucket)

    def event_details() -> dict[str, Any]:
        found = aws.client("ssm").get_parameters_by_path(Path=f"/events/{bucket}")["Parameters"]
        return {one["Name"].rpartition("/")[2]: json.loads(one["Value"]) for one in found}

    seen = wait_until(event_details, lambda seen: len(seen) == 3)
    assert seen.keys() == {"InProgress", "Stopping", "Stopped"}
    assert seen["Stopped"]["resources"] == [arn]
    assert seen["Stopped"]["detail"]["ProcessingEndTime"] > 1_600_000_000_000


def test_jobs_are_listed_with_their_status_and_tags_and_their_names_are_taken_for_ever(
    aws: Emulator, bucket: str, name: str
) -> None:
    step = """
        import pathlib, subprocess, sys
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        print("child", child.pid)
        (pathlib.Path(__file__).parents[3] / "output/message").write_bytes(b"\\xff")
    """
    inputs = [job_input(f"s3://{bucket}/job/step.py")]  # one object keeps its name
    arn = start_job(aws, bucket, step, ProcessingInputs=inputs, Tags=[{"Key": "team", "Value": "platform"}])
    assert "UTF-8" in ended_job(aws, bucket)["FailureReason"]
    [child] = [int(line.split()[1]) for line in job_log(aws, bucket).splitlines() if line.startswith("child ")]
    wait_until(lambda: psutil.pid_exists(child) and psutil.Process(child).status() != "zombie", lambda runs: not runs)
    sagemaker = aws.client("sagemaker")
    listed = sagemaker.list_processing_jobs(NameContains=bucket, StatusEquals="Failed")["ProcessingJobSummaries"]
    assert [(one["ProcessingJobName"], one["ProcessingJobArn"]) for one in listed] == [(bucket, arn)]
    assert sagemaker.list_processing_jobs(NameContains=bucket, StatusEquals="Completed")["ProcessingJobSummaries"] == []
    assert sagemaker.list_tags(ResourceArn=arn)["Tags"] == [{"Key": "team", "Value": "platform"}]
    with pytest.raises(sagemaker.exceptions.ResourceInUse, match="a job with this name already exists"):
        sagemaker.create_processing_job(**job_request(bucket))
    for operation in (sagemaker.describe_processing_job, sagemaker.stop_processing_job):
        with pytest.raises(ClientError, match="Could not find requested job with name: other"):
            operation(ProcessingJobName="other")


def cluster(**more: Any) -> dict[str, Any]:
    """Another machine."""
    return {"ProcessingResources": {"ClusterConfig": {"InstanceCount": 1, "VolumeSizeInGB": 30, **more}}}


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"AppSpecification": {"ImageUri": IMAGE}}, "ContainerEntrypoint must be specified"),
        ({"AppSpecification": {"ImageUri": "nginx", "ContainerEntrypoint": ["x"]}}, "is no image of Amazon ECR"),
        ({"ProcessingInputs": [job_input("s3://b/x", LocalPath="/tmp/x")]}, "must begin with /opt/ml/processing/"),
        ({"ProcessingInputs": [job_input("s3://b/x", LocalPath=INPUT + "/../../../x")]}, "must begin with"),
        ({"ProcessingInputs": [job_input("s3://b/x"), job_input("s3://b/y")]}, "InputName job is used 2 times"),
        ({"RoleArn": "arn:aws:iam::123456789012:role/nobody"}, "Please ensure that the role exists"),
        (cluster(InstanceType="ml.m5.xlarge"), "the GPU of ml.m5.xlarge is not known"),
        (cluster(InstanceType="ml.g5.xlarge", VolumeKmsKeyId="a-key"), "ml.g5.xlarge has local storage"),
    ],
)
def test_what_is_not_run_here_is_refused_by_name(
    aws: Emulator, bucket: str, more: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ClientError) as refused:
        aws.client("sagemaker").create_processing_job(**job_request(bucket, **more))
    assert sentence in str(refused.value)
