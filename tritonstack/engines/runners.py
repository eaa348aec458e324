"""Runs ``engine_step.py`` on a machine with the right GPU, here or in the environment's account; fetches its output."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.aws_session import Session
from tritonstack.engines.codebuild_runner import CodeBuildRunner
from tritonstack.engines.order import JobNetwork
from tritonstack.engines.plan import Builder
from tritonstack.engines.processing_runner import ProcessingRunner
from tritonstack.engines.remote_job import set_output
from tritonstack.engines.step_result import KEPT_LINES, EngineStoppedError, engine_failure, require_built
from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.models.bucket import ArtifactBucket, code_of
from tritonstack.models.programs import Report
from tritonstack.naming import artifact_parameter, builds_parameter


def builds_value(session: Session, *, environment: str, value: str) -> str:
    """A value of the builds stack (``engine-project-name``).

    Raises :class:`InputError` where that stack is not deployed, :class:`WorkFailedError` where SSM refuses.
    """
    return _read(session, builds_parameter(environment=environment, value=value), f"{environment}/builds")


def artifacts_value(session: Session, *, environment: str, value: str) -> str:
    """A value of the artifacts stack (``key-arn``). Raises as :func:`builds_value`."""
    return _read(session, artifact_parameter(environment=environment, value=value), f"{environment}/artifacts")


def _read(session: Session, name: str, stack: str) -> str:
    try:
        return str(session.client("ssm").get_parameter(Name=name)["Parameter"]["Value"])
    except (BotoCoreError, ClientError) as error:
        if code_of(error) != "ParameterNotFound":
            raise WorkFailedError(f"could not read the parameter {name}: {error}") from error
        allowed = f"the stack {stack}, which builds TensorRT engines" if "/builds" in stack else f"the stack {stack}"
        problem = Problem(field=name, found="no such parameter", allowed=allowed, advice=f"cdk deploy '{stack}'")
        raise InputError([problem]) from None


_LOOK_SECONDS = 0.1


@dataclass(frozen=True, kw_only=True)
class HereRunner:
    """Runs the engine step as a process of this machine.

    Attributes:
        stop: set where a running step is to be given up.
        variables: further environment variables of the step (``TRITONSTACK_TRTEXEC`` …).
        python: the interpreter.
    """

    stop: threading.Event
    variables: Mapping[str, str] = field(default_factory=dict)
    python: str = sys.executable

    def run(self, *, name: str, job: Path, output: Path, report: Report) -> None:
        """Build one engine; see ``EngineRunner``."""
        output.mkdir(parents=True, exist_ok=True)
        set_output(job, str(output.resolve()))
        last: deque[str] = deque(maxlen=KEPT_LINES)
        with subprocess.Popen(
            [self.python, "engine_step.py", "job.json"],
            cwd=job,
            env={**os.environ, **self.variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as step:
            watcher = threading.Thread(target=self._heed, args=(step,), name=f"stop {name}", daemon=True)
            watcher.start()
            try:
                for line in step.stdout or ():
                    last.append(line.rstrip())
                    report(last[-1])
            except BaseException:
                step.terminate()  # the step ends trtexec itself
                raise
        watcher.join()
        if (self.stop.is_set() and step.returncode < 0) or step.returncode > 128:
            raise EngineStoppedError
        if step.returncode:
            otherwise = f"the engine step ended with exit code {step.returncode}"
            raise engine_failure(output, otherwise=otherwise, log_tail=last)
        require_built(output, log_tail=last)

    def _heed(self, step: subprocess.Popen[str]) -> None:
        while step.poll() is None:
            if self.stop.wait(_LOOK_SECONDS):
                step.terminate()
                return


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
