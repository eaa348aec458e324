"""How processing jobs end: stopped, too slow, with the emulator; and what they tell of it."""

from __future__ import annotations

import io
import json
import os
import textwrap
import zipfile
from pathlib import Path
from typing import Any

import psutil
import pytest
from botocore.exceptions import ClientError

from tests.tritonstack_local.emulator.processing_jobs import (
    HANGING,
    STUBBORN,
    ended_job,
    entrypoint_of,
    job_log,
    job_says,
    job_status,
    keys_of,
    need_namespaces,
    start_job,
)
from tests.tritonstack_local.emulator.running import ROLE_ARN, Emulator, make_role, wait_until


def test_stopped_job_is_asked_to_end_and_its_output_is_not_uploaded(aws: Emulator, bucket: str) -> None:
    start_job(aws, bucket, HANGING)
    job_says(aws, bucket, "hanging")
    process = entrypoint_of(aws, bucket)
    aws.client("sagemaker").stop_processing_job(ProcessingJobName=bucket)
    job = ended_job(aws, bucket)
    assert (job["ProcessingJobStatus"], job.get("FailureReason")) == ("Stopped", None)
    assert not process.is_running()
    assert keys_of(aws, bucket, "output/") == []
    with pytest.raises(ClientError, match="because the processing job is in status Stopped"):
        aws.client("sagemaker").stop_processing_job(ProcessingJobName=bucket)


def test_job_that_does_not_heed_the_signal_is_stopping_until_it_is_killed(aws: Emulator, bucket: str) -> None:
    start_job(aws, bucket, STUBBORN)
    job_says(aws, bucket, "hanging")
    aws.client("sagemaker").stop_processing_job(ProcessingJobName=bucket)
    job_says(aws, bucket, "\nno")
    assert job_status(aws, bucket)["ProcessingJobStatus"] == "Stopping"
    aws.advance(120)
    assert ended_job(aws, bucket)["ProcessingJobStatus"] == "Stopped"


def test_first_process_of_namespaces_has_no_default_for_the_signal_as_in_a_container(
    aws: Emulator, bucket: str
) -> None:
    start_job(aws, bucket, HANGING, NetworkConfig={"EnableNetworkIsolation": True})
    job_says(aws, bucket, "hanging")
    need_namespaces(aws, bucket)
    aws.client("sagemaker").stop_processing_job(ProcessingJobName=bucket)
    job_says(aws, bucket, "SIGTERM to the entrypoint")
    assert job_status(aws, bucket)["ProcessingJobStatus"] == "Stopping"
    aws.advance(120)
    assert ended_job(aws, bucket)["ProcessingJobStatus"] == "Stopped"
    assert "exit status 137" in job_log(aws, bucket)


def test_job_over_its_longest_runtime_is_stopped_by_the_clock(aws: Emulator, bucket: str) -> None:
    start_job(aws, bucket, HANGING, StoppingCondition={"MaxRuntimeInSeconds": 7200})
    job_says(aws, bucket, "hanging")
    aws.advance(7000)
    assert job_status(aws, bucket)["ProcessingJobStatus"] == "InProgress"
    aws.advance(200)
    assert ended_job(aws, bucket)["ProcessingJobStatus"] == "Stopped"
    assert "its 7200 s are over" in job_log(aws, bucket)


def test_what_the_entrypoint_leaves_running_ends_with_it(aws: Emulator, bucket: str) -> None:
    step = """
        import subprocess, sys
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        print("child", child.pid)
    """
    start_job(aws, bucket, step)
    assert ended_job(aws, bucket)["ProcessingJobStatus"] == "Completed"
    child = next(int(line.split()[1]) for line in job_log(aws, bucket).splitlines() if line.startswith("child "))
    wait_until(lambda: _runs(child), lambda runs: not runs)


def _runs(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


FUNCTION = """
    import json
    import boto3

    def handler(event, context):
        detail = event["detail"]
        name = f"/events/{detail['ProcessingJobName']}/{detail['ProcessingJobStatus']}"
        boto3.client("ssm").put_parameter(Name=name, Value=json.dumps(event), Type="String", Overwrite=True)
"""


def test_changes_of_status_reach_a_function_through_a_rule(aws: Emulator, bucket: str) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("index.py", textwrap.dedent(FUNCTION))
    function = aws.client("lambda").create_function(
        FunctionName=bucket,
        Runtime="python3.12",
        Handler="index.handler",
        Role=ROLE_ARN,
        Code={"ZipFile": archive.getvalue()},
        Timeout=30,
    )["FunctionArn"]
    pattern = {
        "source": ["aws.sagemaker"],
        "detail-type": ["SageMaker Processing Job State Change"],
        "detail": {"ProcessingJobName": [{"prefix": bucket}]},
    }
    events = aws.client("events")
    events.put_rule(Name=bucket, EventPattern=json.dumps(pattern))
    events.put_targets(Rule=bucket, Targets=[{"Id": "1", "Arn": function}])
    arn = start_job(aws, bucket, HANGING)
    job_says(aws, bucket, "hanging")
    aws.client("sagemaker").stop_processing_job(ProcessingJobName=bucket)

    def told() -> dict[str, Any]:
        found = aws.client("ssm").get_parameters_by_path(Path=f"/events/{bucket}")["Parameters"]
        return {one["Name"].rpartition("/")[2]: json.loads(one["Value"]) for one in found}

    seen = wait_until(told, lambda seen: len(seen) == 3)
    assert seen.keys() == {"InProgress", "Stopping", "Stopped"}
    assert seen["Stopped"]["resources"] == [arn]
    assert seen["Stopped"]["detail"]["ProcessingEndTime"] > 1_600_000_000_000


def test_jobs_end_with_the_emulator_and_leave_nothing(tmp_path: Path, name: str) -> None:
    emulator = Emulator(tmp_path, TRITONSTACK_FLEETS="none").wait_ready()
    make_role(emulator)
    emulator.client("s3").create_bucket(Bucket=name)
    start_job(emulator, name, STUBBORN)
    job_says(emulator, name, "hanging")
    process = entrypoint_of(emulator, name)
    assert os.getpgid(process.pid) == process.pid
    assert emulator.stop() == 0
    assert not process.is_running()
    assert not any(emulator.temporary.iterdir())
