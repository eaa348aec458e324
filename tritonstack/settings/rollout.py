"""How an update of an endpoint moves its calls to the new fleet: SageMaker's deployment guardrails."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tritonstack.settings.fields import NOT_BLANK_PATTERN, SettingsModel

AlarmName = Annotated[str, Field(max_length=255, pattern=NOT_BLANK_PATTERN)]
"""A CloudWatch alarm's name (API reference, Alarm of AutoRollbackConfiguration)."""


class Rollout(SettingsModel):
    """A blue/green deployment: the new fleet starts beside the old one, and takes its calls over in steps.

    Limits: API reference, DeploymentConfig and its parts (botocore's service model says the same), and developer
    guide, "Blue/Green Deployments". Rolling deployments are left out: how SageMaker rounds a batch, and what it takes
    on a multi-model endpoint, is not verified.
    """

    kind: Literal["all-at-once", "canary", "linear"] = Field(
        description="all-at-once: every call in one step; canary: a few first, then the rest; linear: equal steps."
    )
    size_percent: int | None = Field(
        default=None,
        ge=1,
        le=50,
        description="Size of the canary (at most 50) or of each linear step (10 to 50), percent of the instances.",
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
        description="Canary and linear: how long the alarms are watched after each step but the last, seconds.",
    )
    termination_wait_seconds: int = Field(
        default=0,
        ge=0,
        le=3600,
        description="How long the alarms are watched after the last step, before the old fleet ends, seconds.",
    )
    maximum_execution_minutes: int | None = Field(
        default=None,
        ge=10,
        le=480,
        description="After this time an unfinished update is rolled back, minutes; null: SageMaker's default.",
    )
    rollback_alarms: Annotated[tuple[AlarmName, ...], Field(strict=False, max_length=10)] = Field(
        default=(),
        description="Names of CloudWatch alarms: one in ALARM while they are watched moves every call back.",
    )
    accept_multi_model: bool = Field(
        default=False,
        description="Multi-model mode: take a rollout, though AWS's pages disagree on whether SageMaker has it there.",
    )

    def step_instances(self, count: int) -> float:
        """How many of ``count`` instances one step turns on, not rounded; all of them in one step."""
        if self.size_instances is not None:
            return self.size_instances
        return count if self.size_percent is None else count * self.size_percent / 100

    def watched_seconds(self, count: int) -> int:
        """How long the alarms are watched in an update of ``count`` instances, seconds."""
        waits = {"all-at-once": 0, "canary": 1, "linear": self._linear_steps(count) - 1}[self.kind]
        return waits * (self.wait_seconds or 0) + self.termination_wait_seconds

    def _linear_steps(self, count: int) -> int:
        """Steps until all instances are on. A share of an instance counts as none: how it is rounded is UNVERIFIED."""
        return -(-count // max(1, int(self.step_instances(count))))
