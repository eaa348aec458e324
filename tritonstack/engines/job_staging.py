"""An engine's job between the phases of a build: its folder goes to S3, its output comes back, and nothing stays."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.archives.bucket import ArtifactBucket
from tritonstack.archives.folder import files_below
from tritonstack.archives.programs import Report
from tritonstack.errors import WorkFailedError
from tritonstack.naming import job_prefix
from tritonstack.unpacking import UnsafeArchiveError, member_path

JOB = "job"
OUTPUT = "output"
_CHUNK = 8 << 20
_ATTEMPTS = 3


@dataclass(frozen=True, kw_only=True)
class StagedJob:
    """One run's place in the bucket.

    Attributes:
        bucket: the environment's.
        run: the run's name, no other run's.
    """

    bucket: ArtifactBucket
    run: str

    @property
    def prefix(self) -> str:
        """What all its keys begin with, with a trailing slash."""
        return job_prefix(run=self.run)

    @property
    def job(self) -> str:
        """Where the job's folder lies, with a trailing slash."""
        return f"{self.prefix}{JOB}/"

    @property
    def output(self) -> str:
        """Where the step's output comes, with a trailing slash."""
        return f"{self.prefix}{OUTPUT}/"

    def upload(self, folder: Path, *, report: Report, check: Callable[[], None]) -> None:
        """Send the job's folder, streamed. ``check`` is called now and then, and raises where the run shall end."""
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
        """Fetch what the step left, streamed; ``result.json`` last, so that a folder with it is whole.

        Raises :class:`WorkFailedError` where S3 refuses, or a key would be a file outside the folder.
        """
        folder.mkdir(parents=True, exist_ok=True)
        keys = sorted((str(row["Key"]) for row in self.bucket.keys(self.output)), key=_result_last)
        for key in keys:
            name = key.removeprefix(self.output)
            if not name or name.endswith("/"):
                continue
            try:
                path = folder / member_path(name)
            except UnsafeArchiveError as error:
                raise WorkFailedError(f"s3://{self.bucket.name}/{key}: {error}") from error
            report(f"output from S3: {name}")
            self._fetch(key, path)

    def _fetch(self, key: str, path: Path) -> None:
        """Fetch one file; again where it breaks off, which boto3 leaves to its caller."""
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.part")
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                body = self.bucket.s3.get_object(Bucket=self.bucket.name, Key=key)["Body"]
                with temporary.open("wb") as stream:
                    for chunk in body.iter_chunks(_CHUNK):
                        stream.write(chunk)
            except (BotoCoreError, ClientError) as error:
                if isinstance(error, ClientError) or attempt == _ATTEMPTS:
                    raise WorkFailedError(f"could not read s3://{self.bucket.name}/{key}: {error}") from error
            else:
                temporary.replace(path)
                return

    def remove(self) -> None:
        """Delete everything of the run."""
        self.bucket.delete([str(row["Key"]) for row in self.bucket.keys(self.prefix)])


@contextmanager
def staged_job(bucket: ArtifactBucket, run: str, *, report: Report) -> Iterator[StagedJob]:
    """A run's place in the bucket until the block ends, however it ends.

    Where it cannot be removed, that is reported and no more: the bucket's own rule removes what stays.
    """
    staged = StagedJob(bucket=bucket, run=run)
    try:
        yield staged
    finally:
        try:
            staged.remove()
        except WorkFailedError as error:
            report(f"{error}; the bucket's rule for staging/ removes it")


def set_output(job: Path, output: str) -> None:
    """Say in a job's ``job.json`` where its output goes, as the step finds it from the job's folder."""
    path = job / "job.json"
    described = {**json.loads(path.read_text()), "output": output}
    temporary = job / ".job.json.new"
    temporary.write_text(json.dumps(described, indent=1) + "\n")
    temporary.replace(path)


def _result_last(key: str) -> tuple[bool, str]:
    return key.endswith("/result.json"), key
