"""A pipeline's file (``pipeline.yaml``): where it runs, what it watches, and which environments it deploys in order."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from tritonstack.catalogue import load_catalogue
from tritonstack.config.builds import SHORTEST_MINUTES, LogDays
from tritonstack.config.environment import Environment
from tritonstack.config.fields import Boundary, EnvironmentName, RolePath, SettingsModel, choices, repeated
from tritonstack.config.loader import load_environment
from tritonstack.config.patterns import EMAIL_PATTERN, NOT_BLANK_PATTERN
from tritonstack.config.yaml_loader import read_yaml, unknown, validate, with_lines
from tritonstack.errors import InputError, Problem, collecting, refuse
from tritonstack.naming import NAME_PATTERN

PIPELINE_FILE = "pipeline.yaml"
"""The file of a project's pipeline."""
CONNECTION_PATTERN = (
    r"^arn:aws[a-z-]*:(codeconnections|codestar-connections):[a-z0-9-]+:[0-9]{12}:connection/[0-9a-f-]{36}$"
)
"""A connection's ARN; those made before March 2024 have the service's old name (developer tools console user guide:
"Connections rename")."""


class PipelineSource(SettingsModel):
    """The repository that is watched, through a connection of CodeConnections, created and confirmed by hand."""

    connection: str = Field(pattern=CONNECTION_PATTERN, description="ARN of the connection, which is AVAILABLE.")
    repository: str = Field(pattern=r"^[^/\s]+(/[^/\s]+)+$", description="owner/name, or group/subgroup/name.")
    branch: Annotated[str, Field(pattern=r"^[^\s~^:?*\[\\]+$", max_length=255)] = Field(
        default="main", description="The branch whose pushes start the pipeline."
    )


class LoadTestGate(SettingsModel):
    """The environment's own load test (load_test of its file), which fails where its gate does; it has no fields."""


class PipelineGate(SettingsModel):
    """A named check between two environments: commands in a build of their own, or the load test."""

    name: str = Field(
        pattern=NAME_PATTERN, max_length=40, description="What it checks (load-test): the action is called so."
    )
    commands: (
        Annotated[
            tuple[Annotated[str, Field(pattern=NOT_BLANK_PATTERN)], ...],
            Field(strict=False, min_length=1, max_length=50),
        ]
        | None
    ) = Field(
        default=None,
        description="Shell commands in this repository, with .envs/main made and AWS_PROFILE of the environment, whose "
        "endpoints they may call and whose records they may read. One that fails closes the gate.",
    )
    load_test: LoadTestGate | None = Field(
        default=None, description="Instead: the environment's load test, held against its gate; written as {}."
    )
    timeout_minutes: int | None = Field(
        default=None,
        ge=SHORTEST_MINUTES,
        le=480,
        description="Minutes that commands or a load test may take; null: 60 for commands, 480 for a load test.",
    )

    @property
    def minutes(self) -> int:
        """The longest that commands or a load test take."""
        if self.timeout_minutes is not None:
            return self.timeout_minutes
        return 60 if self.load_test is None else 480

    @model_validator(mode="after")
    def _one_of_two(self) -> PipelineGate:
        if (self.commands is None) == (self.load_test is None):
            raise ValueError("either commands or load_test: a gate is one of the two")
        return self


class PipelineStage(SettingsModel):
    """One environment of the pipeline: deployed, verified, and passed on through its gates."""

    environment: EnvironmentName = Field(description="An environment with a file: environments/<name>.yaml.")
    approval: bool | None = Field(
        default=None,
        description="Whether a manual approval comes before its deployment; null: where it is production.",
    )
    approval_text: str | None = Field(
        default=None,
        pattern=NOT_BLANK_PATTERN,
        max_length=1000,
        description="Text that the approver reads.",
    )
    gates: Annotated[tuple[PipelineGate, ...], Field(strict=False, max_length=20)] = Field(
        default=(), description="What must hold once it is deployed and verified, one after the other."
    )


class Pipeline(SettingsModel):
    """The file pipeline.yaml: from a push to the last environment."""

    name: str = Field(
        default="tritonstack",
        pattern=NAME_PATTERN,
        max_length=32,
        description="The pipeline's name, and how its roles are called.",
    )
    account: str = Field(pattern=r"^[0-9]{12}$", description='The account that it runs in, in quotes ("123456789012").')
    region: str = Field(description="Its region.", json_schema_extra=choices(load_catalogue().regions))
    source: PipelineSource = Field(description="What it watches.")
    stages: Annotated[tuple[PipelineStage, ...], Field(strict=False, min_length=1, max_length=10)] = Field(
        description="The environments in the order of their deployment."
    )
    email: Annotated[tuple[Annotated[str, Field(pattern=EMAIL_PATTERN)], ...], Field(strict=False, max_length=20)] = (
        Field(default=(), description="Addresses that are notified of failed executions and of pending approvals.")
    )
    log_days: LogDays = Field(default=90, description="Days that the logs of its builds are kept.")
    artifact_days: int = Field(default=90, ge=7, description="Days that its artifacts are kept; rollback needs them.")
    permissions_boundary: Boundary = None
    role_path: RolePath = None
    tags: dict[str, str] = Field(default={}, max_length=40, description="Tags for every resource of the pipeline.")


