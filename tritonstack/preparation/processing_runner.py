"""Engines built by SageMaker Processing: one job for each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonstack import aws_names
from tritonstack.engines.trtexec import JOB
from tritonstack.models.source_files import files_below
from tritonstack.preparation.build_order import JobNetwork
from tritonstack.preparation.remote_job import JobState, StagedJob, log_tail, started_by
from tritonstack.preparation.remote_runner import RemoteRunner, service_response, timeout_seconds

JOB_FOLDER = "/opt/ml/processing/input/job"

OUTPUT_FOLDER = "/opt/ml/processing/output"
"""Paths in the container begin with /opt/ml/processing/ (developer guide: "How Amazon SageMaker Processing Configures
Input and Output For Your Processing Container")."""

AROUND_SECONDS = 1200
"""Beyond the step's own limit: fetching the job and storing its output."""

LEAST_VOLUME_GB = 30


@dataclass(frozen=True, kw_only=True)
class ProcessingRunner(RemoteRunner):
    """Builds engines in jobs of SageMaker Processing, on the instance family that serves them."""

    role_arn: str  # the role of the jobs
    key_arn: str  # the key of the bucket
    network: JobNetwork | None  # the subnets that the isolated jobs join, or None
    tags: Mapping[str, str]  # key → value, of the jobs

    service = "Processing"
    client = "sagemaker"
    output = "../../output"  # from JOB_FOLDER to OUTPUT_FOLDER

    def _start(self, client: Any, staged: StagedJob, job: Path) -> ProcessingJob:
        network: dict[str, Any] = {"EnableNetworkIsolation": True}  # the step needs no network
        if self.network is not None:
            network["VpcConfig"] = {
                "Subnets": list(self.network.subnet_ids),
                "SecurityGroupIds": list(self.network.security_group_ids),
            }
        bucket = f"s3://{self.bucket.name}"
        given = {
            "S3Uri": f"{bucket}/{staged.job}",
            "LocalPath": JOB_FOLDER,
            "S3DataType": "S3Prefix",
            "S3InputMode": "File",
        }
        left = {
            "S3Uri": f"{bucket}/{staged.output.rstrip('/')}",
            "LocalPath": OUTPUT_FOLDER,
            "S3UploadMode": "EndOfJob",
        }
        return ProcessingJob(
            client,
            region=self.builder.region,
            ProcessingJobName=staged.run,
            RoleArn=self.role_arn,
            AppSpecification={
                "ImageUri": self.builder.image,
                "ContainerEntrypoint": ["python3", f"{JOB_FOLDER}/engine_step.py"],
                "ContainerArguments": [f"{JOB_FOLDER}/{JOB}"],
            },
            Environment=started_by(),
            ProcessingInputs=[{"InputName": "job", "S3Input": given}],
            ProcessingOutputConfig={"KmsKeyId": self.key_arn, "Outputs": [{"OutputName": "output", "S3Output": left}]},
            ProcessingResources={"ClusterConfig": self._cluster(job)},
            StoppingCondition={"MaxRuntimeInSeconds": math.ceil(timeout_seconds(job)) + AROUND_SECONDS},
            NetworkConfig=network,
            Tags=[{"Key": key, "Value": value} for key, value in sorted(self.tags.items())],
        )

    def _cluster(self, job: Path) -> dict[str, Any]:
        """One instance. Every type of the catalogue has local NVMe, is encrypted by its hardware and refuses a key (API
        reference: ProcessingClusterConfig, ``VolumeKmsKeyId``)."""
        gigabytes = sum(path.stat().st_size for _, path in files_below(job)) / 1e9
        return {
            "InstanceCount": 1,
            "InstanceType": self.builder.machine.name,
            "VolumeSizeInGB": max(LEAST_VOLUME_GB, math.ceil(4 * gigabytes)),
        }


class ProcessingJob:
    """A job of SageMaker Processing. Methods raise :class:`EngineFailedError` where SageMaker refuses."""

    def __init__(self, client: Any, *, region: str, **request: Any) -> None:
        """Starts it: ``request`` is CreateProcessingJob's."""
        instance = request["ProcessingResources"]["ClusterConfig"]["InstanceType"]
        service_response(client.create_processing_job, f"SageMaker starts no Processing job on {instance}", **request)
        self._client, self.name = client, str(request["ProcessingJobName"])
        console = f"https://{region}.console.aws.amazon.com/sagemaker/home"
        self.link = f"{console}?region={region}#/processing-jobs/{self.name}"

    def look(self) -> JobState:
        """Its state now."""
        refused = f"SageMaker does not describe {self.name}"
        job = service_response(
            self._client.describe_processing_job, refused, link=self.link, ProcessingJobName=self.name
        )
        status = str(job["ProcessingJobStatus"])
        ended = status in ("Completed", "Failed", "Stopped")
        return JobState(ended=ended, succeeded=status == "Completed", at=status, described=job)

    def stop(self) -> None:
        """Stop it."""
        service_response(self._client.stop_processing_job, self.name, ProcessingJobName=self.name)

    def log_tail(self, logs: Any, _state: JobState) -> Sequence[str]:
        """The last lines of its log."""
        return log_tail(logs, group=aws_names.PROCESSING_JOBS, prefix=f"{self.name}/")

    def reason(self, state: JobState) -> str:
        """The container's exit message, else SageMaker's failure reason."""
        reasons = [str(state.described.get(field, "")).strip() for field in ("ExitMessage", "FailureReason")]
        if state.at == "Stopped":
            seconds = state.described.get("StoppingCondition", {}).get("MaxRuntimeInSeconds")
            reasons.insert(0, f"stopped by hand, or after its limit of {seconds} s")
        return f"Processing job {self.name} ended as {state.at}" + "".join(f": {text}" for text in reasons if text)
