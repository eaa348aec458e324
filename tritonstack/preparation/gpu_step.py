"""The second step of an engine's build, on a machine with the GPU: its runs, timing caches and result."""

from __future__ import annotations

import hashlib
import re
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol

from tritonstack.archives.bucket import ArtifactBucket
from tritonstack.archives.programs import Report
from tritonstack.engines.engine_builds import Builder
from tritonstack.engines.trtexec import TIMING_CACHE
from tritonstack.errors import WorkFailedError
from tritonstack.models.source_files import files_below
from tritonstack.naming import (
    engine_job_prefix,
)
from tritonstack.preparation.step_result import RESULT, reported_result
from tritonstack.preparation.timing_cache import fetch_timing_cache, keep_timing_cache

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
    if reported_result(output).get("outcome") != "built":
        raise engine_failure(output, otherwise=f"the job ended well, and left no {RESULT} of a plan", link=link)


def engine_failure(
    output: Path, *, otherwise: str, exit_message: str = "", log_tail: Sequence[str] = (), link: str = ""
) -> EngineFailedError:
    """The error for a missing plan. The step's own reason comes before the service's.

    ``otherwise``, ``exit_message`` and ``log_tail`` are the service's: its reason, what the container left where its
    output was not stored, and the last lines of its log. ``link``: where the whole log is.
    """
    result = reported_result(output)
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
