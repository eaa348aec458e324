"""A build's log in CloudWatch Logs, and its event "CodeBuild Build State Change"."""

from __future__ import annotations

import contextvars
import time
from typing import Any

from ministack.services import cloudwatch_logs

from tritonstack_local.emulator import service_events
from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.codebuild.build import IN_PROGRESS, Build, PhaseRecord, artifact_arn


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


def emit_state_change(build: Build) -> None:
    """Tell the rules of the calling context's account and region the status that the build has now."""
    service_events.emit("aws.codebuild", "CodeBuild Build State Change", state_change(build), [build.arn])


def state_change(build: Build) -> dict[str, Any]:
    """The event's ``detail``."""
    return {
        "build-status": build.status,
        "project-name": build.plan.project,
        "build-id": build.arn,
        "additional-information": _information(build),
        "current-phase": build.phases[-1].name,
        "current-phase-context": "[]",
        "version": "1",
    }


def _information(build: Build) -> dict[str, Any]:
    plan = build.plan
    information: dict[str, Any] = {
        "cache": {"type": "NO_CACHE"},
        "build-number": build.number,
        "timeout-in-minutes": plan.timeout_minutes,
        "build-complete": build.status != IN_PROGRESS,
        "initiator": build.initiator,
        "build-start-time": _moment(build.start),
        "source": {name: plan.source[name] for name in ("buildspec", "location", "type") if plan.source.get(name)},
        "environment": {
            "image": plan.environment["image"],
            "privileged-mode": plan.environment["privilegedMode"],
            "image-pull-credentials-type": plan.environment["imagePullCredentialsType"],
            "compute-type": plan.environment["computeType"],
            "type": plan.environment["type"],
            "environment-variables": [variable.as_api() for variable in plan.variables],
        },
        "logs": _logs(build),
        "phases": [_phase(phase) for phase in build.phases],
        "queued-timeout-in-minutes": plan.queued_minutes,
    }
    if plan.source_version:
        information["source-version"] = plan.source_version
    if plan.artifacts["type"] == "S3":
        sums = {"md5sum": build.artifact.get("md5sum"), "sha256sum": build.artifact.get("sha256sum")}
        information["artifact"] = {**{k: v for k, v in sums.items() if v}, "location": artifact_arn(build)}
    return information


def _logs(build: Build) -> dict[str, Any]:
    """Group and stream; a build without log has the link only."""
    if build.log_group is None:
        return {"deep-link": build.deep_link}
    return {"group-name": build.log_group, "stream-name": build.log_stream, "deep-link": build.deep_link}


def _phase(phase: PhaseRecord) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "phase-context": [f"{phase.code}: {phase.message}"] if phase.code else [],
        "start-time": _moment(phase.start),
        "phase-type": phase.name,
    }
    if phase.end is not None:
        shown |= {
            "end-time": _moment(phase.end),
            "duration-in-seconds": int(phase.end - phase.start),
            "phase-status": phase.status,
        }
    return shown


def _moment(seconds: float) -> str:
    """``Sep 1, 2017 4:12:29 PM``, in UTC."""
    at = time.gmtime(seconds)
    return (
        f"{time.strftime('%b', at)} {at.tm_mday}, {at.tm_year} {at.tm_hour % 12 or 12}{time.strftime(':%M:%S %p', at)}"
    )
