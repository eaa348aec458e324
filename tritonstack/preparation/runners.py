"""Where the GPU step runs: a build of CodeBuild, or a job of SageMaker Processing."""

from __future__ import annotations

import json
import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack import aws_names
from tritonstack.archives.bucket import ArtifactBucket
from tritonstack.archives.programs import Report
from tritonstack.aws.session import Session, stack_value
from tritonstack.engines.engine_builds import Builder
from tritonstack.engines.trtexec import JOB, change_job
from tritonstack.errors import WorkFailedError
from tritonstack.local_aws import poll_seconds
from tritonstack.models.source_files import files_below
from tritonstack.naming import artifact_parameter, builds_parameter
from tritonstack.preparation.build_order import JobNetwork, Order
from tritonstack.preparation.gpu_step import (
    EngineFailedError,
    EngineRunner,
    EngineStoppedError,
    engine_failure,
    require_built,
)
from tritonstack.preparation.remote_job import OUTPUT, JobState, StagedJob, await_job, log_tail, staged_job, started_by


def _ask(operation: Callable[..., Any], refused: str, *, link: str = "", **parameters: Any) -> Any:
    """A service's response. Raises :class:`EngineFailedError`, which begins with ``refused``, where it refuses."""
    try:
        return operation(**parameters)
    except (BotoCoreError, ClientError) as error:
        raise EngineFailedError(reason=f"{refused}: {error}", link=link) from error


@dataclass(frozen=True, kw_only=True)
class RemoteRunner(ABC):
    """Builds engines, each as a job of a service."""

    builder: Builder  # machine and image
    session: Session  # makes the clients
    bucket: ArtifactBucket  # where jobs are staged
    stop: threading.Event  # set to give up running jobs

    service: ClassVar[str]
    client: ClassVar[str]
    output: ClassVar[str]  # the step's output folder, from the job's

    def run(self, *, name: str, job: Path, output: Path, report: Report) -> None:
        """Build one engine; see ``EngineRunner``. ``name`` becomes the job's."""
        change_job(job, output=self.output)
        client = self.session.client(self.client)
        with staged_job(self.bucket, name, report=report) as staged:
            staged.upload(job, report=report, check=self._check)
            running = self._start(client, staged, job)
            state = await_job(running, stop=self.stop, interval=poll_seconds(client), report=report, what=self.service)
            if state.succeeded:
                staged.download(output, report=report)
                require_built(output, link=running.link)
                return
            try:
                staged.download(output, report=report)
            except WorkFailedError as error:
                report(str(error))
            raise engine_failure(
                output,
                otherwise=running.reason(state),
                exit_message=str(state.described.get("ExitMessage", "")),
                log_tail=running.log_tail(self.session.client("logs"), state),
                link=running.link,
            )

    @abstractmethod
    def _start(self, client: Any, staged: StagedJob, job: Path) -> CodeBuildJob | ProcessingJob:
        """Start the service's job for a staged build."""

    def _check(self) -> None:
        if self.stop.is_set():
            raise EngineStoppedError


def _timeout_seconds(job: Path) -> float:
    return float(json.loads((job / JOB).read_text())["timeout_seconds"])


# CodeBuild.

AROUND_MINUTES = 20
"""Beyond the step's own limit: pulling the image, fetching the job and storing its output."""


@dataclass(frozen=True, kw_only=True)
class CodeBuildRunner(RemoteRunner):
    """Builds engines in builds of the environment's engine project. ``project``: its name."""

    project: str

    service = "CodeBuild"
    client = "codebuild"
    output = OUTPUT

    def _start(self, client: Any, staged: StagedJob, job: Path) -> CodeBuildJob:
        return CodeBuildJob(
            client,
            projectName=self.project,
            idempotencyToken=staged.run,
            sourceTypeOverride="S3",
            sourceLocationOverride=f"{self.bucket.name}/{staged.job}",
            artifactsOverride={
                "type": "S3",
                "location": self.bucket.name,
                "path": staged.prefix.rstrip("/"),
                "name": OUTPUT,
                "packaging": "NONE",
            },
            imageOverride=self.builder.image,
            imagePullCredentialsTypeOverride="SERVICE_ROLE",
            environmentTypeOverride="LINUX_GPU_CONTAINER",
            computeTypeOverride=self.builder.machine.name,
            environmentVariablesOverride=[
                {"name": name, "value": value, "type": "PLAINTEXT"} for name, value in started_by().items()
            ],
            timeoutInMinutesOverride=math.ceil(_timeout_seconds(job) / 60) + AROUND_MINUTES,
        )


