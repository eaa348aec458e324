"""One engine on a GPU machine of CodeBuild: a build of the environment's engine project, in the endpoint's image."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.aws_session import Session
from tritonstack.engines.plan import Builder
from tritonstack.engines.remote_job import (
    OUTPUT,
    JobState,
    StagedJob,
    await_job,
    log_tail,
    set_output,
    staged_job,
    started_by,
)
from tritonstack.engines.step_result import EngineFailedError, EngineStoppedError, engine_failure, require_built
from tritonstack.errors import WorkFailedError
from tritonstack.local_aws import poll_seconds
from tritonstack.models.bucket import ArtifactBucket
from tritonstack.models.programs import Report

SHORTEST_MINUTES, LONGEST_MINUTES = 5, 2160
"""What CodeBuild takes for a build's time-out (API reference: StartBuild, ``timeoutInMinutesOverride``)."""
AROUND_MINUTES = 20
"""For what the step's own limit does not cover: the image is pulled, the job comes and its output goes."""


@dataclass(frozen=True, kw_only=True)
class CodeBuildRunner:
    """Builds engines one after the other or several at once, each in a build of its own.

    Attributes:
        builder: compute type and image.
        session: makes the clients.
        bucket: where jobs are staged.
        project: the engine project's name.
        stop: set where running builds are to be given up.
    """

    builder: Builder
    session: Session
    bucket: ArtifactBucket
    project: str
    stop: threading.Event

    def run(self, *, name: str, job: Path, output: Path, report: Report) -> None:
        """Build one engine; see ``EngineRunner``."""
        set_output(job, OUTPUT)
        client = self.session.client("codebuild")
        with staged_job(self.bucket, name, report=report) as staged:
            staged.upload(job, report=report, check=self._check)
            build = _Build.start(client, self._request(staged, job))
            report(f"CodeBuild: {build.identity}")
            state = await_job(build, stop=self.stop, interval=poll_seconds(client), report=report, what="CodeBuild")
            self._collect(build, state, staged, output, report)

    def _check(self) -> None:
        if self.stop.is_set():
            raise EngineStoppedError

    def _request(self, staged: StagedJob, job: Path) -> dict[str, Any]:
        seconds = float(json.loads((job / "job.json").read_text())["timeout_seconds"])
        minutes = math.ceil(seconds / 60) + AROUND_MINUTES
        return {
            "projectName": self.project,
            "idempotencyToken": staged.run,
            "sourceTypeOverride": "S3",
            "sourceLocationOverride": f"{self.bucket.name}/{staged.job}",
            "artifactsOverride": {
                "type": "S3",
                "location": self.bucket.name,
                "path": staged.prefix.rstrip("/"),
                "name": OUTPUT,
                "namespaceType": "NONE",
                "packaging": "NONE",
                "overrideArtifactName": False,
                "encryptionDisabled": False,
            },
            "imageOverride": self.builder.image,
            "imagePullCredentialsTypeOverride": "SERVICE_ROLE",
            "environmentTypeOverride": "LINUX_GPU_CONTAINER",
            "computeTypeOverride": self.builder.machine.name,
            "environmentVariablesOverride": [
                {"name": name, "value": value, "type": "PLAINTEXT"} for name, value in started_by().items()
            ],
            "timeoutInMinutesOverride": min(max(minutes, SHORTEST_MINUTES), LONGEST_MINUTES),
        }

    def _collect(self, build: _Build, state: JobState, staged: StagedJob, output: Path, report: Report) -> None:
        """Fetch what the step left, and raise unless it is a plan."""
        if state.succeeded:
            staged.download(output, report=report)
            require_built(output, link=build.link)
            return
        try:
            staged.download(output, report=report)
        except WorkFailedError as error:
            report(str(error))
        tail = build.log_tail(self.session.client("logs"), state)
        raise engine_failure(output, otherwise=_reason(build, state), log_tail=tail, link=build.link)


class _Build:
    """A build that runs, or has run."""

    def __init__(self, client: Any, described: dict[str, Any]) -> None:
        self._client = client
        self.identity = str(described["id"])
        self.link = str(described.get("logs", {}).get("deepLink", ""))

    @classmethod
    def start(cls, client: Any, request: dict[str, Any]) -> _Build:
        try:
            return cls(client, client.start_build(**request)["build"])
        except (BotoCoreError, ClientError) as error:
            reason = f"CodeBuild starts no build of {request['projectName']}: {error}"
            raise EngineFailedError(reason=reason) from error

    def look(self) -> JobState:
        try:
            found = self._client.batch_get_builds(ids=[self.identity])["builds"]
        except (BotoCoreError, ClientError) as error:
            raise EngineFailedError(reason=f"CodeBuild does not tell of {self.identity}: {error}") from error
        if not found:
            raise EngineFailedError(reason=f"CodeBuild does not know the build {self.identity} any more")
        build = found[0]
        self.link = str(build.get("logs", {}).get("deepLink", "")) or self.link
        status = str(build["buildStatus"])
        ended = status != "IN_PROGRESS"
        at = status if ended else str(build.get("currentPhase", status))
        return JobState(ended=ended, succeeded=status == "SUCCEEDED", at=at, described=build)

    def stop(self) -> None:
        try:
            self._client.stop_build(id=self.identity)
        except (BotoCoreError, ClientError) as error:
            raise WorkFailedError(f"{self.identity}: {error}") from error

    def log_tail(self, logs: Any, state: JobState) -> Sequence[str]:
        where = state.described.get("logs", {})
        group, stream = where.get("groupName"), where.get("streamName")
        return log_tail(logs, group=group, stream=stream) if group and stream else ()


def _reason(build: _Build, state: JobState) -> str:
    """The status of a build, and what CodeBuild says of the phase that did not succeed."""
    said = f"CodeBuild build {build.identity} ended as {state.at}"
    for phase in state.described.get("phases", ()):
        if phase.get("phaseStatus") in (None, "SUCCEEDED"):
            continue
        messages = [str(one.get("message", "")).strip() for one in phase.get("contexts", ())]
        return f"{said} in {phase['phaseType']}" + "".join(f": {message}" for message in messages if message)
    return said
