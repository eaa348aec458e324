"""A processing job: what CreateProcessingJob refuses, its record, its log."""

from __future__ import annotations

import contextvars
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from ministack.services import cloudwatch_logs

from tritonstack import aws_names
from tritonstack.catalogue import load_catalogue
from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.request_validation import RefusedError
from tritonstack_local.emulator.sagemaker.records import API, Kind, Record, check_execution_role
from tritonstack_local.trtexec.launchers import gpu_of, known_instance_types


class JobFailedError(Exception):
    """The text becomes ``FailureReason``; it begins with SageMaker's kind (``ClientError``, ``AlgorithmError``)."""


PROCESSING_JOB = Kind(noun="ProcessingJob", label="processing job", arn_part="processing-job")

DEFAULT_RUNTIME_SECONDS = 86400
"""ProcessingStoppingCondition: a day where the request names no limit (API reference)."""

LONGEST_TEXT = 1024
"""Bytes of ``ExitMessage`` and ``FailureReason``: "up to one KB" (API reference)."""


@dataclass(kw_only=True)
class ProcessingJob(Record):
    """A job. Guarded by the lock of the SageMaker state."""

    created: float = field(default_factory=clock.now)
    modified: float = field(default_factory=clock.now)
    status: str = "InProgress"  # InProgress, Stopping, Completed, Failed or Stopped
    stop_requested: bool = False  # somebody called StopProcessingJob
    started: float | None = None  # when the entrypoint was started, seconds since the epoch
    ended: float | None = None  # when the job came to its end
    exit_message: str | None = None  # the first KB of ``/opt/ml/output/message``
    failure_reason: str | None = None  # of a failed job

    @property
    def runtime_seconds(self) -> int:
        """The longest that the entrypoint may run."""
        condition: dict[str, int] = self.request.get("StoppingCondition", {})
        return condition.get("MaxRuntimeInSeconds", DEFAULT_RUNTIME_SECONDS)

    def begin(self) -> None:
        """The entrypoint was started."""
        self.started = self.modified = clock.now()

    def stopping(self) -> None:
        """The entrypoint was asked to end."""
        self.status, self.modified = "Stopping", clock.now()

    def end(self, status: str, *, reason: str | None, message: str | None) -> None:
        """The end: Completed, Failed or Stopped."""
        self.status, self.failure_reason, self.exit_message = status, reason and shortened(reason), message
        self.ended = self.modified = clock.now()

    def summary(self) -> dict[str, Any]:
        """What a listing adds to name, ARN and creation time."""
        return {
            "LastModifiedTime": self.modified,
            "ProcessingJobStatus": self.status,
            **{name: value for name, value in self._end().items() if name != "ProcessingStartTime"},
        }

    def describe(self) -> dict[str, Any]:
        """DescribeProcessingJob's answer."""
        return {
            "StoppingCondition": {"MaxRuntimeInSeconds": self.runtime_seconds},
            **{name: value for name, value in self.request.items() if name != "Tags"},
            "ProcessingJobArn": self.arn,
            "ProcessingJobStatus": self.status,
            "CreationTime": self.created,
            "LastModifiedTime": self.modified,
            **self._end(),
        }

    def _end(self) -> dict[str, Any]:
        known = {
            "ProcessingStartTime": self.started,
            "ProcessingEndTime": self.ended,
            "ExitMessage": self.exit_message,
            "FailureReason": self.failure_reason,
        }
        return {name: value for name, value in known.items() if value is not None}


def shortened(text: str) -> str:
    """The first KB of a text, cut between two characters."""
    return text.encode()[:LONGEST_TEXT].decode(errors="ignore")


GROUP = aws_names.PROCESSING_JOBS
_LONGEST_LINE = 200_000  # bytes; CloudWatch Logs takes 256 KiB an event


class JobLog:
    """The one stream of a job, made at once: ``<job>/algo-1-<epoch>``. Lines may come from any thread."""

    def __init__(self, job: ProcessingJob) -> None:
        """In the account and region of the calling context; the group is made where it is missing."""
        self._context = contextvars.copy_context()
        self._stream = {"logGroupName": GROUP, "logStreamName": f"{job.name}/algo-1-{int(job.created)}"}
        cloudwatch_logs._create_log_group({"logGroupName": GROUP})
        cloudwatch_logs._create_log_stream(dict(self._stream))

    def line(self, text: str) -> None:
        """A line of the entrypoint's."""
        message = text.rstrip("\r\n").encode()[:_LONGEST_LINE].decode(errors="ignore")
        event = {"timestamp": int(clock.now() * 1000), "message": message}
        # A copy, since two threads cannot be in one context at a time.
        self._context.copy().run(cloudwatch_logs._put_log_events, {**self._stream, "logEvents": [event]})

    def say(self, text: str) -> None:
        """A line of the local AWS's own."""
        self.line(f"[local AWS] {text}")


