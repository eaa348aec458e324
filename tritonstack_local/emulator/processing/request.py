"""A processing job: what CreateProcessingJob refuses, its record, its log."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from tritonstack import aws_names
from tritonstack.catalogue import load_catalogue
from tritonstack_local.emulator import service_events
from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.iam.authorization import Principal
from tritonstack_local.emulator.sagemaker.records import Kind, Record, check_execution_role, refused
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


class JobLog(service_events.LogStream):
    """The one stream of a job: ``<job>/algo-1-<epoch>``."""

    def __init__(self, job: ProcessingJob, *, writer: Principal) -> None:
        """The stream is made at once, if the ``writer`` may."""
        super().__init__(GROUP, f"{job.name}/algo-1-{int(job.created)}", writer=writer)

    def say(self, text: str) -> None:
        """A line of the local AWS's own."""
        self.line(f"[local AWS] {text}")


Request = dict[str, Any]
FOLDER = "/opt/ml/processing/"
_IMAGE = re.compile(r"\d{12}\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/[^:@]+(:[\w.-]+|@sha256:[0-9a-f]{64})?")


def check(request: Request) -> None:
    """Raise ``RefusedError`` with every problem at once, and for a role that SageMaker may not assume."""
    found = [*_of_cluster(request), *_of_image(request), *_of_places(request)]
    if found:
        raise refused("; ".join(found), "CreateProcessingJob")
    check_execution_role(request["RoleArn"])


def _of_cluster(request: Request) -> Iterator[str]:
    cluster = request["ProcessingResources"]["ClusterConfig"]
    for name in ("InstanceCount", "InstanceType"):
        if name not in cluster:
            yield f"ClusterConfig.{name} must be specified"
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


def _of_places(request: Request) -> Iterator[str]:
    """Inputs and outputs: each name once, S3 objects, folders below ``/opt/ml/processing/``."""
    inputs, outputs = request.get("ProcessingInputs", []), request.get("ProcessingOutputConfig", {}).get("Outputs", [])
    for where, rows, name, member in (
        ("ProcessingInputs", inputs, "InputName", "S3Input"),
        ("ProcessingOutputConfig.Outputs", outputs, "OutputName", "S3Output"),
    ):
        yield from _repeated(name, rows)
        for number, row in enumerate(rows, 1):
            given = row.get(member)
            if given is None:
                yield f"{where}.{number}: {member} must be specified"
                continue
            if not given["S3Uri"].startswith("s3://"):
                yield f"{where}.{number}: S3Uri {given['S3Uri']}: an https address is not in the local AWS, s3://… is"
            local = given.get("LocalPath", "")
            if not local.startswith(FOLDER) or ".." in PurePosixPath(local).parts:
                yield f"{where}.{number}: LocalPath {local or '(none)'} must begin with {FOLDER}"


def _repeated(name: str, given: list[dict[str, Any]]) -> Iterator[str]:
    for value, count in Counter(one[name] for one in given).items():
        if count > 1:
            yield f"{name} {value} is used {count} times"
