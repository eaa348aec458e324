"""A build's log in CloudWatch Logs, line by line as it comes."""

from __future__ import annotations

import contextvars
import time

from ministack.services import cloudwatch_logs

from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.codebuild.build import Build


class BuildLog:
    """One log stream; the group is made where it is missing, as CodeBuild's role may do. Usable from any thread."""

    def __init__(self, build: Build) -> None:
        """The stream of ``build``, in the account and region of the calling context."""
        self._group = build.log_group
        self._stream = build.log_stream
        self._context = contextvars.copy_context()
        if self._group is not None:
            cloudwatch_logs._create_log_group({"logGroupName": self._group})
            cloudwatch_logs._create_log_stream({"logGroupName": self._group, "logStreamName": self._stream})

    def line(self, text: str) -> None:
        """A line of a command's output, or several."""
        if self._group is not None:
            at = int(clock.now() * 1000)
            events = [{"timestamp": at, "message": line + "\n"} for line in text.split("\n")]
            request = {"logGroupName": self._group, "logStreamName": self._stream, "logEvents": events}
            # A context of its own each time: one context cannot be entered by two threads at once.
            self._context.copy().run(cloudwatch_logs._put_log_events, request)

    def say(self, text: str) -> None:
        """A line of CodeBuild's own."""
        self.line(time.strftime("[Container] %Y/%m/%d %H:%M:%S ", time.gmtime(clock.now())) + text)