Request = dict[str, Any]
FOLDER = "/opt/ml/processing/"
_IMAGE = re.compile(r"\d{12}\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/[^:@]+(:[\w.-]+|@sha256:[0-9a-f]{64})?")
_HERE = "is not in the local AWS"


def check(request: Request) -> None:
    """Raise ``RefusedError`` with every problem at once, and for a role that SageMaker may not assume."""
    found = [*_of_cluster(request), *_of_image(request), *_of_inputs(request), *_of_outputs(request)]
    if "ExperimentConfig" in request:
        found.append(f"ExperimentConfig {_HERE}")
    if found:
        raise RefusedError("ValidationException", "; ".join(found), source=f"{API}, CreateProcessingJob")
    check_execution_role(request["RoleArn"])


def _of_cluster(request: Request) -> Iterator[str]:
    cluster = request["ProcessingResources"]["ClusterConfig"]
    unknown = cluster.keys() - {"InstanceCount", "InstanceType", "VolumeSizeInGB", "VolumeKmsKeyId"}
    yield from (f"ClusterConfig.{name} {_HERE}" for name in sorted(unknown))
    for name in ("InstanceCount", "InstanceType"):
        if name not in cluster:
            yield f"ClusterConfig.{name} must be specified"
    if cluster.get("InstanceCount", 1) != 1:
        yield f"more than one instance {_HERE}"
    kind = cluster.get("InstanceType")
    if kind is not None and gpu_of(kind) is None:
        yield f"the GPU of {kind} is not known; it is of {', '.join(known_instance_types())}"
    elif kind is not None and "VolumeKmsKeyId" in cluster and load_catalogue().instances[kind].local_nvme_gb:
        yield f"VolumeKmsKeyId: {kind} has local storage, which encrypts itself and takes no key"


def _of_image(request: Request) -> Iterator[str]:
    application = request["AppSpecification"]
    if not _IMAGE.fullmatch(application["ImageUri"]):
        yield f"ImageUri {application['ImageUri']} is no image of Amazon ECR"
    if "ContainerEntrypoint" not in application:
        yield "the local AWS starts no image and so knows no ENTRYPOINT: ContainerEntrypoint must be specified"


def _of_inputs(request: Request) -> Iterator[str]:
    inputs = request.get("ProcessingInputs", [])
    yield from _repeated("InputName", inputs)
    for number, one in enumerate(inputs, 1):
        where = f"ProcessingInputs.{number}"
        if one.get("AppManaged") or "DatasetDefinition" in one:
            yield f"{where}: AppManaged and DatasetDefinition: neither {_HERE}"
            continue
        given = one.get("S3Input")
        if given is None:
            yield f"{where}: S3Input must be specified"
            continue
        yield from _of_place(where, given)
        for name, run in (("S3DataType", "S3Prefix"), ("S3InputMode", "File"), ("S3CompressionType", "None")):
            if given.get(name, run) != run:
                yield f"{where}: {name} {given[name]} {_HERE}, {run} is"


def _of_outputs(request: Request) -> Iterator[str]:
    outputs = request.get("ProcessingOutputConfig", {}).get("Outputs", [])
    yield from _repeated("OutputName", outputs)
    for number, one in enumerate(outputs, 1):
        where = f"ProcessingOutputConfig.Outputs.{number}"
        if one.get("AppManaged") or "FeatureStoreOutput" in one:
            yield f"{where}: AppManaged and FeatureStoreOutput: neither {_HERE}"
        elif "S3Output" not in one:
            yield f"{where}: S3Output must be specified"
        else:
            yield from _of_place(where, one["S3Output"])
            if one["S3Output"]["S3UploadMode"] != "EndOfJob":
                yield f"{where}: S3UploadMode {one['S3Output']['S3UploadMode']} {_HERE}, EndOfJob is"


def _of_place(where: str, given: dict[str, Any]) -> Iterator[str]:
    if not given["S3Uri"].startswith("s3://"):
        yield f"{where}: S3Uri {given['S3Uri']}: an https address {_HERE}, s3://… is"
    local = given.get("LocalPath", "")
    if not local.startswith(FOLDER) or ".." in PurePosixPath(local).parts:
        yield f"{where}: LocalPath {local or '(none)'} must begin with {FOLDER}"


def _repeated(name: str, given: list[dict[str, Any]]) -> Iterator[str]:
    for value, count in Counter(one[name] for one in given).items():
        if count > 1:
            yield f"{name} {value} is used {count} times"
