"""The buildspec, version 0.2, as far as the local AWS runs it, and how a phase fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from tritonstack_local.emulator.cloudformation.property_schemas import schema_problems
from tritonstack_local.emulator.request_validation import data_beside


@dataclass(eq=False)
class PhaseError(Exception):
    """A phase failed: status code (``COMMAND_EXECUTION_ERROR``) and message of its context in BatchGetBuilds."""

    code: str
    message: str


@dataclass(eq=False)
class InterruptedBuildError(Exception):
    """The build was stopped or is out of time: STOPPED or TIMED_OUT, and the phase's context."""

    status: str  # becomes the phase's and the build's
    code: str
    message: str


class BuildspecError(Exception):
    """A buildspec that CodeBuild, or the local AWS, does not take; the text has every problem."""


@dataclass(frozen=True, kw_only=True)
class CommandPhase:
    """One phase's commands."""

    commands: tuple[str, ...] = ()  # run in order until one fails
    # language → version of the phase; nothing is installed
    runtimes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ArtifactFiles:
    """The files of the build's output."""

    files: tuple[str, ...]  # globs under ``base_directory``; ``**`` is any number of folders
    base_directory: str = "."  # relative to the source folder


@dataclass(frozen=True, kw_only=True)
class Buildspec:
    """A whole buildspec."""

    variables: Mapping[str, str]  # plain environment variables
    phases: Mapping[str, CommandPhase]  # all four, in their order
    artifacts: ArtifactFiles | None  # None where there is no such section


def read_buildspec(text: str) -> Buildspec:
    """Read YAML or JSON; raises BuildspecError with every problem: nothing is ignored."""
    schemas = data_beside(__file__, "buildspec.json")
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BuildspecError(f"no YAML: {error}") from error
    # An empty text is None, in which the schema has nothing to refuse.
    problems = list(schema_problems(schemas["buildspec"], {} if document is None else document, "", schemas))
    artifacts = None if problems else document.get("artifacts")
    problems += _path_problems(artifacts or {})
    if problems:
        raise BuildspecError("; ".join(problems))
    phases = {
        name: document["phases"].get(name) or {} for name in schemas["buildspec"]["properties"]["phases"]["properties"]
    }
    return Buildspec(
        variables=_texts((document.get("env") or {}).get("variables")),
        phases={
            name: CommandPhase(
                commands=tuple(map(str, phase.get("commands") or ())), runtimes=_texts(phase.get("runtime-versions"))
            )
            for name, phase in phases.items()
        },
        artifacts=artifacts
        and ArtifactFiles(
            files=tuple(map(str, artifacts["files"])), base_directory=str(artifacts.get("base-directory", "."))
        ),
    )


def _path_problems(artifacts: Mapping[str, Any]) -> Iterator[str]:
    for pattern in map(str, (*(artifacts.get("files") or ()), artifacts.get("base-directory", "."))):
        if "$" in pattern:
            yield f"/artifacts: {pattern!r}: the local AWS expands no variables in paths"
        elif ".." in pattern.split("/") or pattern.startswith("/"):
            yield f"/artifacts: {pattern!r}: a path within the source folder is needed"


def _texts(values: Mapping[str, Any] | None) -> dict[str, str]:
    found = (values or {}).items()
    return {str(name): str(one).lower() if isinstance(one, bool) else str(one) for name, one in found}


def is_inline(text: str) -> bool:
    """Whether a project's ``buildspec`` is the buildspec itself, not the path of one."""
    if text.startswith("arn:"):
        return False
    try:
        return "\n" in text or isinstance(yaml.safe_load(text), dict)
    except yaml.YAMLError:
        return True
