"""Engines built by CodeBuild: one build for each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonstack.preparation.gpu_step import (
    EngineFailedError,
)
from tritonstack.preparation.remote_job import OUTPUT, JobState, StagedJob, log_tail, started_by
from tritonstack.preparation.remote_runner import RemoteRunner, service_response, timeout_seconds

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
            timeoutInMinutesOverride=math.ceil(timeout_seconds(job) / 60) + AROUND_MINUTES,
        )


class CodeBuildJob:
    """A build of a project of CodeBuild. Methods raise :class:`EngineFailedError` where CodeBuild refuses."""

    def __init__(self, client: Any, **request: Any) -> None:
        """Starts it: ``request`` is StartBuild's."""
        refused = f"CodeBuild starts no build of {request['projectName']}"
        build = service_response(client.start_build, refused, **request)["build"]
        self._client, self.identity, self.link = client, str(build["id"]), _link_of(build)

    def look(self) -> JobState:
        """Its state now."""
        refused = f"CodeBuild does not describe {self.identity}"
        found = service_response(self._client.batch_get_builds, refused, ids=[self.identity])["builds"]
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
        service_response(self._client.stop_build, self.identity, id=self.identity)

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
