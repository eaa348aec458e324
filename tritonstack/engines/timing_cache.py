"""The tactics that TensorRT timed: kept in S3 per GPU and TensorRT version, so that the next build times fewer.

A cache only saves time. Whatever is wrong with it, or with fetching and keeping it, is reported and fails no build.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.archives.bucket import ArtifactBucket
from tritonstack.archives.digest import sha256_of
from tritonstack.archives.programs import Report
from tritonstack.engines.step_result import RESULT
from tritonstack.errors import WorkFailedError
from tritonstack.naming import timing_cache_key

_SHA256 = "sha256"
_LARGEST = 1 << 30
"""A cache has some megabytes; what is larger is none."""


def fetch_timing_cache(bucket: ArtifactBucket, job: Path, *, gpu: str, report: Report) -> str | None:
    """Put the kept cache into a job's folder, where its ``job.json`` wants one.

    Args:
        bucket: the environment's.
        job: the job's folder.
        gpu: the GPU that builds.
        report: told why there is none, where that is no good reason.

    Returns:
        the SHA-256 of the cache that lies there now, or None where there is none.
    """
    described = json.loads((job / "job.json").read_text())
    if not described["timing_cache"]:
        return None
    place = job / described["timing_cache"]
    place.unlink(missing_ok=True)
    try:
        key = _newest(bucket, gpu=gpu, tensorrt=described["tensorrt"])
        if key is None:
            return None
        stored = bucket.look(key)
        if stored is None or not bucket.fetch(key, place, most_bytes=_LARGEST):
            return None
    except WorkFailedError as error:
        report(f"no timing cache: {error}")
        place.unlink(missing_ok=True)
        return None
    digest = sha256_of(place)
    if stored.metadata.get(_SHA256) != digest:
        report(f"no timing cache: s3://{bucket.name}/{key} is not what was put there")
        place.unlink()
        return None
    return digest


def keep_timing_cache(bucket: ArtifactBucket, output: Path, *, gpu: str, before: str | None, report: Report) -> None:
    """Keep the cache that a finished step left, under the TensorRT that really ran.

    Args:
        bucket: the environment's.
        output: the step's output folder.
        gpu: the GPU that built.
        before: the SHA-256 of the cache that the step started from, or None.
        report: told why it is not kept, where that is no good reason.
    """
    try:
        result = json.loads((output / RESULT).read_text(encoding="utf-8"))
        name, version = str(result["files"]["timing"]["name"]), str(result["trtexec"]["tensorrt"])
    except (OSError, ValueError, KeyError, TypeError):
        return
    cache = output / Path(name).name
    if not cache.is_file() or cache.is_symlink() or not 0 < cache.stat().st_size <= _LARGEST:
        return
    digest = sha256_of(cache)
    if digest == before:
        return
    key = timing_cache_key(gpu=gpu, tensorrt=version)
    try:
        with cache.open("rb") as stream:
            bucket.s3.put_object(Bucket=bucket.name, Key=key, Body=stream, Metadata={_SHA256: digest})
    except (BotoCoreError, ClientError) as error:
        report(f"the timing cache is not kept: {error}")


def drop_timing_cache(job: Path) -> None:
    """Take the cache out of a job's folder again."""
    described = json.loads((job / "job.json").read_text())
    with contextlib.suppress(FileNotFoundError):
        (job / described["timing_cache"]).unlink()


def _newest(bucket: ArtifactBucket, *, gpu: str, tensorrt: list[str]) -> str | None:
    """The key of the cache of one of the TensorRT versions that the image may have, the one written last."""
    name = timing_cache_key(gpu=gpu, tensorrt="").split("//")[0] + "/"
    rows = [
        row
        for row in bucket.keys(name)
        if any(f"{str(row['Key']).removeprefix(name).split('/')[0]}.".startswith(f"{known}.") for known in tensorrt)
    ]
    return str(max(rows, key=lambda row: (row["LastModified"], row["Key"]))["Key"]) if rows else None
