"""A processing job: what was asked for, and how far it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.sagemaker.records import Kind, Record

PROCESSING_JOB = Kind(noun="ProcessingJob", label="processing job", arn_part="processing-job")

DEFAULT_RUNTIME_SECONDS = 86400
"""ProcessingStoppingCondition: a day where the request names no limit (API reference)."""

LONGEST_TEXT = 1024
"""Bytes of ``ExitMessage`` and ``FailureReason``: "up to one KB" (API reference)."""


@dataclass(kw_only=True)
class ProcessingJob(Record):
    """A job. Guarded by the lock of the SageMaker state.

    Attributes:
        status: InProgress, Stopping, Completed, Failed or Stopped.
        stop_requested: somebody called StopProcessingJob.
        started: when the entrypoint was started, seconds since the epoch.
        ended: when the job came to its end.
        exit_message: the first KB of ``/opt/ml/output/message``.
        failure_reason: of a failed job.
    """

    created: float = field(default_factory=clock.now)
    modified: float = field(default_factory=clock.now)
    status: str = "InProgress"
    stop_requested: bool = False
    started: float | None = None
    ended: float | None = None
    exit_message: str | None = None
    failure_reason: str | None = None

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
