"""A job on another machine: its folder staged in S3, started, polled, stopped; the last lines of its log."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.archives.bucket import ArtifactBucket
from tritonstack.archives.programs import Report
from tritonstack.aws.session import credentials_ended
from tritonstack.errors import WorkFailedError
from tritonstack.models.source_files import files_below
from tritonstack.naming import job_prefix
from tritonstack.preparation.gpu_step import KEPT_LINES, EngineStoppedError
from tritonstack.untrusted.unpacking import UnsafeArchiveError, member_path


def log_tail(logs: Any, *, group: str, stream: str | None = None, prefix: str = "") -> tuple[str, ...]:
    """The last lines of a stream, or of the first with this prefix, oldest first; empty where it cannot be read."""
    try:
        if stream is None:
            streams = logs.describe_log_streams(logGroupName=group, logStreamNamePrefix=prefix, limit=1)["logStreams"]
            stream = streams[0]["logStreamName"]
        found = logs.get_log_events(logGroupName=group, logStreamName=stream, limit=KEPT_LINES, startFromHead=False)
    except (BotoCoreError, ClientError, LookupError):
        return ()
    return tuple(str(event["message"]).rstrip() for event in found["events"])


VARIABLE = "TRITONSTACK_STARTED_BY"
"""On an engine's job, of CodeBuild and of Processing. ``lambda/model_builds`` reads it."""


def started_by() -> dict[str, str]:
    """The variable with the id of the CodeBuild build of this process; empty outside a build."""
    build = os.environ.get("CODEBUILD_BUILD_ID")
    return {VARIABLE: build} if build else {}


LOST_LOOKS = 20
"""Failed requests in a row after which a job counts as lost: minutes of a build of hours."""
STOPPING_SECONDS = 60.0
"""Time that a stopped job has to end before its staged objects are removed."""


@dataclass(frozen=True, kw_only=True)
class JobState:
    """A remote job at one moment."""

    ended: bool  # whether it is over
    succeeded: bool  # whether it ended well
    at: str  # its phase or status, in the service's words
    described: dict[str, Any]  # the service's description


class RemoteJob(Protocol):
    """A job that a service runs. Its methods raise :class:`WorkFailedError` where the service refuses."""

    def look(self) -> JobState:
        """Its state now."""
        ...

    def stop(self) -> None:
        """Stop it."""
        ...

    @property
    def link(self) -> str:
        """Its page in the console."""
        ...


def await_job(job: RemoteJob, *, stop: threading.Event, interval: float, report: Report, what: str) -> JobState:
    """Poll a started job every ``interval`` seconds until it has ended, or give it up when ``stop`` is set.

    ``report`` is called with the service's name (``what``), the status and the seconds it has run.

    Raises:
        EngineStoppedError: it was given up; the job is stopped.
        WorkFailedError: the service does not respond any more, or the credentials have expired for minutes; the job is
            stopped if it can be.
    """
    started, lost = time.monotonic(), 0
    try:
        while not stop.is_set():
            try:
                state, lost = job.look(), 0
            except WorkFailedError as error:
                lost += 1
                if lost > LOST_LOOKS:
                    raise _lost_job_error(error, job, what=what) from error
                report(f"{what}: {error}")
            else:
                if state.ended:
                    return state
                report(f"{what}: {state.at}, {time.monotonic() - started:.0f} s")
            stop.wait(interval)
    except BaseException:
        _stop(job, interval=interval, report=report)
        raise
    _stop(job, interval=interval, report=report)
    raise EngineStoppedError(link=job.link)


def _lost_job_error(error: WorkFailedError, job: RemoteJob, *, what: str) -> WorkFailedError:
    """The error of a job whose state cannot be read any more; with expired credentials it cannot be stopped either."""
    if not credentials_ended(error):
        return error
    where = f": {job.link}" if job.link else ""
    return WorkFailedError(f"{error}\n  {what} could not be stopped and goes on by itself{where}")


def _stop(job: RemoteJob, *, interval: float, report: Report) -> None:
    """Stop a job and wait, for a while, until it writes nothing more."""
    report("stopping it")
    try:
        job.stop()
        until = time.monotonic() + STOPPING_SECONDS
        while not job.look().ended and time.monotonic() < until:
            threading.Event().wait(interval)
    except WorkFailedError as error:
        report(f"it could not be stopped: {error}")


OUTPUT = "output"
_ATTEMPTS = 3
_LARGEST = 50 << 30
"""Bytes of a file that is fetched: more than any plan has."""


@dataclass(frozen=True, kw_only=True)
class StagedJob:
    """One run's place in the bucket."""

    bucket: ArtifactBucket  # the environment's
    run: str  # the run's name, no other run's

    @property
    def prefix(self) -> str:
        """Prefix of all its keys, with a trailing slash."""
        return job_prefix(run=self.run)

    @property
    def job(self) -> str:
        """Prefix of the job's folder, with a trailing slash."""
        return f"{self.prefix}job/"

    @property
    def output(self) -> str:
        """Prefix of the step's output, with a trailing slash."""
        return f"{self.prefix}{OUTPUT}/"

    def upload(self, folder: Path, *, report: Report, check: Callable[[], None]) -> None:
        """Send the job's folder, streamed. ``check`` is called repeatedly, and raises to end the run."""
        files = list(files_below(folder))
        total, done = sum(path.stat().st_size for _, path in files), 0

        def sent(count: int) -> None:
            nonlocal done
            done += count
            check()
            report(f"job to S3: {100 * done // max(total, 1)} % of {total / 1e6:,.1f} MB")

        for name, path in files:
            self.bucket.put_once(f"{self.job}{name}", path, sent=sent)

    def download(self, folder: Path, *, report: Report) -> None:
        """Fetch the step's output, streamed; ``result.json`` last, so that a folder with it is whole.

        Raises :class:`WorkFailedError` where S3 refuses, or a key would be a file outside the folder.
        """
        keys = [str(row["Key"]) for row in self.bucket.keys(self.output) if not row["Key"].endswith("/")]
        for key in sorted(keys, key=lambda key: (key.endswith("/result.json"), key)):
            name = key.removeprefix(self.output)
            try:
                path = folder / member_path(name)
            except UnsafeArchiveError as error:
                raise WorkFailedError(f"s3://{self.bucket.name}/{key}: {error}") from error
            report(f"output from S3: {name}")
            path.parent.mkdir(parents=True, exist_ok=True)
            self._fetch(key, path)

    def _fetch(self, key: str, path: Path) -> None:
        """Fetch one file; retry a broken download, which boto3 does not."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self.bucket.fetch(key, path, most_bytes=_LARGEST)
            except WorkFailedError:
                path.unlink(missing_ok=True)
                if attempt == _ATTEMPTS:
                    raise
            else:
                return


@contextmanager
def staged_job(bucket: ArtifactBucket, run: str, *, report: Report) -> Iterator[StagedJob]:
    """A run's place in the bucket, removed at the end of the block.

    A failure to remove it is only reported: the bucket's lifecycle rule removes what stays.
    """
    staged = StagedJob(bucket=bucket, run=run)
    try:
        yield staged
    finally:
        try:
            bucket.delete([str(row["Key"]) for row in bucket.keys(staged.prefix)])
        except WorkFailedError as error:
            report(f"{error}; the bucket's rule for staging/ removes it")
