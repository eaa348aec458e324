"""The second step of an engine's build, on a machine with the GPU: its runs, timing caches and result."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from tritonstack.archives.bucket import ArtifactBucket
from tritonstack.archives.programs import Report
from tritonstack.engines.engine_builds import Builder
from tritonstack.engines.trtexec import JOB, TIMING_CACHE
from tritonstack.errors import WorkFailedError
from tritonstack.models.digest import sha256_of
from tritonstack.models.source_files import files_below
from tritonstack.naming import (
    engine_job_prefix,
    tensorrt_of_timing_cache,
    timing_cache_key,
    timing_caches_prefix,
)
from tritonstack.untrusted.foreign_text import parse_json

RESULT = "result.json"


class _ResultModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class Gpu(_ResultModel):
    """The GPU that built."""

    name: str
    compute_capability: str | None
    driver: str


class Trtexec(_ResultModel):
    """The trtexec that built."""

    tensorrt: str
    stand_in: bool


class FileRecord(_ResultModel):
    """A file of the output folder."""

    bytes: int = Field(ge=0)
    sha256: str


class StepResult(_ResultModel):
    """``result.json`` of a step that built."""

    outcome: Literal["built"]
    release: str
    trtexec: Trtexec
    gpu: Gpu
    durations: dict[str, float]
    image: dict[str, str]
    files: dict[str, FileRecord]  # file's name → what the step wrote


def read_result(output: Path, *, what: str) -> StepResult:
    """The result of a step that built. The step itself refuses another machine or TensorRT than was planned.

    Raises :class:`WorkFailedError` where it is not as the step writes it.
    """
    try:
        return StepResult.model_validate_json((output / RESULT).read_bytes())
    except (OSError, ValueError) as error:
        raise WorkFailedError(f"{what}: {output / RESULT} is not as the engine step writes it: {error}") from error


def take_file(result: StepResult, name: str, output: Path, target: Path) -> None:
    """Copy a file of the output. Raises :class:`WorkFailedError` unless the copy is what the step wrote."""
    try:
        shutil.copyfile(output / name, target)
        if sha256_of(target) == result.files[name].sha256:
            return
    except (OSError, KeyError) as error:
        raise WorkFailedError(f"{output / name}: the engine step left no such file: {error!r}") from error
    raise WorkFailedError(f"{output / name} is not what the engine step wrote: {target.stat().st_size:,} bytes")


_EXIT_MESSAGE = re.compile(r"FAILED in phase (?P<phase>\w+): (?P<reason>[^\n]+)")

KEPT_LINES = 20


EnginePhase = Literal["engine", "proof"]


class EngineFailedError(WorkFailedError):
    """An engine was not built: in phase ``proof`` where the plan fails the proof, else in ``engine``."""

    def __init__(
        self, *, reason: str, phase: EnginePhase = "engine", log_tail: Sequence[str] = (), link: str = ""
    ) -> None:
        """``reason``: one sentence. ``log_tail``: last lines of the log, oldest first. ``link``: of the whole log."""
        self.phase, self.reason, self.log_tail, self.link = phase, reason, tuple(log_tail), link
        lines = [reason, *(f"  {line}" for line in self.log_tail), *([f"  log: {link}"] if link else [])]
        super().__init__("\n".join(lines))


class EngineStoppedError(EngineFailedError):
    """The engine was given up: another part of the work failed, or it was interrupted."""

    def __init__(self, *, link: str = "") -> None:
        """``link``: where its log is."""
        super().__init__(reason="stopped before it was built", link=link)


def require_built(output: Path, *, link: str = "") -> None:
    """Raise :class:`EngineFailedError` unless the step built its plan."""
    if _account(output).get("outcome") != "built":
        raise engine_failure(output, otherwise=f"the job ended well, and left no {RESULT} of a plan", link=link)


def engine_failure(
    output: Path, *, otherwise: str, exit_message: str = "", log_tail: Sequence[str] = (), link: str = ""
) -> EngineFailedError:
    """The error for a missing plan. The step's own reason comes before the service's.

    ``otherwise``, ``exit_message`` and ``log_tail`` are the service's: its reason, what the container left where its
    output was not stored, and the last lines of its log. ``link``: where the whole log is.
    """
    result = _account(output)
    phase, reason = result.get("phase"), result.get("reason")
    message = _EXIT_MESSAGE.search(exit_message)
    if reason is None and message is not None:
        phase, reason = message["phase"], message["reason"]
    return EngineFailedError(
        phase="proof" if phase == "proof" else "engine",
        reason=f"{reason} (phase {phase} of the engine step)" if reason else otherwise,
        log_tail=[str(line) for line in result.get("log_tail") or log_tail][-KEPT_LINES:],
        link=link,
    )


def _account(output: Path) -> dict[str, Any]:
    """The step's own account; empty where it left none that can be read."""
    try:
        found = parse_json((output / RESULT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


# Runs.

LONGEST_NAME = 63
"""Of a Processing job (API reference: CreateProcessingJob)."""


class EngineRunner(Protocol):
    """Builds engines; several threads may use it at once."""

    def run(self, *, name: str, job: Path, output: Path, report: Report) -> None:
        """Build an engine: a run of this ``name`` (:func:`run_name`).

        ``job``: its folder, whose ``output`` the runner sets. ``output``: the folder for the step's. Raises
        :class:`EngineFailedError` where there is no plan, :class:`EngineStoppedError` where it was given up and nothing
        runs any more, :class:`WorkFailedError` where S3 refuses.
        """
        ...


def run_name(*, environment: str, model: str) -> str:
    """A name for one run, no other run's: ``<environment>-engine-<model>-<8 hexadecimal digits>``."""
    unique = secrets.token_hex(4)
    return f"{engine_job_prefix(environment)}{model}"[: LONGEST_NAME - len(unique) - 1].rstrip("-") + f"-{unique}"


# A cache only saves time: a failure of it, or of fetching and storing it, is reported and fails no build.
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
    key = timing_cache_key(gpu=gpu, tensorrt=_account(output)["trtexec"]["tensorrt"])
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
) -> Path:
    """Build one engine into ``output``, which is returned.

    A timing cache that TensorRT does not read may end trtexec: then the engine is built once more without it.

    Raises as ``EngineRunner.run``.
    """
    gpu = builder.machine.gpu
    before = fetch_timing_cache(bucket, job, gpu=gpu, report=report)
    try:
        runner.run(name=run_name(environment=environment, model=model), job=job, output=output, report=report)
    except EngineFailedError as error:
        if before is None or not _is_about_the_cache(error):
            raise
        report("TensorRT does not read the timing cache; once more without it")
        (job / TIMING_CACHE).unlink(missing_ok=True)
        before = None
        shutil.rmtree(output, ignore_errors=True)
        runner.run(name=run_name(environment=environment, model=model), job=job, output=output, report=report)
    keep_timing_cache(bucket, output, gpu=gpu, before=before, report=report)
    return output


def _is_about_the_cache(error: EngineFailedError) -> bool:
    """Whether TensorRT reports an error of the timing cache (``TimingCache``, ``timing cache``)."""
    lines = [error.reason, *(line for line in error.log_tail if "[E]" in line)]
    return any("timingcache" in line.lower().replace(" ", "") for line in lines)


def job_key(job: Path, *, builder: str) -> str:
    """Short digest of an engine's inputs: every file of its job, and the machine and image.

    Copies of a model have equal jobs, and one engine serves them all.
    """
    digest = hashlib.sha256(builder.encode())
    for name, path in files_below(job):
        with path.open("rb") as stream:
            content = hashlib.file_digest(stream, "sha256").hexdigest()
        digest.update(f"\n{name} {content}".encode())
    return digest.hexdigest()[:32]
