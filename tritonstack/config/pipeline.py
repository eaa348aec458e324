"""A pipeline's file (``pipeline.yaml``): where it runs, what it watches, and which environments it deploys in order."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from tritonstack.catalogue import load_catalogue
from tritonstack.config.builds import SHORTEST_MINUTES, ComputeType, LogDays
from tritonstack.config.environment import ROLE_PATH_PATTERN
from tritonstack.config.fields import EMAIL_PATTERN, NOT_BLANK_PATTERN, EnvironmentName, Name, SettingsModel, choices
from tritonstack.naming import NAME_PATTERN

CONNECTION_PATTERN = (
    r"^arn:aws[a-z-]*:(codeconnections|codestar-connections):[a-z0-9-]+:[0-9]{12}:connection/[0-9a-f-]{36}$"
)
"""A connection's ARN; those made before March 2024 have the service's old name (developer tools console user guide:
"Connections rename")."""
REPOSITORY_PATTERN = r"^[^/\s]+(/[^/\s]+)+$"
FUNCTION_PATTERN = r"^[A-Za-z0-9_-]{1,64}$"
LONGEST_PIPELINE_NAME = 32
"""Roles are called ``<pipeline>-<environment>-prepare-build``, and IAM takes 64 characters."""
LONGEST_APPROVAL_TEXT = 1000
COMMAND_MINUTES, LOAD_TEST_MINUTES = 60, 480
"""How long a gate's build may take where its file does not say."""

Branch = Annotated[str, Field(pattern=r"^[^\s~^:?*\[\\]+$", max_length=255)]


class PipelineSource(SettingsModel):
    """The repository that is watched, through a connection of CodeConnections that somebody has made and confirmed."""

    connection: str = Field(pattern=CONNECTION_PATTERN, description="ARN of the connection, which is AVAILABLE.")
    repository: str = Field(pattern=REPOSITORY_PATTERN, description="owner/name, or group/subgroup/name.")
    branch: Branch = Field(default="main", description="The branch whose pushes start the pipeline.")
    paths: (
        Annotated[
            tuple[Annotated[str, Field(pattern=NOT_BLANK_PATTERN, max_length=255)], ...],
            Field(strict=False, min_length=1, max_length=8),
        ]
        | None
    ) = Field(default=None, description="Only a push that changes a file of these patterns starts it (model_repos/**).")
    """CodePipeline takes eight patterns (user guide: "Quotas", filters of triggers)."""


class LoadTestGate(SettingsModel):
    """The environment's own load test (load_test of its file), which fails where its gate does; {}: all of it."""

    endpoints: Annotated[tuple[Name, ...], Field(strict=False, min_length=1)] | None = Field(
        default=None, description="The endpoints that are tested; null: all that load_test of the environment names."
    )


class PipelineGate(SettingsModel):
    """A named check between two environments: commands in a build of their own, a function, or the load test."""

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
    function: str | None = Field(
        default=None,
        pattern=FUNCTION_PATTERN,
        description="Instead: a Lambda function of the pipeline's account and region, which answers with "
        "PutJobSuccessResult or PutJobFailureResult.",
    )
    load_test: LoadTestGate | None = Field(
        default=None, description="Instead: the environment's load test, held against its gate; {}: of every endpoint."
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
        return COMMAND_MINUTES if self.load_test is None else LOAD_TEST_MINUTES

    @model_validator(mode="after")
    def _one_of_three(self) -> PipelineGate:
        if [self.commands, self.function, self.load_test].count(None) != 2:
            raise ValueError("either commands or function or load_test: a gate is one of the three")
        if self.function is not None and "timeout_minutes" in self.model_fields_set:
            raise ValueError("no timeout_minutes beside function: a function has its own")
        return self


class PipelineStage(SettingsModel):
    """One environment of the pipeline: deployed, verified, and passed on through its gates."""

    environment: EnvironmentName = Field(description="An environment with a file: environments/<name>.yaml.")
    approval: bool | None = Field(
        default=None,
        description="Whether somebody must approve before anything of it is touched; null: where it is production.",
    )
    approval_text: str | None = Field(
        default=None,
        pattern=NOT_BLANK_PATTERN,
        max_length=LONGEST_APPROVAL_TEXT,
        description="What whoever approves is told.",
    )
    rollback: bool = Field(
        default=True,
        description="Whether a failed deployment or verification brings the last successful execution back.",
    )
    gates: Annotated[tuple[PipelineGate, ...], Field(strict=False, max_length=20)] = Field(
        default=(), description="What must hold once it is deployed and verified, one after the other."
    )


class PipelineMachine(SettingsModel):
    """What the pipeline's own builds run on: synthesis, preparation, verification, gates."""

    image: str = Field(
        default="aws/codebuild/standard:7.0",
        pattern=r"^aws/codebuild/[a-z0-9_.-]+:[A-Za-z0-9_.-]+$",
        description="An image of CodeBuild with Python 3.11, Node 20 or newer, and glibc 2.35 or newer.",
    )
    compute_type: ComputeType = Field(default="BUILD_GENERAL1_MEDIUM", description="Machine of synthesis and checks.")
    prepare_compute_type: ComputeType = Field(
        default="BUILD_GENERAL1_LARGE", description="Machine that exports, proves and packs, as builds.compute_type."
    )
    prepare_timeout_minutes: int = Field(
        default=480,
        ge=SHORTEST_MINUTES,
        le=2160,
        description="Minutes that the archives of one environment may take, engines included.",
    )


class Pipeline(SettingsModel):
    """The file pipeline.yaml: from a push to the last environment."""

    name: str = Field(
        default="tritonstack",
        pattern=NAME_PATTERN,
        max_length=LONGEST_PIPELINE_NAME,
        description="The pipeline's name, and how its roles are called.",
    )
    account: str = Field(pattern=r"^[0-9]{12}$", description='The account that it runs in, in quotes ("123456789012").')
    region: str = Field(description="Its region.", json_schema_extra=choices(load_catalogue().regions))
    source: PipelineSource = Field(description="What it watches.")
    stages: Annotated[tuple[PipelineStage, ...], Field(strict=False, min_length=1, max_length=10)] = Field(
        description="The environments in the order of their deployment."
    )
    mode: Literal["QUEUED", "SUPERSEDED"] = Field(
        default="QUEUED",
        description="QUEUED: one execution after the other. SUPERSEDED: a newer one overtakes one that waits.",
    )
    machine: PipelineMachine = Field(default_factory=PipelineMachine, description="What its own builds run on.")
    email: Annotated[tuple[Annotated[str, Field(pattern=EMAIL_PATTERN)], ...], Field(strict=False, max_length=20)] = (
        Field(default=(), description="Who is told of failed executions and of what waits for approval.")
    )
    log_days: LogDays = Field(default=90, description="Days that the logs of its builds are kept.")
    artifact_days: int = Field(default=90, ge=7, description="Days that its artifacts are kept; rollback needs them.")
    permissions_boundary: str | None = Field(
        default=None,
        pattern=r"^arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/\S+$",
        description="ARN of the policy that bounds every role of the pipeline's own account, or null.",
    )
    role_path: str | None = Field(
        default=None, max_length=512, pattern=ROLE_PATH_PATTERN, description="Path of those roles (/team/); null: /."
    )
    tags: dict[str, str] = Field(default={}, max_length=40, description="Tags for every resource of the pipeline.")
