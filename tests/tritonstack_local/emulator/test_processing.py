"""Processing jobs: what they are given, what runs, what comes out."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from tests.engines.stand_ins import Step
from tests.tritonstack_local.emulator.processing_jobs import (
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
)
from tests.tritonstack_local.emulator.running import IMAGE, Emulator, wait_until
from tritonstack.engines import engine_step


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
    assert "there is NO GPU" in log
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


def test_continuous_output_is_there_while_the_job_runs_and_after_it_failed(aws: Emulator, bucket: str) -> None:
    step = """
        import pathlib, sys, time
        output = pathlib.Path(__file__).parents[2] / "output"
        (output / "first").write_text("1")
        while not (output / "second").exists():
            time.sleep(0.05)
            if pathlib.Path(sys.argv[0]).with_name("go").exists():
                (output / "second").write_text("2")
        sys.exit(1)
    """
    outputs = {"Outputs": [job_output(f"s3://{bucket}/output/", "Continuous")]}
    start_job(aws, bucket, step, ProcessingOutputConfig=outputs)
    wait_until(lambda: keys_of(aws, bucket, "output/"), lambda keys: keys == ["output/first"])
    assert job_status(aws, bucket)["ProcessingJobStatus"] == "InProgress"
    entrypoint_of(aws, bucket, "go")
    assert ended_job(aws, bucket)["ProcessingJobStatus"] == "Failed"
    assert keys_of(aws, bucket, "output/") == ["output/first", "output/second"]


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


def test_message_that_is_not_utf_8_fails_the_job(aws: Emulator, bucket: str) -> None:
    start_job(
        aws, bucket, "import pathlib; (pathlib.Path(__file__).parents[3] / 'output/message').write_bytes(b'\\xff')"
    )
    assert "UTF-8" in ended_job(aws, bucket)["FailureReason"]


def test_input_of_one_object_keeps_its_name(aws: Emulator, bucket: str) -> None:
    start_job(aws, bucket, "print('alone')", ProcessingInputs=[job_input(f"s3://{bucket}/job/step.py")])
    assert ended_job(aws, bucket)["ProcessingJobStatus"] == "Completed"


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


@pytest.mark.parametrize(("instance_type", "built"), [("ml.g5.xlarge", True), ("ml.g4dn.xlarge", False)])
def test_engine_step_of_an_a10g_builds_there_and_reports_elsewhere_why_not(
    aws: Emulator, bucket: str, tmp_path: Path, instance_type: str, built: bool
) -> None:
    Step.make(tmp_path, output="../../output")
    for path in (*tmp_path.glob("*.*"), Path(str(engine_step.__file__))):
        aws.client("s3").upload_file(str(path), bucket, f"job/{path.name}")
    request = job_request(
        bucket,
        AppSpecification={
            "ImageUri": IMAGE,
            "ContainerEntrypoint": ["python3", f"{INPUT}/engine_step.py"],
            "ContainerArguments": [f"{INPUT}/job.json"],
        },
        NetworkConfig={"EnableNetworkIsolation": True},
    )
    request["ProcessingResources"]["ClusterConfig"]["InstanceType"] = instance_type
    aws.client("sagemaker").create_processing_job(**request)
    job = ended_job(aws, bucket)
    if built:
        assert job["ProcessingJobStatus"] == "Completed", job_log(aws, bucket)
        assert {"output/model.plan", "output/result.json"} <= set(keys_of(aws, bucket, "output/"))
    else:
        assert job["ProcessingJobStatus"] == "Failed"
        assert "exit code: 3" in job["FailureReason"]
        assert "FAILED in phase machine" in job_log(aws, bucket)
        need_namespaces(aws, bucket)
        assert job["ExitMessage"].startswith("FAILED in phase machine: ")
        assert keys_of(aws, bucket, "output/") == []
