"""What runs ``engine_step.py`` on a machine with the right GPU, and brings its output back."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from tritonstack.archives.bucket import ArtifactBucket, Session
from tritonstack.archives.programs import Report
from tritonstack.engines.builders import Builder
from tritonstack.engines.builds_values import artifacts_value, builds_value
from tritonstack.engines.codebuild_runner import CodeBuildRunner
from tritonstack.engines.order import JobNetwork
from tritonstack.engines.processing_runner import ProcessingRunner

LONGEST_NAME = 63
"""Of a Processing job (API reference: CreateProcessingJob)."""


class EngineRunner(Protocol):
    """Builds one engine after the other, or several at once from several threads."""

    def run(self, *, name: str, job: Path, output: Path, report: Report) -> None:
        """Build an engine.

        Args:
            name: of this run, no other run's (:func:`run_name`).
            job: the job's folder with ``engine_step.py``; where its output goes is said in it.
            output: where the step's output is put.
            report: told what the job is at.

        Raises:
            EngineFailedError: there is no plan; with its phase, the last log lines and a link. An
                ``EngineStoppedError`` where it was given up; then nothing runs any more.
            WorkFailedError: S3 refuses.
        """
        ...


def runner_for(
    builder: Builder,
    *,
    environment: str,
    session: Session,
    bucket: ArtifactBucket,
    network: JobNetwork | None = None,
    tags: Mapping[str, str] | None = None,
    stop: threading.Event | None = None,
) -> EngineRunner:
    """What runs the step for a builder. ``tags`` are of jobs of Processing; a build of CodeBuild has none of its own.

    Raises :class:`InputError` where the environment has no builds stack, :class:`WorkFailedError` where SSM refuses.
    """
    stop = stop or threading.Event()
    if builder.kind == "codebuild":
        project = builds_value(session, environment=environment, value="engine-project-name")
        return CodeBuildRunner(builder=builder, session=session, bucket=bucket, project=project, stop=stop)
    return ProcessingRunner(
        builder=builder,
        session=session,
        bucket=bucket,
        role_arn=builds_value(session, environment=environment, value="processing-role-arn"),
        key_arn=artifacts_value(session, environment=environment, value="key-arn"),
        network=network,
        tags=tags or {},
        stop=stop,
    )


def run_name(*, environment: str, model: str) -> str:
    """A name for one run, no other run's: ``<environment>-engine-<model>-<8 hexadecimal digits>``."""
    unique = secrets.token_hex(4)
    return f"{environment}-engine-{model}"[: LONGEST_NAME - len(unique) - 1].rstrip("-") + f"-{unique}"
