"""Builds engines as jobs of a service: stage, start, wait, take the output or the reason of a failure."""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.archives.bucket import ArtifactBucket
from tritonstack.archives.programs import Report
from tritonstack.aws.session import Session
from tritonstack.engines.engine_builds import Builder
from tritonstack.engines.trtexec import JOB, change_job
from tritonstack.errors import WorkFailedError
from tritonstack.local_aws import poll_seconds
from tritonstack.preparation.gpu_step import (
    EngineFailedError,
    EngineStoppedError,
    engine_failure,
    require_built,
)
from tritonstack.preparation.remote_job import JobState, RemoteJob, StagedJob, await_job, staged_job


def service_response(operation: Callable[..., Any], refused: str, *, link: str = "", **parameters: Any) -> Any:
    """A service's response. Raises :class:`EngineFailedError`, which begins with ``refused``, where it refuses."""
    try:
        return operation(**parameters)
    except (BotoCoreError, ClientError) as error:
        raise EngineFailedError(reason=f"{refused}: {error}", link=link) from error


class EngineJob(RemoteJob, Protocol):
    """A service's job that builds an engine."""

    def log_tail(self, logs: Any, _state: JobState) -> Sequence[str]:
        """The last lines of its log."""
        ...

    def reason(self, state: JobState) -> str:
        """Why it failed, in the service's words."""
        ...


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
    def _start(self, client: Any, staged: StagedJob, job: Path) -> EngineJob:
        """Start the service's job for a staged build."""

    def _check(self) -> None:
        if self.stop.is_set():
            raise EngineStoppedError


def timeout_seconds(job: Path) -> float:
    """The limit of a job's engine step, in seconds."""
    return float(json.loads((job / JOB).read_text())["timeout_seconds"])
