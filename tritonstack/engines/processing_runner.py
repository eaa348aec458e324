"""One engine on an instance of SageMaker Processing: a job in the endpoint's image on the family that serves it."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack import aws_names
from tritonstack.aws_session import Session
from tritonstack.catalogue import load_catalogue
from tritonstack.engines.order import JobNetwork
from tritonstack.engines.plan import Builder
from tritonstack.engines.remote_job import (
    JobState,
    StagedJob,
    await_job,
    log_tail,
    set_output,
    staged_job,
    started_by,
    stream_of,
)
from tritonstack.engines.step_result import EngineFailedError, EngineStoppedError, engine_failure, require_built
from tritonstack.errors import WorkFailedError
from tritonstack.local_aws import poll_seconds
from tritonstack.models.bucket import ArtifactBucket
from tritonstack.models.programs import Report
from tritonstack.models.source import files_below

JOB_FOLDER = "/opt/ml/processing/input/job"
OUTPUT_FOLDER = "/opt/ml/processing/output"
"""Paths in the container begin with /opt/ml/processing/ (developer guide: "How Amazon SageMaker Processing Configures
Input and Output For Your Processing Container")."""
LOG_GROUP = aws_names.PROCESSING_JOBS
AROUND_SECONDS = 1200
"""For what the step's own limit does not cover: the job comes and its output goes."""
LEAST_VOLUME_GB = 30


@dataclass(frozen=True, kw_only=True)
class ProcessingRunner:
    """Builds engines, each in a job of its own.

    Attributes:
        builder: instance type and image.
        session: makes the clients.
        bucket: where jobs are staged.
        role_arn: the role of the jobs.
        key_arn: the key of the bucket, and of volumes that can be encrypted with one.
        network: what the jobs join beside being isolated, or None.
        tags: key → value, of the jobs.
        stop: set where running jobs are to be given up.
    """

    builder: Builder
    session: Session
    bucket: ArtifactBucket
    role_arn: str
    key_arn: str
    network: JobNetwork | None
    tags: Mapping[str, str]
    stop: threading.Event

    def run(self, *, name: str, job: Path, output: Path, report: Report) -> None:
        """Build one engine; see ``EngineRunner``. ``name`` becomes the job's."""
        set_output(job, "../../output")  # from JOB_FOLDER to OUTPUT_FOLDER
        client = self.session.client("sagemaker")
        with staged_job(self.bucket, name, report=report) as staged:
            staged.upload(job, report=report, check=self._check)
            running = _Job.start(client, self._request(staged, job), region=self.builder.region)
            state = await_job(running, stop=self.stop, interval=poll_seconds(client), report=report, what="Processing")
            self._collect(running, state, staged, output, report)

    def _check(self) -> None:
        if self.stop.is_set():
            raise EngineStoppedError

    def _request(self, staged: StagedJob, job: Path) -> dict[str, Any]:
        seconds = math.ceil(float(json.loads((job / "job.json").read_text())["timeout_seconds"])) + AROUND_SECONDS
        network: dict[str, Any] = {"EnableNetworkIsolation": True}  # the step needs none, and gets none
        if self.network is not None:
            network["VpcConfig"] = {
                "Subnets": list(self.network.subnet_ids),
                "SecurityGroupIds": list(self.network.security_group_ids),
            }
        bucket = f"s3://{self.bucket.name}"
        return {
            "ProcessingJobName": staged.run,
            "RoleArn": self.role_arn,
            "AppSpecification": {
                "ImageUri": self.builder.image,
                "ContainerEntrypoint": ["python3", f"{JOB_FOLDER}/engine_step.py"],
                "ContainerArguments": [f"{JOB_FOLDER}/job.json"],
            },
            "Environment": started_by(),
            "ProcessingInputs": [
                {
                    "InputName": "job",
                    "S3Input": {
                        "S3Uri": f"{bucket}/{staged.job}",
                        "LocalPath": JOB_FOLDER,
                        "S3DataType": "S3Prefix",
                        "S3InputMode": "File",
                    },
                }
            ],
            "ProcessingOutputConfig": {
                "KmsKeyId": self.key_arn,
                "Outputs": [
                    {
                        "OutputName": "output",
                        "S3Output": {
                            "S3Uri": f"{bucket}/{staged.output.rstrip('/')}",
                            "LocalPath": OUTPUT_FOLDER,
                            "S3UploadMode": "EndOfJob",
                        },
                    }
                ],
            },
            "ProcessingResources": {"ClusterConfig": self._cluster(job)},
            "StoppingCondition": {"MaxRuntimeInSeconds": seconds},
            "NetworkConfig": network,
            "Tags": [{"Key": key, "Value": value} for key, value in sorted(self.tags.items())],
        }

    def _cluster(self, job: Path) -> dict[str, Any]:
        """One instance. A type with local NVMe is encrypted by its hardware and refuses a key (API reference:
        ProcessingClusterConfig, ``VolumeKmsKeyId``)."""
        gigabytes = sum(path.stat().st_size for _, path in files_below(job)) / 1e9
        instance = load_catalogue().instances[self.builder.machine.name]
        return {
            "InstanceCount": 1,
            "InstanceType": self.builder.machine.name,
            "VolumeSizeInGB": max(LEAST_VOLUME_GB, math.ceil(4 * gigabytes)),
            **({} if instance.local_nvme_gb else {"VolumeKmsKeyId": self.key_arn}),
        }

    def _collect(self, job: _Job, state: JobState, staged: StagedJob, output: Path, report: Report) -> None:
        """Fetch what the step left, and raise unless it is a plan."""
        if state.succeeded:
            staged.download(output, report=report)
            require_built(output, link=job.link)
            return
        try:
            staged.download(output, report=report)
        except WorkFailedError as error:
            report(str(error))
        tail = job.log_tail(self.session.client("logs"))
        told = str(state.described.get("ExitMessage", ""))
        raise engine_failure(output, otherwise=_reason(job, state), told=told, log_tail=tail, link=job.link)


class _Job:
    """A job that runs, or has run."""

    def __init__(self, client: Any, name: str, *, region: str) -> None:
        self._client, self.name = client, name
        console = f"https://{region}.console.aws.amazon.com/sagemaker/home"
        self.link = f"{console}?region={region}#/processing-jobs/{name}"

    @classmethod
    def start(cls, client: Any, request: dict[str, Any], *, region: str) -> _Job:
        try:
            client.create_processing_job(**request)
        except (BotoCoreError, ClientError) as error:
            instance = request["ProcessingResources"]["ClusterConfig"]["InstanceType"]
            raise EngineFailedError(reason=f"SageMaker starts no Processing job on {instance}: {error}") from error
        return cls(client, request["ProcessingJobName"], region=region)

    def look(self) -> JobState:
        try:
            job = self._client.describe_processing_job(ProcessingJobName=self.name)
        except (BotoCoreError, ClientError) as error:
            raise EngineFailedError(
                reason=f"SageMaker does not tell of {self.name}: {error}", link=self.link
            ) from error
        status = str(job["ProcessingJobStatus"])
        ended = status in ("Completed", "Failed", "Stopped")
        return JobState(ended=ended, succeeded=status == "Completed", at=status, described=job)

    def stop(self) -> None:
        try:
            self._client.stop_processing_job(ProcessingJobName=self.name)
        except (BotoCoreError, ClientError) as error:
            raise WorkFailedError(f"{self.name}: {error}") from error

    def log_tail(self, logs: Any) -> Sequence[str]:
        stream = stream_of(logs, group=LOG_GROUP, prefix=f"{self.name}/")
        return log_tail(logs, group=LOG_GROUP, stream=stream) if stream else ()


def _reason(job: _Job, state: JobState) -> str:
    """What the container left to be told, else SageMaker's own reason."""
    told = [str(state.described.get(field, "")).strip() for field in ("ExitMessage", "FailureReason")]
    if state.at == "Stopped":
        seconds = state.described.get("StoppingCondition", {}).get("MaxRuntimeInSeconds")
        told.insert(0, f"somebody stopped it, or its {seconds} s were over")
    return f"Processing job {job.name} ended as {state.at}" + "".join(f": {text}" for text in told if text)
