"""A job's folder in the bucket and back: streamed, whole, and gone afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import IncompleteReadError

from tests.fake_aws import FakeAws, unreachable
from tritonstack.archives.bucket import ArtifactBucket
from tritonstack.errors import WorkFailedError
from tritonstack.preparation.remote_job import StagedJob, staged_job

OUTPUT = "staging/jobs/run/output/"


@pytest.fixture
def staged(aws: FakeAws) -> StagedJob:
    return StagedJob(bucket=ArtifactBucket(environment="dev", session=aws), run="run")


def nothing(_text: str = "") -> None:
    """Report nothing."""


def test_a_folder_is_sent_with_its_subfolders_and_large_files_in_parts(
    aws: FakeAws, staged: StagedJob, tmp_path: Path
) -> None:
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights/0.bin").write_bytes(b"w" * (17 << 20))
    (tmp_path / "job.json").write_text("{}")
    lines: list[str] = []
    staged.upload(tmp_path, report=lines.append, check=nothing)
    assert {key: len(content) for key, content in aws.artifacts.items()} == {
        "staging/jobs/run/job/job.json": 2,
        "staging/jobs/run/job/weights/0.bin": 17 << 20,
    }
    [in_parts] = aws.requests("CreateMultipartUpload")
    assert in_parts["Key"] == "staging/jobs/run/job/weights/0.bin"
    assert lines[-1].startswith("job to S3: 100 %")


def test_the_result_comes_last_so_that_a_folder_with_it_is_whole(
    aws: FakeAws, staged: StagedJob, tmp_path: Path
) -> None:
    aws.artifacts.update({OUTPUT + name: name.encode() for name in ("zeta", "result.json", "deep/a", "alpha")})
    lines: list[str] = []
    staged.download(tmp_path / "out", report=lines.append)
    assert [line.split()[-1] for line in lines] == ["alpha", "deep/a", "zeta", "result.json"]
    assert (tmp_path / "out/deep/a").read_bytes() == b"deep/a"


@pytest.mark.parametrize("name", ["../outside", "/absolute", "a/../../b", "a\\b"])
def test_a_key_that_would_be_a_file_elsewhere_is_refused(
    aws: FakeAws, staged: StagedJob, tmp_path: Path, name: str
) -> None:
    aws.artifacts[OUTPUT + name] = b"x"
    with pytest.raises(WorkFailedError, match="is no path inside"):
        staged.download(tmp_path / "out", report=nothing)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


class BreakingOff:
    """An S3 client whose first downloads break off."""

    def __init__(self, client: Any, *, times: int) -> None:
        self._client, self.times = client, times

    def __getattr__(self, name: str) -> Any:
        """Everything else is the client's."""
        return getattr(self._client, name)

    def get_object(self, **request: Any) -> dict[str, Any]:
        """The object, or an end of the connection."""
        response = dict(self._client.get_object(**request))
        if self.times:
            self.times -= 1
            response["Body"] = self
        return response

    def read(self, _size: int) -> bytes:
        """The end of the connection."""
        raise IncompleteReadError(actual_bytes=5, expected_bytes=9)


@pytest.mark.parametrize(("times", "comes"), [(2, True), (3, False)])
def test_a_download_that_breaks_off_is_begun_again_a_few_times(
    aws: FakeAws, staged: StagedJob, tmp_path: Path, times: int, *, comes: bool
) -> None:
    aws.artifacts[f"{OUTPUT}model.plan"] = b"beginning"
    staged.bucket.s3 = BreakingOff(staged.bucket.s3, times=times)
    if comes:
        staged.download(tmp_path, report=nothing)
        assert (tmp_path / "model.plan").read_bytes() == b"beginning"
        return
    with pytest.raises(WorkFailedError, match=r"could not read s3://artifacts/.*model\.plan"):
        staged.download(tmp_path, report=nothing)
    assert not (tmp_path / "model.plan").exists()


def test_whatever_happens_nothing_stays_staged(aws: FakeAws, staged: StagedJob) -> None:
    aws.artifacts.update({"staging/jobs/run/job/a": b"", f"{OUTPUT}b": b"", "staging/jobs/run2/job/a": b""})
    with pytest.raises(KeyboardInterrupt), staged_job(staged.bucket, "run", report=nothing):
        raise KeyboardInterrupt
    assert list(aws.artifacts) == ["staging/jobs/run2/job/a"]


def test_staging_that_cannot_be_removed_is_reported_and_left_to_the_buckets_rule(staged: StagedJob) -> None:
    lines: list[str] = []
    with staged_job(staged.bucket, "run", report=lines.append):
        staged.bucket.s3 = unreachable("s3")
    assert lines[-1].endswith("the bucket's rule for staging/ removes it")