class CodeBuildJob:
    """A build of a project of CodeBuild. Methods raise :class:`EngineFailedError` where CodeBuild refuses."""

    def __init__(self, client: Any, **request: Any) -> None:
        """Starts it: ``request`` is StartBuild's."""
        refused = f"CodeBuild starts no build of {request['projectName']}"
        build = _ask(client.start_build, refused, **request)["build"]
        self._client, self.identity, self.link = client, str(build["id"]), _link_of(build)

    def look(self) -> JobState:
        """Its state now."""
        refused = f"CodeBuild does not describe {self.identity}"
        found = _ask(self._client.batch_get_builds, refused, ids=[self.identity])["builds"]
        if not found:
            raise EngineFailedError(reason=f"CodeBuild has no build {self.identity} any more")
        build = found[0]
        self.link = _link_of(build) or self.link
        status = str(build["buildStatus"])
        ended = status != "IN_PROGRESS"
        at = status if ended else str(build.get("currentPhase", status))
        return JobState(ended=ended, succeeded=status == "SUCCEEDED", at=at, described=build)

    def stop(self) -> None:
        """Stop it."""
        _ask(self._client.stop_build, self.identity, id=self.identity)

    def log_tail(self, logs: Any, state: JobState) -> Sequence[str]:
        """The last lines of its log."""
        where = state.described.get("logs", {})
        group, stream = where.get("groupName"), where.get("streamName")
        return log_tail(logs, group=group, stream=stream) if group and stream else ()

    def reason(self, state: JobState) -> str:
        """Status, and the messages of the failed phase."""
        ended = f"CodeBuild build {self.identity} ended as {state.at}"
        for phase in state.described.get("phases", ()):
            if phase.get("phaseStatus") not in (None, "SUCCEEDED"):
                messages = [str(one.get("message", "")).strip() for one in phase.get("contexts", ())]
                return f"{ended} in {phase['phaseType']}" + "".join(f": {message}" for message in messages if message)
        return ended


def _link_of(build: Mapping[str, Any]) -> str:
    return str(build.get("logs", {}).get("deepLink", ""))


# SageMaker Processing.

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
            StoppingCondition={"MaxRuntimeInSeconds": math.ceil(_timeout_seconds(job)) + AROUND_SECONDS},
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
        _ask(client.create_processing_job, f"SageMaker starts no Processing job on {instance}", **request)
        self._client, self.name = client, str(request["ProcessingJobName"])
        console = f"https://{region}.console.aws.amazon.com/sagemaker/home"
        self.link = f"{console}?region={region}#/processing-jobs/{self.name}"

    def look(self) -> JobState:
        """Its state now."""
        refused = f"SageMaker does not describe {self.name}"
        job = _ask(self._client.describe_processing_job, refused, link=self.link, ProcessingJobName=self.name)
        status = str(job["ProcessingJobStatus"])
        ended = status in ("Completed", "Failed", "Stopped")
        return JobState(ended=ended, succeeded=status == "Completed", at=status, described=job)

    def stop(self) -> None:
        """Stop it."""
        _ask(self._client.stop_processing_job, self.name, ProcessingJobName=self.name)

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


def runner_for(
    builder: Builder, order: Order, *, session: Session, bucket: ArtifactBucket, stop: threading.Event
) -> EngineRunner:
    """The runner for a builder of an order's engines.

    Raises :class:`InputError` where the environment has no builds stack, :class:`WorkFailedError` where SSM refuses.
    """
    environment = order.environment
    builds = f"{environment}/builds"
    if builder.kind == "codebuild":
        name = builds_parameter(environment=environment, value="engine-project-name")
        project = stack_value(session, name, stack=builds)
        return CodeBuildRunner(builder=builder, session=session, bucket=bucket, project=project, stop=stop)
    role = builds_parameter(environment=environment, value="processing-role-arn")
    key = artifact_parameter(environment=environment, value="key-arn")
    return ProcessingRunner(
        builder=builder,
        session=session,
        bucket=bucket,
        role_arn=stack_value(session, role, stack=builds),
        key_arn=stack_value(session, key, stack=f"{environment}/artifacts"),
        network=order.network,
        tags=order.tags,
        stop=stop,
    )
