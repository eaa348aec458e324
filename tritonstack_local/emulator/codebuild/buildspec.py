"""The buildspec, version 0.2, as far as the local AWS runs it, and how a phase fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml


class PhaseError(Exception):
    """A phase failed: status code (``COMMAND_EXECUTION_ERROR``) and message of its context in BatchGetBuilds."""

    def __init__(self, code: str, message: str) -> None:
        """Both are what a reader of the build sees."""
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class InterruptedBuildError(Exception):
    """The build was stopped or is out of time: STOPPED or TIMED_OUT, and the phase's context."""

    def __init__(self, status: str, code: str, message: str) -> None:
        """``status`` becomes the phase's and the build's."""
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


# What it does not run is refused by name; nothing is ignored.
PHASES = ("install", "pre_build", "build", "post_build")


class BuildspecError(Exception):
    """A buildspec that CodeBuild, or the local AWS, does not take; the text has every problem."""


@dataclass(frozen=True, kw_only=True)
class CommandPhase:
    """One phase's commands."""

    commands: tuple[str, ...] = ()  # run in order until one fails
    # language → version that the phase asks for; nothing is installed
    runtimes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ArtifactFiles:
    """Which files are the build's output."""

    files: tuple[str, ...]  # globs under ``base_directory``; ``**`` is any number of folders
    base_directory: str = "."  # relative to the source folder


@dataclass(frozen=True, kw_only=True)
class Buildspec:
    """A whole buildspec."""

    variables: Mapping[str, str] = field(default_factory=dict)  # plain environment variables
    phases: Mapping[str, CommandPhase]  # by their names in ``PHASES``
    artifacts: ArtifactFiles | None = None  # None where there is no such section


def read_buildspec(text: str) -> Buildspec:
    """Read YAML or JSON; raises BuildspecError with every problem."""
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BuildspecError(f"no YAML: {error}") from error
    reader = _Reader()
    buildspec = reader.buildspec(reader.mapping(document, "buildspec"))
    if reader.problems:
        raise BuildspecError("; ".join(reader.problems))
    return buildspec


def is_inline(text: str) -> bool:
    """Whether a project's ``buildspec`` is the buildspec itself, not the path of one."""
    if text.startswith("arn:"):
        return False
    try:
        return "\n" in text or isinstance(yaml.safe_load(text), dict)
    except yaml.YAMLError:
        return True


class _Reader:
    """Reads sections and gathers what is wrong with them."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def buildspec(self, document: dict[str, Any]) -> Buildspec:
        if str(document.get("version")) != "0.2":
            self.problems.append(f"version {document.get('version')!r}: the local AWS runs version 0.2")
        self._only(document, ("version", "env", "phases", "artifacts"), "")
        env = self.mapping(document.get("env") or {}, "env")
        self._only(env, ("variables",), "env.")
        phases = self.mapping(document.get("phases"), "phases")
        self._only(phases, PHASES, "phases.")
        artifacts = document.get("artifacts")
        return Buildspec(
            variables=self._texts(env.get("variables"), "env.variables"),
            phases={name: self._phase(phases.get(name) or {}, f"phases.{name}") for name in PHASES},
            artifacts=None if artifacts is None else self._artifacts(self.mapping(artifacts, "artifacts")),
        )

    def mapping(self, value: Any, path: str) -> dict[str, Any]:
        if isinstance(value, dict):
            return value
        self.problems.append(f"{path}: a mapping is needed")
        return {}

    def _phase(self, value: Any, path: str) -> CommandPhase:
        phase = self.mapping(value, path)
        self._only(phase, ("commands", "runtime-versions"), path + ".")
        return CommandPhase(
            commands=self._list(phase.get("commands"), path + ".commands"),
            runtimes=self._texts(phase.get("runtime-versions"), path + ".runtime-versions"),
        )

    def _artifacts(self, artifacts: dict[str, Any]) -> ArtifactFiles:
        self._only(artifacts, ("files", "base-directory"), "artifacts.")
        files = self._list(artifacts.get("files"), "artifacts.files")
        base = str(artifacts.get("base-directory", "."))
        if not files:
            self.problems.append("artifacts.files: at least one is needed")
        for pattern in (*files, base):
            if "$" in pattern:
                self.problems.append(f"artifacts: {pattern!r}: the local AWS expands no variables in paths")
            elif ".." in pattern.split("/") or pattern.startswith("/"):
                self.problems.append(f"artifacts: {pattern!r}: a path within the source folder is needed")
        return ArtifactFiles(files=files, base_directory=base)

    def _only(self, mapping: dict[str, Any], known: tuple[str, ...], path: str) -> None:
        self.problems += [f"{path}{name}: the local AWS has no such part" for name in mapping if name not in known]

    def _list(self, value: Any, path: str) -> tuple[str, ...]:
        if value is None:
            return ()
        if isinstance(value, list) and all(isinstance(one, str | int | float) for one in value):
            return tuple(str(one) for one in value)
        self.problems.append(f"{path}: a list of texts is needed")
        return ()

    def _texts(self, value: Any, path: str) -> dict[str, str]:
        return {
            str(name): str(one).lower() if isinstance(one, bool) else str(one)
            for name, one in self.mapping(value or {}, path).items()
        }
