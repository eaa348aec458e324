"""Processing jobs for tests: requests, and waits for their logs and ends."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.tritonstack_local.emulator.running import IMAGE, ROLE_ARN, Emulator, wait_until

GROUP = "/aws/sagemaker/ProcessingJobs"
INPUT, OUTPUT = "/opt/ml/processing/input/job", "/opt/ml/processing/output"
HANGING = "import time\nprint('hanging', flush=True)\nwhile True:\n    time.sleep(1)\n"
STUBBORN = "import signal\nsignal.signal(signal.SIGTERM, lambda *_: print('no', flush=True))\n" + HANGING


def job_request(bucket: str, **more: Any) -> dict[str, Any]:
    """A job called as its bucket that runs ``job/step.py`` of it."""
    return {
        "ProcessingJobName": bucket,
        "ProcessingInputs": [job_input(f"s3://{bucket}/job/")],
        "ProcessingOutputConfig": {"Outputs": [job_output(f"s3://{bucket}/output")]},
        "ProcessingResources": {
            "ClusterConfig": {"InstanceCount": 1, "InstanceType": "ml.g4dn.xlarge", "VolumeSizeInGB": 30}
        },
        "AppSpecification": {"ImageUri": IMAGE, "ContainerEntrypoint": ["python3", f"{INPUT}/step.py"]},
        "RoleArn": ROLE_ARN,
        **more,
    }


def job_input(uri: str, **more: Any) -> dict[str, Any]:
    given = {"S3Uri": uri, "LocalPath": INPUT, "S3DataType": "S3Prefix", "S3InputMode": "File", **more}
    return {"InputName": "job", "S3Input": given}


def job_output(uri: str, mode: str = "EndOfJob") -> dict[str, Any]:
    return {"OutputName": "output", "S3Output": {"S3Uri": uri, "LocalPath": OUTPUT, "S3UploadMode": mode}}


def start_job(aws: Emulator, bucket: str, step: str, **more: Any) -> str:
    """Put a step into the bucket and run it; the job's ARN."""
    aws.client("s3").put_object(Bucket=bucket, Key="job/step.py", Body=textwrap.dedent(step).encode())
    return str(aws.client("sagemaker").create_processing_job(**job_request(bucket, **more))["ProcessingJobArn"])


def job_status(aws: Emulator, job: str) -> dict[str, Any]:
    described: dict[str, Any] = aws.client("sagemaker").describe_processing_job(ProcessingJobName=job)
    return described


def ended_job(aws: Emulator, job: str) -> dict[str, Any]:
    ended: dict[str, Any] = wait_until(
        lambda: job_status(aws, job), lambda seen: seen["ProcessingJobStatus"] not in ("InProgress", "Stopping")
    )
    return ended


def job_log(aws: Emulator, job: str) -> str:
    logs = aws.client("logs")
    streams = logs.describe_log_streams(logGroupName=GROUP, logStreamNamePrefix=f"{job}/algo-1-")["logStreams"]
    events = logs.get_log_events(logGroupName=GROUP, logStreamName=streams[0]["logStreamName"], startFromHead=True)
    return "\n".join(event["message"] for event in events["events"])


def wait_for_log(aws: Emulator, job: str, text: str) -> None:
    """Wait until the log has a text."""
    wait_until(
        lambda: job_log(aws, job) if job_status(aws, job).get("ProcessingStartTime") else "", lambda log: text in log
    )


def keys_of(aws: Emulator, bucket: str, prefix: str = "") -> list[str]:
    return [one["Key"] for one in aws.client("s3").list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", [])]


def entrypoint_of(aws: Emulator, bucket: str, mark: str | None = None) -> psutil.Process:
    """The entrypoint's process; ``mark`` creates a file in its script's folder."""
    root = psutil.Process(aws.process.pid)
    for process in root.children(recursive=True):
        arguments = process.cmdline()
        if arguments[1:] and arguments[1].endswith("step.py"):
            if mark is not None:
                Path(arguments[1]).with_name(mark).touch()
            return process
    raise AssertionError(f"no process of {bucket}")


def need_namespaces(aws: Emulator, bucket: str) -> None:
    if "has this machine's network (open port" in job_log(aws, bucket):
        pytest.skip("user namespaces are not permitted here")
