"""``load_test``: load tests in the cloud: what is measured, for how long, and what their figures must not exceed."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tritonstack.config.builds import SHORTEST_MINUTES, ComputeType, LogDays
from tritonstack.config.fields import BUILD_IMAGE_PATTERN, Name, SettingsModel

LEAST_USERS, MOST_USERS = 1, 3
"""Users that a phase starts with (developer guide: "Run a custom load test", ``InitialNumberOfUsers``)."""
MOST_SPAWNED = 3
"""Users a minute that join (same page, ``SpawnRate`` 0 to 3)."""
SHORTEST_PHASE, LONGEST_PHASE = 120, 3600
"""Seconds of a phase (same page, and API reference: Phase, ``DurationInSeconds``)."""
MOST_INSTANCE_TYPES = 10
"""Of a load test (same page: "real-time instances (up to 10)"; API: ``EndpointConfigurations``)."""
LONGEST_JOB = 7200
"""Seconds of an advanced job (same page, ``JobDurationInSeconds``)."""
MOST_JOBS = 99
"""Of one test: two digits in their names, which stay short."""
LONGEST_TEST = 172_800
"""Seconds of one test with Inference Recommender: its state machine's ``TimeoutSeconds``, ours."""
LONGEST_BUILD_MINUTES = 2160
"""CodeBuild's longest time-out (API reference: CreateProject)."""

JobKind = Literal["default", "advanced", "both"]
Percentile = Literal["P95", "P99"]


class TrafficPhase(SettingsModel):
    """Users that call one after the other, and how their number grows."""

    initial_users: int = Field(ge=LEAST_USERS, le=MOST_USERS, description="Users that it starts with.")
    users_per_minute: int = Field(ge=0, le=MOST_SPAWNED, description="Users that join each minute.")
    seconds: int = Field(ge=SHORTEST_PHASE, le=LONGEST_PHASE, description="How long it takes.")


class LatencyLimit(SettingsModel):
    """The model latency that ends a load test."""

    percentile: Percentile = Field(default="P95", description="Which calls are looked at.")
    milliseconds: int = Field(default=500, ge=1, description="What they may take in the model.")


PUBLISHED_PHASES = (TrafficPhase(initial_users=2, users_per_minute=2, seconds=1500),)
"""Of the published load test of BERT large: 2 users and 2 more each minute, for 25 minutes."""


class RecommenderSettings(SettingsModel):
    """Single-model endpoints: what SageMaker Inference Recommender does."""

    job: JobKind = Field(
        default="advanced",
        description="default: it recommends instance types; advanced: a load test on those named; both.",
    )
    instance_types: Annotated[tuple[str, ...], Field(strict=False, max_length=MOST_INSTANCE_TYPES)] = Field(
        default=(),
        description="What is measured, with the endpoint's GPU; empty: the endpoint's own instance type.",
    )
    phases: Annotated[tuple[TrafficPhase, ...], Field(strict=False, min_length=1)] = Field(
        default=PUBLISHED_PHASES, description="Of an advanced job, one after the other."
    )
    max_invocations: int = Field(default=30_000, ge=1, description="Invocations a minute that end an advanced job.")
    latency: LatencyLimit = Field(
        default_factory=LatencyLimit, description="Model latency that ends an advanced job; by default the published."
    )
    flat_invocations: Literal["continue", "stop"] = Field(
        default="stop", description="What an advanced job does where more users bring no more invocations."
    )
    duration_seconds: int = Field(
        default=LONGEST_JOB, ge=SHORTEST_PHASE, le=LONGEST_JOB, description="The longest that an advanced job takes."
    )
    at_once: int = Field(default=2, ge=1, le=40, description="Jobs at once, each on instances of its own.")
    poll_seconds: int = Field(
        default=120,
        ge=1,
        le=3600,
        description="Seconds between two questions after a job; many long jobs need more (limits of load tests).",
    )
    domain: Literal["COMPUTER_VISION", "NATURAL_LANGUAGE_PROCESSING", "MACHINE_LEARNING"] = Field(
        default="MACHINE_LEARNING", description="What the model package says of the model."
    )
    task: str = Field(
        default="OTHER", min_length=1, max_length=64, description="The task that the package names: FILL_MASK, OTHER, …"
    )
    framework: str = Field(
        default="PYTORCH", min_length=1, max_length=64, description="The framework that the package names."
    )
    framework_version: str | None = Field(
        default=None,
        pattern=r"^[0-9]\.[A-Za-z0-9.-]+$",
        max_length=10,
        description="The framework's version that it names; null: none.",
    )
    nearest_model: str | None = Field(
        default=None, min_length=1, max_length=128, description="A well-known model that is like it; null: not said."
    )
    payload_format: Literal["json", "binary"] = Field(
        default="json", description="Of the sample request; binary is not known to be taken by Inference Recommender."
    )

    @property
    def jobs_each(self) -> int:
        """The jobs of one configuration: one that recommends, and one for each instance type that is named."""
        recommending = self.job in ("default", "both")
        return recommending + (0 if self.job == "default" else len(self.instance_types) or 1)


class BenchBuildSettings(SettingsModel):
    """Multi-model endpoints: what ``tritonstack capacity bench`` does in CodeBuild."""

    users: Annotated[tuple[Annotated[int, Field(ge=1, le=1000)], ...], Field(strict=False, min_length=1)] = Field(
        default=(1, 2, 4, 8), description="Callers at once, one level after the other."
    )
    payload_format: Literal["binary", "json", "both"] = Field(default="binary", description="Of the requests.")
    stop_latency_ms: float | None = Field(
        default=None, gt=0, description="95th percentile after which no more callers are added; null: none."
    )
    max_seconds: float = Field(default=900, ge=60, description="The longest for one model and payload format.")
    compute_type: ComputeType = Field(default="BUILD_GENERAL1_LARGE", description="The CPU machine that calls.")
    image: str = Field(
        default="aws/codebuild/standard:7.0", pattern=BUILD_IMAGE_PATTERN, description="Its image, as builds.image."
    )
    timeout_minutes: int = Field(
        default=240, ge=SHORTEST_MINUTES, le=LONGEST_BUILD_MINUTES, description="The longest that one test takes."
    )


class GateSettings(SettingsModel):
    """What a load test's figures must not exceed; ``tritonstack capacity bench --gate`` fails where they do."""

    p95_ms: float | None = Field(
        default=None, gt=0, description="95th percentile of the latency, milliseconds; null: any."
    )
    per_minute: float | None = Field(
        default=None,
        gt=0,
        description="Invocations a minute that an instance must answer within p95_ms; null: the least load measured.",
    )
    usd_per_million: float | None = Field(
        default=None, gt=0, description="What a million invocations may cost at the best rate, USD; null: any."
    )
    unknown_price_fails: bool = Field(default=False, description="Whether a price that no source gives fails.")


class LoadTestSettings(SettingsModel):
    """Load tests in the cloud; {}: the defaults."""

    endpoints: Annotated[tuple[Name, ...], Field(strict=False, min_length=1)] | None = Field(
        default=None, description="The endpoints that may be tested; null: all."
    )
    log_days: LogDays = Field(default=90, description="Days that the logs of tests are kept.")
    recommender: RecommenderSettings = Field(
        default_factory=RecommenderSettings, description="Of single-model endpoints."
    )
    bench: BenchBuildSettings = Field(default_factory=BenchBuildSettings, description="Of multi-model endpoints.")
    gate: GateSettings | None = Field(default=None, description="What the figures must not exceed; null: nothing.")
