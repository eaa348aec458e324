"""How an update of an endpoint moves its calls to the new fleet: SageMaker's deployment guardrails."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field

from tritonstack.config.fields import NOT_BLANK_PATTERN, SettingsModel

AlarmName = Annotated[str, Field(max_length=255, pattern=NOT_BLANK_PATTERN)]
"""A CloudWatch alarm's name (API reference, Alarm of AutoRollbackConfiguration)."""

MOST_ALARMS = 10
"""Alarms that one deployment may have (API reference, AutoRollbackConfig)."""
ALARM_MINUTES = 3
"""One bad minute of so many is an alarm: it stays one that long, so that whoever looks now and then finds it."""
SEEN_SECONDS = 120
"""A minute's figures are complete when it is over, and alarms are evaluated once a minute: no alarm fires sooner."""


class RollbackAlarms(SettingsModel):
    """From where on the new fleet is taken for a bad one. Its own calls alone count, the old fleet's never.

    Never latency: a new fleet is cold. Never 4XX: those are callers' mistakes, and a cold multi-model fleet's
    ModelNotReadyException. The defaults are ours: set them from what the endpoint's errors are on a good day.
    """

    server_error_percent: float | None = Field(
        default=1.0,
        gt=0,
        le=100,
        description="Share of a minute's calls to the new fleet that end with 5XX, percent; null: no such alarm.",
    )
    server_errors: int = Field(
        default=3, ge=1, description="And so many at least, so that one failed call of a small canary is no alarm."
    )
    model_error_percent: float | None = Field(
        default=5.0,
        gt=0,
        le=100,
        description="Share of a minute's calls that the new fleet's containers answer with an error, a caller's "
        "mistakes included, percent; null: no such alarm.",
    )
    model_errors: int = Field(default=10, ge=1, description="And so many at least.")

    @property
    def count(self) -> int:
        """How many alarms these are."""
        return sum(percent is not None for percent in (self.server_error_percent, self.model_error_percent))


class Rollout(SettingsModel):
    """How a new fleet takes the calls over: beside the old one (blue/green), or in its place batch by batch (rolling).

    Limits: API reference, DeploymentConfig and its parts (botocore's service model says the same), and developer
    guide, "Blue/Green Deployments" and "Use rolling deployments". How SageMaker rounds a percentage to instances is
    UNVERIFIED; whatever it does, a size that is accepted here is one instance or more.
    """

    kind: Literal["all-at-once", "canary", "linear", "rolling"] = Field(
        description="all-at-once: every call in one step; canary: a few first, then the rest; linear: equal steps; "
        "rolling: equal steps, and after each as many old instances end, so that no second fleet is needed."
    )
    size_percent: int | None = Field(
        default=None,
        ge=1,
        le=50,
        description="Size of the canary (at most 50), of each linear step (10 to 50) or of each rolling batch (5 to "
        "50), percent of the instances.",
    )
    size_instances: int | None = Field(
        default=None,
        ge=1,
        description="The same size as a number of instances, at most half of them. One of the two sizes is given.",
    )
    wait_seconds: int | None = Field(
        default=None,
        ge=0,
        le=3600,
        description="Canary and linear: how long the alarms are watched after each step but the last, seconds; "
        "rolling: after each batch.",
    )
    termination_wait_seconds: int = Field(
        default=0,
        ge=0,
        le=3600,
        description="How long the alarms are watched after the last step, before the old fleet ends, seconds; rolling "
        "has no such wait.",
    )
    rollback_size_percent: int | None = Field(
        default=None,
        ge=1,
        le=100,
        description="Rolling: how many instances move back at a time, percent; neither this nor "
        "rollback_size_instances: all at once.",
    )
    rollback_size_instances: int | None = Field(
        default=None, ge=1, description="Rolling: the same as a number of instances."
    )
    maximum_execution_minutes: int | None = Field(
        default=None,
        ge=10,
        le=480,
        description="After this time an unfinished update is rolled back, minutes; null: SageMaker's default.",
    )
    alarms: RollbackAlarms | None = Field(
        default_factory=RollbackAlarms,
        description="The stack's own alarms on the errors of the new fleet: one in ALARM while they are watched moves "
        "every call back. null: none.",
    )
    rollback_alarms: Annotated[tuple[AlarmName, ...], Field(strict=False, max_length=MOST_ALARMS)] = Field(
        default=(),
        description="Names of further CloudWatch alarms that do the same.",
    )
    slowest_load_seconds: float | None = Field(
        default=None,
        gt=0,
        description="Multi-model mode: the slowest load of a model that was measured (`tritonstack verify` tells it), "
        "seconds. A shorter wait is refused: it is over before the new fleet has answered.",
    )
    accept_multi_model: bool = Field(
        default=False,
        description="Multi-model mode: take a rollout, though AWS's pages disagree on whether SageMaker has it there.",
    )

    @property
    def own_alarms(self) -> RollbackAlarms | None:
        """The alarms of our own; None where there are none, or nothing is waited for and so nothing watched."""
        return self.alarms if self.alarms is not None and self.alarms.count and any(self.waits.values()) else None

    @property
    def waits(self) -> dict[str, int]:
        """The waits that this kind has and in which alarms are watched: field → seconds."""
        step, last = (
            {"wait_seconds": self.wait_seconds or 0},
            {"termination_wait_seconds": self.termination_wait_seconds},
        )
        return {"all-at-once": last, "rolling": step}.get(self.kind, {**step, **last})

    def step_instances(self, count: int) -> float:
        """How many of ``count`` instances one step turns on, not rounded; all of them in one step."""
        if self.size_instances is not None:
            return self.size_instances
        return count if self.size_percent is None else count * self.size_percent / 100

    def rollback_instances(self, count: int) -> float:
        """How many of ``count`` instances a rolling rollback moves back at a time, not rounded."""
        if self.rollback_size_instances is not None:
            return self.rollback_size_instances
        return count if self.rollback_size_percent is None else count * self.rollback_size_percent / 100

    def watched_seconds(self, count: int) -> int:
        """How long the alarms are watched in an update of ``count`` instances, seconds."""
        steps = self._steps(count)
        times = {"all-at-once": 0, "canary": 1, "linear": steps - 1, "rolling": steps}[self.kind]
        return times * (self.wait_seconds or 0) + self.termination_wait_seconds

    def _steps(self, count: int) -> int:
        """Equal steps until all instances are on. A share of an instance counts as none, which makes the most steps."""
        return math.ceil(count / max(1, int(self.step_instances(count))))
