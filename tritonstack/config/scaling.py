"""``scaling``: how the number of instances follows the load (Application Auto Scaling): targets, limits, schedules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from tritonstack.config.fields import SettingsModel, Site, repeated
from tritonstack.config.patterns import TIME_PATTERN
from tritonstack.errors import Location, Problem
from tritonstack.naming import NAME_PATTERN

if TYPE_CHECKING:
    from tritonstack.config.endpoint import EndpointSettings


SECONDS_IN_A_MINUTE = 60
DEFAULT_SAFETY_FACTOR = 0.5
"""What AWS advises to start with (SageMaker developer guide, "Load testing your auto scaling configuration")."""
MOST_TARGETS = 4
"""With the longest schedules: what the scaling function is to put is in its variables, which have 4,096 bytes."""
PRODUCTION_INSTANCES = 2
"""AWS advises two instances or more behind a multi-model endpoint (SageMaker developer guide)."""


class Schedule(SettingsModel):
    """At a time, other limits for the number of instances. They hold until another schedule changes them."""

    name: Annotated[str, Field(pattern=NAME_PATTERN, max_length=40)] = Field(description="A name of its own.")
    when: str = Field(
        pattern=TIME_PATTERN,
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

    With several targets, the one that needs the most instances wins (Application Auto Scaling user guide, "Multiple
    target tracking scaling policies").
    """

    minimum: int = Field(
        ge=1, description="The least number of instances; two or more on a production multi-model endpoint."
    )
    maximum: int = Field(ge=1, description="The greatest number of instances: what a mistake can cost.")
    invocations_per_instance: float | None = Field(
        default=None, gt=0, description="Target: invocations a minute that each instance serves."
    )
    requests_per_second: float | None = Field(
        default=None,
        gt=0,
        description="The same target by a load test: the requests a second of one instance before its latency rises. "
        "The target is this x 60 x safety_factor.",
    )
    safety_factor: float | None = Field(
        default=None, gt=0, le=1, description="Share of what was measured to aim at; null: 0.5, as AWS advises."
    )
    gpu_utilization: float | None = Field(
        default=None, gt=0, le=100, description="Target: how busy each GPU is, percent."
    )
    cpu_utilization: float | None = Field(
        default=None,
        gt=0,
        le=100,
        description="Target: how busy each vCPU is, percent; for models that compute on the CPU (preprocessing, "
        "KIND_CPU), whose GPU is idle when the instance is at its limit.",
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
        description="Target: requests in progress at each instance, measured every 10 seconds, so that a burst is met "
        "sooner than by the other metrics, which come once a minute.",
    )
    scale_out_cooldown_seconds: int = Field(
        default=60, ge=0, le=3600, description="Between two additions of instances, seconds."
    )
    scale_in_cooldown_seconds: int = Field(
        default=600, ge=0, le=3600, description="Between two removals of instances, seconds."
    )
    schedules: Annotated[tuple[Schedule, ...], Field(strict=False, max_length=10)] = Field(
        default=(), description="Other limits at given times."
    )

    @property
    def invocations_target(self) -> float | None:
        """Requests a minute and instance, given or from a measurement; None without such a target."""
        if self.requests_per_second is None:
            return self.invocations_per_instance
        return self.requests_per_second * SECONDS_IN_A_MINUTE * self.factor

    @property
    def factor(self) -> float:
        """The safety factor, given or by default."""
        return DEFAULT_SAFETY_FACTOR if self.safety_factor is None else self.safety_factor

    @property
    def targets(self) -> dict[str, float]:
        """The targets that are set, by the field's name; the one of requests as ``invocations_per_instance``."""
        found = {
            "invocations_per_instance": self.invocations_target,
            "gpu_utilization": self.gpu_utilization,
            "cpu_utilization": self.cpu_utilization,
            "gpu_memory": self.gpu_memory,
            "concurrency": self.concurrency,
        }
        return {name: value for name, value in found.items() if value is not None}


