"""TensorRT's timing caches in the bucket: one saves time alone, so a failure of it is reported and fails no build."""

from __future__ import annotations

import json
from pathlib import Path

from tritonstack.archives.bucket import ArtifactBucket
from tritonstack.archives.programs import Report
from tritonstack.engines.trtexec import JOB, TIMING_CACHE
from tritonstack.errors import WorkFailedError
from tritonstack.models.digest import sha256_of
from tritonstack.naming import (
    tensorrt_of_timing_cache,
    timing_cache_key,
    timing_caches_prefix,
)
from tritonstack.preparation.step_result import reported_result

_LARGEST = 1 << 30
"""Bytes. A cache has some megabytes."""


def fetch_timing_cache(bucket: ArtifactBucket, job: Path, *, gpu: str, report: Report) -> str | None:
    """Put the stored cache of a GPU into a job's folder, where the job wants one; the SHA-256 of the cache.

    None where there is no cache; ``report`` is called with an unexpected reason.
    """
    described, place = json.loads((job / JOB).read_text()), job / TIMING_CACHE
    place.unlink(missing_ok=True)
    if not described["timing_cache"]:
        return None
    try:
        key = _newest(bucket, gpu=gpu, tensorrt=described["tensorrt"])
        return sha256_of(place) if key and bucket.fetch(key, place, most_bytes=_LARGEST) else None
    except WorkFailedError as error:
        report(f"no timing cache: {error}")
        place.unlink(missing_ok=True)
        return None


def keep_timing_cache(bucket: ArtifactBucket, output: Path, *, gpu: str, before: str | None, report: Report) -> None:
    """Store the cache of a finished step, where it left one, under the TensorRT that ran.

    ``before``: the SHA-256 of the cache that the step started from, or None. ``report`` is called with an unexpected
    reason why it is not stored.
    """
    cache = output / TIMING_CACHE
    if not cache.is_file() or not 0 < cache.stat().st_size <= _LARGEST:
        return
    if sha256_of(cache) == before:
        return
    key = timing_cache_key(gpu=gpu, tensorrt=reported_result(output)["trtexec"]["tensorrt"])
    try:
        bucket.put(key, cache.read_bytes())
    except WorkFailedError as error:
        report(f"the timing cache is not kept: {error}")


def _newest(bucket: ArtifactBucket, *, gpu: str, tensorrt: list[str]) -> str | None:
    """The key of the cache of one of the TensorRT versions that the image may have, the one written last."""
    rows = [
        row
        for row in bucket.keys(timing_caches_prefix(gpu=gpu))
        if any(f"{tensorrt_of_timing_cache(row['Key'])}.".startswith(f"{known}.") for known in tensorrt)
    ]
    return str(max(rows, key=lambda row: (row["LastModified"], row["Key"]))["Key"]) if rows else None
