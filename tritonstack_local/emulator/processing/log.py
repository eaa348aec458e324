"""A job's log: what its entrypoint prints, and what stands in for what, in CloudWatch Logs."""

from __future__ import annotations

import contextvars

from ministack.services import cloudwatch_logs

from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.processing.record import ProcessingJob

GROUP = "/aws/sagemaker/ProcessingJobs"
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