def check_scaling(*, endpoint: EndpointSettings, location: Location, site: Site) -> Iterator[Problem]:
    """Check an endpoint's ``scaling``; ``location`` is the endpoint's."""
    scaling = endpoint.scaling
    if scaling is None:
        return
    place = (*location, "scaling")
    production = site.production and endpoint.multi_model
    count, least, most = endpoint.initial_instance_count, scaling.minimum, scaling.maximum
    is_set = "initial_instance_count" in endpoint.model_fields_set  # else it is the minimum
    if is_set and least <= most and not least <= count <= most:
        yield Problem(
            location=(*location, "initial_instance_count"),
            found=f"{count}, {'below scaling.minimum' if count < least else 'above scaling.maximum'}",
            allowed=f"{least} to {most}, the limits of scaling",
            advice="Remove the field to start with the minimum.",
        )
    if endpoint.multi_model and scaling.gpu_memory is not None:
        yield Problem(
            location=(*place, "gpu_memory"),
            found=f"{scaling.gpu_memory:g} on a multi-model endpoint",
            allowed="null: there memory fills by design, for loaded models stay until another needs their place; it "
            "says nothing about the load, and would keep every instance for ever",
            advice="Scale on gpu_utilization and invocations_per_instance.",
        )
    yield from limits_and_targets(scaling, location=place, production=production)


def limits_and_targets(scaling: Scaling, *, location: Location, production: bool) -> Iterator[Problem]:
    """Check a ``scaling`` without its endpoint; ``location`` is its own."""
    if scaling.maximum < scaling.minimum:
        yield Problem(
            location=(*location, "maximum"),
            found=f"{scaling.maximum}, less than the minimum of {scaling.minimum}",
            allowed=f"{scaling.minimum} or more",
        )
    if production and scaling.minimum < PRODUCTION_INSTANCES:
        yield Problem(
            location=(*location, "minimum"),
            found=str(scaling.minimum),
            allowed=f"{PRODUCTION_INSTANCES} or more on a production multi-model endpoint",
            advice="With one instance, every model is gone while that instance is replaced.",
        )
    yield from _check_targets(scaling=scaling, location=location)
    place = (*location, "schedules")
    yield from repeated((schedule.name for schedule in scaling.schedules), location=place)
    for index, schedule in enumerate(scaling.schedules):
        yield from _check_limits(schedule=schedule, scaling=scaling, location=(*place, index), production=production)


def _check_targets(*, scaling: Scaling, location: Location) -> Iterator[Problem]:
    given, measured = scaling.invocations_per_instance, scaling.requests_per_second
    if given is not None and measured is not None:
        yield Problem(
            location=(*location, "requests_per_second"),
            found=f"{measured:g} together with invocations_per_instance: {given:g}",
            allowed="one of the two, for they are the same target",
            advice=f"{measured:g} x {SECONDS_IN_A_MINUTE} x {scaling.factor:g} would be "
            f"{scaling.invocations_target:g} requests a minute.",
        )
    if scaling.safety_factor is not None and measured is None:
        yield Problem(
            location=(*location, "safety_factor"),
            found=f"{scaling.safety_factor:g} without requests_per_second",
            allowed="null: it is multiplied with what was measured",
            advice="Or set requests_per_second.",
        )
    if len(scaling.targets) > MOST_TARGETS:
        allowed = f"at most {MOST_TARGETS}; with several the one that asks for the most instances wins"
        yield Problem(location=location, found=f"{len(scaling.targets)} targets", allowed=allowed)
    if scaling.targets or scaling.schedules:
        return
    yield Problem(
        location=location,
        found="limits, but nothing that changes the number of instances",
        allowed="at least one of invocations_per_instance, requests_per_second, gpu_utilization, "
        "cpu_utilization, gpu_memory, concurrency, schedules",
    )


def _check_limits(*, schedule: Schedule, scaling: Scaling, location: Location, production: bool) -> Iterator[Problem]:
    if schedule.minimum is None and schedule.maximum is None:
        yield Problem(location=location, found="neither minimum nor maximum", allowed="one of them or both")
        return
    least = scaling.minimum if schedule.minimum is None else schedule.minimum
    most = scaling.maximum if schedule.maximum is None else schedule.maximum
    if most < least and scaling.minimum <= scaling.maximum:
        yield Problem(
            location=location,
            found=f"a maximum of {most} with a minimum of {least}",
            allowed=f"a maximum of {least} or more; what a schedule leaves out is that of scaling: "
            f"{scaling.minimum} to {scaling.maximum}",
        )
    if production and least < PRODUCTION_INSTANCES and schedule.minimum is not None:
        yield Problem(
            location=(*location, "minimum"),
            found=str(schedule.minimum),
            allowed=f"{PRODUCTION_INSTANCES} or more on a production multi-model endpoint",
        )
