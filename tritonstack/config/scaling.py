"""How an endpoint's number of instances follows the load: Application Auto Scaling, with its targets and schedules."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tritonstack.config.fields import SettingsModel
from tritonstack.naming import NAME_PATTERN

SECONDS_IN_A_MINUTE = 60
DEFAULT_SAFETY_FACTOR = 0.5
"""What AWS advises to start with (SageMaker developer guide, "Load testing your auto scaling configuration")."""
MOST_SCHEDULES = 10
"""All that scales an endpoint must fit into 4 KB of a function's variables (Lambda quotas)."""
LONGEST_COOLDOWN = 3600


class Schedule(SettingsModel):
    """At a time, other limits for the number of instances. They hold until another schedule changes them."""

    name: Annotated[str, Field(pattern=NAME_PATTERN, max_length=40)] = Field(description="A name of its own.")
    when: str = Field(
        min_length=1,
        max_length=200,
        description='"cron(minutes hours day-of-month month day-of-week year)" or "at(yyyy-mm-ddThh:mm:ss)".',
    )
    time_zone: str = Field(
        default="UTC", min_length=1, description="IANA name of the time zone that `when` is in (Europe/Berlin)."
    )
    minimum: int | None = Field(default=None, ge=1, description="The least number of instances from then on.")
    maximum: int | None = Field(default=None, ge=1, description="The greatest number of instances from then on.")


class Scaling(SettingsModel):
    """Target tracking: instances are added and removed so that each metric stays near its target.

    With several targets, the one that asks for the most instances wins (Application Auto Scaling user guide, "Multiple
    target tracking scaling policies").
    """

    minimum: int = Field(
        ge=1, description="The least number of instances; two or more on a production multi-model endpoint."
    )
    maximum: int = Field(ge=1, description="The greatest number of instances: what a mistake can cost.")
    invocations_per_instance: float | None = Field(
        default=None, gt=0, description="Target: calls a minute that each instance answers."
    )
    requests_per_second: float | None = Field(
        default=None,
        gt=0,
        description="The same target by a load test: what one instance answers in a second before its latency rises. "
        "The target is this x 60 x safety_factor.",
    )
    safety_factor: float | None = Field(
        default=None, gt=0, le=1, description="Share of what was measured to aim at; null: 0.5, as AWS advises."
    )
    gpu_utilization: float | None = Field(
        default=None, gt=0, le=100, description="Target: how busy each GPU is, percent."
    )
    gpu_memory: float | None = Field(
        default=None,
        gt=0,
        le=100,
        description="Single-model mode. Target: how full each GPU's memory is, percent.",
    )
    concurrency: float | None = Field(
        default=None,
        gt=0,
        description="Target: calls in progress at each instance, measured every 10 seconds, so that a burst is met "
        "sooner than by the other metrics, which come once a minute.",
    )
    scale_out_cooldown_seconds: int = Field(
        default=60, ge=0, le=LONGEST_COOLDOWN, description="Between two additions of instances, seconds."
    )
    scale_in_cooldown_seconds: int = Field(
        default=600, ge=0, le=LONGEST_COOLDOWN, description="Between two removals of instances, seconds."
    )
    accept_fast_scale_in: bool = Field(
        default=False,
        description="Take a scale-in that is as fast as scale-out or faster, though new instances start cold.",
    )
    schedules: Annotated[tuple[Schedule, ...], Field(strict=False, max_length=MOST_SCHEDULES)] = Field(
        default=(), description="Other limits at given times."
    )

    @property
    def invocations_target(self) -> float | None:
        """Calls a minute and instance, given or from what was measured; None where that is no target."""
        if self.requests_per_second is None:
            return self.invocations_per_instance
        return self.requests_per_second * SECONDS_IN_A_MINUTE * self.factor

    @property
    def factor(self) -> float:
        """The safety factor, given or by default."""
        return DEFAULT_SAFETY_FACTOR if self.safety_factor is None else self.safety_factor

    @property
    def targets(self) -> dict[str, float]:
        """The targets that are set, by the field's name; the one of calls as ``invocations_per_instance``."""
        found = {
            "invocations_per_instance": self.invocations_target,
            "gpu_utilization": self.gpu_utilization,
            "gpu_memory": self.gpu_memory,
            "concurrency": self.concurrency,
        }
        return {name: value for name, value in found.items() if value is not None}
