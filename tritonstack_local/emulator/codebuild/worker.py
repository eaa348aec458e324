"""Takes one build through its phases (CodeBuild user guide, "Build phase transitions").

A failing INSTALL or PRE_BUILD ends the build; after a failing BUILD there are still POST_BUILD and UPLOAD_ARTIFACTS.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from tritonstack_local.emulator.clock import Deadline, clock
from tritonstack_local.emulator.codebuild import machine
from tritonstack_local.emulator.codebuild.artifacts import upload_artifacts
from tritonstack_local.emulator.codebuild.build import Build, PhaseRecord
from tritonstack_local.emulator.codebuild.buildspec import (
    Buildspec,
    BuildspecError,
    CommandPhase,
    is_inline,
    read_buildspec,
)
from tritonstack_local.emulator.codebuild.failure import InterruptedBuildError, PhaseError
from tritonstack_local.emulator.codebuild.log import BuildLog
from tritonstack_local.emulator.codebuild.shell import BuildShell
from tritonstack_local.emulator.codebuild.source import download_source, read_object
from tritonstack_local.emulator.codebuild.variables import build_environment

logger = logging.getLogger("tritonstack.emulator.codebuild")


class BuildWorker:
    """Runs one build, in a thread of its own and the context of the request that started it."""

    def __init__(self, build: Build, changed: Callable[[], None]) -> None:
        """``changed`` is called whenever there is something new to show of ``build``."""
        self._build = build
        self._changed = changed
        self._log = BuildLog(build)
        self._deadline: Deadline = clock.deadline(build.plan.timeout_minutes * 60)
        self._folder = Path(tempfile.mkdtemp(prefix="codebuild-"))
        self._source = self._folder / "src"
        self._shell: BuildShell | None = None
        self._environment: dict[str, str] = {}

    def run(self) -> None:
        """From PROVISIONING to COMPLETED; never raises."""
        build = self._build
        try:
            self._end_queueing()
            self._source.mkdir()
            status = self._phases()
        except InterruptedBuildError as interruption:
            status = interruption.status
        except Exception:  # a fault of this emulator's must not leave a build that never ends
            logger.exception("build %s: a fault of the local AWS", build.id)
            status = "FAULT"
        self._finish(status)

    def _end_queueing(self) -> None:
        queued = self._build.phases[-1]
        queued.status, queued.end = "SUCCEEDED", clock.now()

    def _finish(self, status: str) -> None:
        if self._shell is not None:
            self._shell.end()
        if self._build.phases[-1].end is None:
            self._close(self._build.phases[-1], status)
        finalizing = self._build.begin("FINALIZING")
        shutil.rmtree(self._folder, ignore_errors=True)
        self._close(finalizing, "SUCCEEDED")
        self._build.begin("COMPLETED")
        self._build.end = clock.now()
        self._build.status = status
        self._changed()

    def _phases(self) -> str:
        """The build's status, SUCCEEDED or FAILED."""
        if not (self._phase("PROVISIONING", self._provision) and self._phase("DOWNLOAD_SOURCE", self._download)):
            return "FAILED"
        succeeded = True
        for name, phase in self._buildspec.phases.items():
            if self._phase(name.upper(), lambda phase=phase: self._commands(phase)):  # type: ignore[misc]
                continue
            succeeded = False
            goes_on = phase.on_failure == "CONTINUE" or (name == "build" and phase.on_failure is None)
            if not goes_on and name != "post_build":
                return "FAILED"
        uploaded = self._phase("UPLOAD_ARTIFACTS", self._upload)
        return "SUCCEEDED" if succeeded and uploaded else "FAILED"

    def _phase(self, name: str, work: Callable[[], None]) -> bool:
        """Run one phase; whether it succeeded. Raises InterruptedBuildError where the build is to end at once."""
        record = self._build.begin(name)
        self._changed()
        try:
            self._check()
            work()
        except PhaseError as error:
            self._close(record, "FAILED", error.code, error.message)
            return False
        except InterruptedBuildError as interruption:
            self._close(record, interruption.status, interruption.code, interruption.message)
            raise
        self._close(record, "SUCCEEDED")
        return True

    def _close(self, record: PhaseRecord, status: str, code: str = "", message: str = "") -> None:
        record.code, record.message, record.status, record.end = code, message, status, clock.now()
        if status != "SUCCEEDED" or record.name not in ("PROVISIONING", "FINALIZING"):
            self._log.say(f"Phase complete: {record.name} State: {status}")
            self._log.say(f"Phase context status code: {code} Message: {message}")
        self._changed()

    def _check(self) -> None:
        """Raises InterruptedBuildError where the build was stopped or has no time left."""
        if self._build.stop_requested:
            raise InterruptedBuildError("STOPPED", "BUILD_STOPPED", "Build has been stopped.")
        if self._deadline.passed:
            minutes = self._build.plan.timeout_minutes
            raise InterruptedBuildError("TIMED_OUT", "BUILD_TIMED_OUT", f"Build has timed out after {minutes} minutes.")

    def _provision(self) -> None:
        machine.say_what_stands_in(self._build.plan, self._log)
        self._environment = machine.gpu_variables(self._build.plan, self._log)

    def _download(self) -> None:
        build = self._build
        download_source(build.plan, self._source, region=build.region)
        self._buildspec = self._read_buildspec()
        machine.link_environments(build.plan, self._source, self._log)
        home = self._folder / "home"
        home.mkdir()
        variables = build_environment(build, self._buildspec, source=self._source, home=home)
        self._log.say(f"CODEBUILD_SRC_DIR={self._source}")
        self._shell = BuildShell(
            program=self._buildspec.shell,
            folder=self._folder / "tmp",
            directory=self._source,
            environment={**variables, **self._environment},
            line=self._log.line,
        )

    def _read_buildspec(self) -> Buildspec:
        try:
            return read_buildspec(self._buildspec_text())
        except BuildspecError as error:
            raise PhaseError("YAML_FILE_ERROR", str(error)) from error

    def _buildspec_text(self) -> str:
        """Inline, an S3 object's, or a file's of the source: ``buildspec.yml`` where nothing is said."""
        given = self._build.plan.source.get("buildspec") or "buildspec.yml"
        if given.startswith("arn:"):
            return read_object(given, region=self._build.region)
        if is_inline(given):
            return given
        path = (self._source / given).resolve()
        if not path.is_relative_to(self._source.resolve()):
            raise PhaseError("YAML_FILE_ERROR", f"{given}: a path within the source is needed")
        if not path.is_file():
            raise PhaseError("YAML_FILE_ERROR", f"stat {path}: no such file or directory")
        return path.read_text(encoding="utf-8", errors="replace")

    def _commands(self, phase: CommandPhase) -> None:
        """One phase's commands, and its ``finally`` whatever became of them."""
        name = self._build.phases[-1].name
        self._log.say(f"Entering phase {name}")
        machine.say_runtimes(dict(phase.runtimes), self._log)
        try:
            self._run_all(phase.commands)
        except PhaseError:
            self._run_all(phase.last)
            raise
        self._run_all(phase.last)

    def _run_all(self, commands: tuple[str, ...]) -> None:
        assert self._shell is not None  # noqa: S101  made in DOWNLOAD_SOURCE
        for command in commands:
            self._check()
            self._log.say(f"Running command {command}")
            status = self._shell.run(command, interrupted=self._interrupted, deadline=self._deadline)
            if status is None:
                self._check()
            if status != 0:
                self._shell.set("CODEBUILD_BUILD_SUCCEEDING", "0")
                self._log.say(f"Command did not exit successfully {command} exit status {status}")
                raise PhaseError(
                    "COMMAND_EXECUTION_ERROR", f"Error while executing command: {command}. Reason: exit status {status}"
                )

    def _interrupted(self) -> bool:
        return self._build.stop_requested

    def _upload(self) -> None:
        upload_artifacts(
            self._build, self._buildspec.artifacts, source=self._source, work=self._folder, between=self._check
        )
