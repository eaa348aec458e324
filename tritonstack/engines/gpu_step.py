"""The second step of an engine's build, on a machine with the GPU: its runs, timing caches and result."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import shutil
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol, Self

from botocore.exceptions import BotoCoreError, ClientError
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tritonstack.engines.plan import Builder
from tritonstack.errors import WorkFailedError
from tritonstack.models.bucket import ArtifactBucket
from tritonstack.models.inputs import sha256_of
from tritonstack.models.programs import Report
from tritonstack.models.source import files_below
from tritonstack.naming import timing_cache_key

RESULT = "result.json"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class Gpu(_Part):
    """The GPU that built."""

    name: str
    compute_capability: str | None
    driver: str


class Trtexec(_Part):
    """The trtexec that built."""

    tensorrt: str
    stand_in: bool


class FileRecord(_Part):
    """A file of the output folder."""

    name: str
    bytes: int = Field(ge=0)
    sha256: str


class StepResult(_Part):
    """``result.json`` of a step that built."""

    outcome: Literal["built"]
    release: str
    trtexec: Trtexec
    gpu: Gpu
    durations: dict[str, float]
    image: dict[str, str]
    files: dict[str, FileRecord]


def read_result(output: Path, *, what: str) -> StepResult:
    """The result of a step that built; a reader of one of its files checks that file's digest.

    The step itself refuses another machine or TensorRT than its job was planned for.

    Raises :class:`WorkFailedError` where there is no result, the step failed, or a file is missing.
    """
    content = _content(output / RESULT, what)
    if content.get("outcome") != "built":
        raise WorkFailedError(_failure(content, what))
    try:
        result = StepResult.model_validate(content)
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise WorkFailedError(f"{what}: {output / RESULT} is not as the engine step writes it: {wrong}") from error
    for key in ("plan", "outputs"):
        if key not in result.files:
            raise WorkFailedError(f"{what}: {output / RESULT} names no {key}")
    return result


def file_of(result: StepResult, key: str, output: Path) -> Path:
    """Path of a file of the result. Raises :class:`WorkFailedError` for a name that is no plain file's there."""
    name = result.files[key].name
    path = output / name
    if name in ("", ".", "..") or "/" in name or "\\" in name or path.is_symlink() or not path.is_file():
        raise WorkFailedError(f"{output}: {RESULT} names {name!r} as its {key}, and there is no such file")
    return path


def refuse_changed(result: StepResult, key: str, path: Path) -> None:
    """Raise :class:`WorkFailedError` unless a file, or a copy of it, is what the step wrote."""
    record = result.files[key]
    size = path.stat().st_size
    if size != record.bytes or sha256_of(path) != record.sha256:
        raise WorkFailedError(
            f"{record.name} is not what the engine step wrote: {size:,} bytes, and it wrote {record.bytes:,} with "
            f"SHA-256 {record.sha256}"
        )


