"""Engines from their jobs to their outputs: several at once, with the cache of tactics that TensorRT timed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from types import TracebackType
from typing import Self

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.engines.plan import Builder
from tritonstack.engines.runners import EngineRunner, run_name
from tritonstack.engines.step_result import RESULT, EngineFailedError, EngineStoppedError
from tritonstack.errors import WorkFailedError
from tritonstack.models.bucket import ArtifactBucket
from tritonstack.models.inputs import sha256_of
from tritonstack.models.programs import Report
from tritonstack.models.source import files_below
from tritonstack.naming import timing_cache_key

# A cache only saves time. Whatever is wrong with it, or with fetching and keeping it, is reported and fails no build.
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


def build_engine(
    job: Path,
    output: Path,
    *,
    model: str,
    environment: str,
    builder: Builder,
    runner: EngineRunner,
    bucket: ArtifactBucket,
    report: Report,
) -> None:
    """Build one engine; its output is in ``output`` then.

    A timing cache that TensorRT does not read may end trtexec: then the engine is built once more without it.

    Raises as ``EngineRunner.run``.
    """
    gpu = builder.machine.gpu
    before = fetch_timing_cache(bucket, job, gpu=gpu, report=report)
    try:
        runner.run(name=run_name(environment=environment, model=model), job=job, output=output, report=report)
    except EngineStoppedError:
        raise
    except EngineFailedError as error:
        if before is None or not _is_about_the_cache(error):
            raise
        report("TensorRT does not read the timing cache; once more without it")
        drop_timing_cache(job)
        before = None
        shutil.rmtree(output, ignore_errors=True)
        runner.run(name=run_name(environment=environment, model=model), job=job, output=output, report=report)
    keep_timing_cache(bucket, output, gpu=gpu, before=before, report=report)


def _is_about_the_cache(error: EngineFailedError) -> bool:
    """Whether TensorRT's words speak of the timing cache (``TimingCache``, ``timing cache``) as an error."""
    lines = [error.reason, *(line for line in error.log_tail if "[E]" in line)]
    return any("timingcache" in line.lower().replace(" ", "") for line in lines)


Run = Callable[[Path], None]
"""Builds an engine into the output folder that it is given."""


class EnginePool:
    """Runs engines in threads, which wait for machines elsewhere.

    When the block ends, whatever still runs is stopped and awaited: ``stop`` is what the runners listen to.
    """

    def __init__(self, outputs: Path, *, limit: int, stop: threading.Event) -> None:
        """``outputs``: the folder for the engines' output folders. ``limit``: how many are built at once."""
        self._outputs, self._stop = outputs, stop
        self._executor = ThreadPoolExecutor(limit, thread_name_prefix="engine")
        self._engines: dict[str, Future[Path]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._stop.set()
        self._executor.shutdown(wait=True, cancel_futures=True)

    def submit(self, key: str, run: Run) -> Future[Path]:
        """Build an engine as soon as a machine is free; its future gives the output folder.

        An engine of the same ``key`` is built once: its copies get the same future.
        """
        if key not in self._engines:
            output = self._outputs / key
            self._engines[key] = self._executor.submit(_into, output, run)
        return self._engines[key]

    def stop(self) -> None:
        """Start no further engine, and give up those that run."""
        self._stop.set()
        for future in self._engines.values():
            future.cancel()


def _into(output: Path, run: Run) -> Path:
    run(output)
    return output


def await_one(futures: Iterable[Future[Path]]) -> None:
    """Wait until one of some futures is done; a signal may end the wait."""
    waiting = {future for future in futures if not future.done()}
    if waiting:
        wait(waiting, return_when=FIRST_COMPLETED)


def job_key(job: Path, *, builder: str) -> str:
    """What an engine is built from, as a short digest: every file of its job, and the machine and image.

    Copies of a model have equal jobs, and one engine serves them all.
    """
    digest = hashlib.sha256(builder.encode())
    for name, path in files_below(job):
        with path.open("rb") as stream:
            content = hashlib.file_digest(stream, "sha256").hexdigest()
        digest.update(f"\n{name} {content}".encode())
    return digest.hexdigest()[:32]