@dataclass(frozen=True, kw_only=True)
class LoadedStage:
    """One stage with the settings of its environment."""

    settings: PipelineStage  # the stage, as the pipeline's file has it
    environment: Environment  # what is deployed
    file: Path  # the environment's file

    @property
    def measured(self) -> bool:
        """Whether a gate runs the environment's load test."""
        return any(gate.load_test is not None for gate in self.settings.gates)

    @property
    def approved(self) -> bool:
        """Whether a manual approval comes before the stage."""
        return self.environment.production if self.settings.approval is None else self.settings.approval


@dataclass(frozen=True, kw_only=True)
class LoadedPipeline:
    """A pipeline with its environments."""

    settings: Pipeline  # the file's own
    stages: tuple[LoadedStage, ...]  # in the order of their deployment


def load_pipeline(path: Path, *, environments: Path, known: Mapping[Path, Environment] | None = None) -> LoadedPipeline:
    """The settings in ``path``, and those of the environments that they name, from the folder ``environments``.

    ``known``: settings of files that were read already; they are not read again.

    Raises:
        InputError: with every problem of the file and of the environments' files.
    """
    if not os.path.lexists(path):
        problem = Problem(
            file=str(path),
            found="no such file",
            allowed="a pipeline's settings",
            advice="Write one (tritonstack docs pipeline), or name another: -c pipeline=<file>.",
        )
        raise InputError([problem])
    document = read_yaml(path)
    found = validate(document, Pipeline)
    pipeline = found.value
    if pipeline is None:
        raise InputError(with_lines(found.problems, path, document=document))
    stages: list[LoadedStage] = []
    elsewhere: list[Problem] = []
    for stage in pipeline.stages:
        file = environments / f"{stage.environment}.yaml"
        if os.path.lexists(file):  # else it is reported by the pipeline's own line
            with collecting(elsewhere):
                loaded = (known or {}).get(file) or load_environment(file)
                stages.append(LoadedStage(settings=stage, environment=loaded, file=file))
    problems = [*found.problems, *_checks(pipeline, environments), *_across(pipeline, stages)]
    refuse([*with_lines(problems, path, document=document), *elsewhere])
    return LoadedPipeline(settings=pipeline, stages=tuple(stages))


def deployed_by_pipeline(path: Path) -> frozenset[str]:
    """The environments that a pipeline's file deploys; none where there is no such file.

    Raises InputError where the file is wrong; the environments' files are not read.
    """
    if not os.path.lexists(path):
        return frozenset()
    document = read_yaml(path)
    found = validate(document, Pipeline)
    if found.value is None:
        raise InputError(with_lines(found.problems, path, document=document))
    return frozenset(stage.environment for stage in found.value.stages)


def _checks(pipeline: Pipeline, environments: Path) -> Iterator[Problem]:
    """Check the file by itself."""
    yield from unknown(
        pipeline.region, load_catalogue().regions, location=("region",), kind="a region of the catalogue"
    )
    yield from repeated((stage.environment for stage in pipeline.stages), location=("stages",))
    known = sorted(path.stem for path in environments.glob("*.yaml"))
    for index, stage in enumerate(pipeline.stages):
        place = ("stages", index, "environment")
        yield from unknown(stage.environment, known, location=place, kind=f"an environment of {environments}")
        # A gate's name is that of an action, and CodePipeline refuses two of one name in a stage.
        yield from repeated((gate.name for gate in stage.gates), location=("stages", index, "gates"))


def _across(pipeline: Pipeline, stages: Sequence[LoadedStage]) -> Iterator[Problem]:
    """Check the file against the environments."""
    order = {stage.environment: index for index, stage in enumerate(pipeline.stages)}
    for stage in stages:
        index = order[stage.settings.environment]
        if stage.environment.region != pipeline.region:
            yield Problem(
                location=("stages", index, "environment"),
                found=f"{stage.environment.environment} is in {stage.environment.region}",
                allowed=f"an environment in {pipeline.region}, where the pipeline is",
                advice="Write a file for a pipeline in that region: npx cdk deploy -c pipeline=<file> pipeline.",
            )
        for number, gate in enumerate(stage.settings.gates):
            limits = stage.environment.load_test.gate if stage.environment.load_test else None
            if gate.load_test is not None and limits is None:
                yield Problem(
                    location=("stages", index, "gates", number, "load_test"),
                    found=f"a gate, and no load_test.gate in environments/{stage.environment.environment}.yaml",
                    allowed="an environment whose file states what is measured, and what the figures must not exceed",
                    advice="There: load_test: {gate: {p95_ms: …, usd_per_million: …}} (tritonstack docs load-tests).",
                )