def _content(path: Path, what: str) -> Mapping[str, Any]:
    if not path.is_file():
        raise WorkFailedError(f"{what}: no {RESULT} in {path.parent}: the engine step did not end")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise WorkFailedError(f"{what}: {path} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise WorkFailedError(f"{what}: {path} holds no result")
    return content


def _failure(content: Mapping[str, Any], what: str) -> str:
    """Phase, reason and last log lines of a step that failed."""
    lines = content.get("log_tail")
    shown = "".join(f"\n  {line}" for line in lines[-20:]) if isinstance(lines, list) else ""
    return f"{what} failed in its phase {content.get('phase', 'unknown')}: {content.get('reason', 'no reason')}{shown}"


_EXIT_MESSAGE = re.compile(r"FAILED in phase (?P<phase>\w+): (?P<reason>[^\n]+)")

KEPT_LINES = 20


class EngineFailedError(WorkFailedError):
    """An engine was not built.

    Attributes:
        phase: ``proof`` where the plan fails the proof, else ``engine``.
        reason: one sentence.
        log_tail: the last lines of the log, oldest first; empty where there are none.
        link: where the whole log is; empty where there is none.
    """

    def __init__(self, *, reason: str, phase: str = "engine", log_tail: Sequence[str] = (), link: str = "") -> None:
        """Takes the parts of the message."""
        self.phase, self.reason, self.log_tail, self.link = phase, reason, tuple(log_tail), link
        lines = [reason, *(f"  {line}" for line in self.log_tail), *([f"  log: {link}"] if link else [])]
        super().__init__("\n".join(lines))


class EngineStoppedError(EngineFailedError):
    """The engine was given up: another part of the work failed, or it was interrupted."""

    def __init__(self, *, link: str = "") -> None:
        """``link``: where its log is."""
        super().__init__(reason="stopped before it was built", link=link)


def require_built(output: Path, *, log_tail: Sequence[str] = (), link: str = "") -> None:
    """Raise :class:`EngineFailedError` unless the step built its plan."""
    if _account(output).get("outcome") != "built":
        otherwise = f"the job ended well, and left no {RESULT} of a plan"
        raise engine_failure(output, otherwise=otherwise, log_tail=log_tail, link=link)


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
        found = json.loads((output / RESULT).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


# Runs.

LONGEST_NAME = 63
"""Of a Processing job (API reference: CreateProcessingJob)."""


class EngineRunner(Protocol):
    """Builds engines; several threads may use it at once."""

    def run(self, *, name: str, job: Path, output: Path, report: Report) -> None:
        """Build an engine: a run of this ``name``, no other run's (:func:`run_name`).

        ``job``: its folder with ``engine_step.py``, whose ``output`` the runner sets. ``output``: the folder for the
        step's.

        Raises:
            EngineFailedError: there is no plan; with its phase, the last log lines and a link. An
                ``EngineStoppedError`` where it was given up; then nothing runs any more.
            WorkFailedError: S3 refuses.
        """
        ...


def run_name(*, environment: str, model: str) -> str:
    """A name for one run, no other run's: ``<environment>-engine-<model>-<8 hexadecimal digits>``."""
    unique = secrets.token_hex(4)
    return f"{environment}-engine-{model}"[: LONGEST_NAME - len(unique) - 1].rstrip("-") + f"-{unique}"


# A cache only saves time: a failure of it, or of fetching and storing it, is reported and fails no build.
_SHA256 = "sha256"

_LARGEST = 1 << 30
"""Bytes. A cache has some megabytes."""


def fetch_timing_cache(bucket: ArtifactBucket, job: Path, *, gpu: str, report: Report) -> str | None:
    """Put the stored cache of a GPU into a job's folder, where its ``job.json`` names one; the SHA-256 of the cache.

    None where there is no cache; ``report`` is called with an unexpected reason.
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
        report(f"no timing cache: s3://{bucket.name}/{key} is not what was stored")
        place.unlink()
        return None
    return digest


def keep_timing_cache(bucket: ArtifactBucket, output: Path, *, gpu: str, before: str | None, report: Report) -> None:
    """Store the cache of a finished step, under the TensorRT that ran.

    ``before``: the SHA-256 of the cache that the step started from, or None. ``report`` is called with an unexpected
    reason why it is not stored.
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
        (job / json.loads((job / "job.json").read_text())["timing_cache"]).unlink(missing_ok=True)
        before = None
        shutil.rmtree(output, ignore_errors=True)
        runner.run(name=run_name(environment=environment, model=model), job=job, output=output, report=report)
    keep_timing_cache(bucket, output, gpu=gpu, before=before, report=report)


def _is_about_the_cache(error: EngineFailedError) -> bool:
    """Whether TensorRT reports an error of the timing cache (``TimingCache``, ``timing cache``)."""
    lines = [error.reason, *(line for line in error.log_tail if "[E]" in line)]
    return any("timingcache" in line.lower().replace(" ", "") for line in lines)


Run = Callable[[Path], Path]
"""Builds an engine into the output folder that it is given, and returns it."""


class EnginePool:
    """Builds engines on several machines at once, a thread each.

    At the end of the block running ones are stopped, by ``stop``, and awaited.
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
        """Build an engine as soon as a machine is free; its future has the output folder.

        An engine of the same ``key`` is built once: its copies get the same future.
        """
        if key not in self._engines:
            self._engines[key] = self._executor.submit(run, self._outputs / key)
        return self._engines[key]

    def stop(self) -> None:
        """Start no further engine, and give up running ones."""
        self._stop.set()
        for future in self._engines.values():
            future.cancel()


def await_one(futures: Iterable[Future[Path]]) -> None:
    """Wait until one of some futures is done; a signal may end the wait."""
    waiting = {future for future in futures if not future.done()}
    if waiting:
        wait(waiting, return_when=FIRST_COMPLETED)


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
