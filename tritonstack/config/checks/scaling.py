"""An endpoint's scaling against itself, its mode and its environment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tritonstack.config.checks.site import Site
from tritonstack.config.endpoint import PRODUCTION_INSTANCES, Endpoint
from tritonstack.config.findings import Finding
from tritonstack.config.scaling import SECONDS_IN_A_MINUTE, Scaling, Schedule
from tritonstack.config.schedule_times import is_time_zone, time_problems
from tritonstack.config.yaml_source import Location


def check_scaling(*, endpoint: Endpoint, location: Location, site: Site) -> Iterator[Finding]:
    """What is wrong with an endpoint's ``scaling``; ``location`` is the endpoint's."""
    scaling = endpoint.scaling
    if scaling is None:
        return
    place = (*location, "scaling")
    production = bool(site.production) and endpoint.multi_model
    if "initial_instance_count" in endpoint.model_fields_set:  # else it is the minimum
        yield from _check_initial(endpoint=endpoint, scaling=scaling, location=location)
    if endpoint.multi_model and scaling.gpu_memory is not None:
        yield Finding(
            location=(*place, "gpu_memory"),
            found=f"{scaling.gpu_memory:g} on a multi-model endpoint",
            allowed="null: there memory fills by design, for loaded models stay until another needs their place; it "
            "says nothing about the load, and would keep every instance for ever",
            advice="Scale on gpu_utilization and invocations_per_instance.",
        )
    yield from check_limits_and_targets(scaling, location=place, production=production)


def check_limits_and_targets(scaling: Scaling, *, location: Location, production: bool) -> Iterator[Finding]:
    """What is wrong with a ``scaling`` whatever endpoint it is of; ``location`` is its own."""
    for check in limits_and_targets(scaling, location=location, production=production):
        yield from check


def limits_and_targets(scaling: Scaling, *, location: Location, production: bool) -> tuple[Iterator[Finding], ...]:
    """The same check by check: none needs what another one looks at."""
    return (
        _check_bounds(scaling=scaling, location=location, production=production),
        _check_targets(scaling=scaling, location=location),
        _check_cooldowns(scaling=scaling, location=location),
        _check_schedules(scaling=scaling, location=(*location, "schedules"), production=production),
    )


def _check_bounds(*, scaling: Scaling, location: Location, production: bool) -> Iterator[Finding]:
    if scaling.maximum < scaling.minimum:
        yield Finding(
            location=(*location, "maximum"),
            found=f"{scaling.maximum}, less than the minimum of {scaling.minimum}",
            allowed=f"{scaling.minimum} or more",
        )
    if production and scaling.minimum < PRODUCTION_INSTANCES:
        yield Finding(
            location=(*location, "minimum"),
            found=str(scaling.minimum),
            allowed=f"{PRODUCTION_INSTANCES} or more on a production multi-model endpoint",
            advice="With one instance, every model is gone while that instance is replaced.",
        )


def _check_initial(*, endpoint: Endpoint, scaling: Scaling, location: Location) -> Iterator[Finding]:
    count = endpoint.initial_instance_count
    if scaling.minimum <= scaling.maximum and not scaling.minimum <= count <= scaling.maximum:
        side = "below scaling.minimum" if count < scaling.minimum else "above scaling.maximum"
        yield Finding(
            location=(*location, "initial_instance_count"),
            found=f"{count}, {side}",
            allowed=f"{scaling.minimum} to {scaling.maximum}, the limits of scaling",
            advice="Remove the field to start with the minimum.",
        )


def _check_targets(*, scaling: Scaling, location: Location) -> Iterator[Finding]:
    if scaling.invocations_per_instance is not None and scaling.requests_per_second is not None:
        target = scaling.requests_per_second * SECONDS_IN_A_MINUTE * scaling.factor
        yield Finding(
            location=(*location, "requests_per_second"),
            found=f"{scaling.requests_per_second:g} beside invocations_per_instance: "
            f"{scaling.invocations_per_instance:g}",
            allowed="one of the two, for they are the same target",
            advice=f"{scaling.requests_per_second:g} x {SECONDS_IN_A_MINUTE} x {scaling.factor:g} would be "
            f"{target:g} calls a minute.",
        )
    if scaling.safety_factor is not None and scaling.requests_per_second is None:
        yield Finding(
            location=(*location, "safety_factor"),
            found=f"{scaling.safety_factor:g} without requests_per_second",
            allowed="null: it is multiplied with what was measured",
            advice="Set requests_per_second, or remove the field.",
        )
    if scaling.targets or scaling.schedules:
        return
    yield Finding(
        location=location,
        found="limits, but nothing that changes the number of instances",
        allowed="at least one of invocations_per_instance, requests_per_second, gpu_utilization, gpu_memory, "
        "concurrency, schedules",
    )


def _check_cooldowns(*, scaling: Scaling, location: Location) -> Iterator[Finding]:
    out, in_ = scaling.scale_out_cooldown_seconds, scaling.scale_in_cooldown_seconds
    if out >= in_ and not scaling.accept_fast_scale_in:
        yield Finding(
            location=(*location, "scale_in_cooldown_seconds"),
            found=f"{in_} s with scale_out_cooldown_seconds of {out} s",
            allowed=f"more than {out}: instances are added faster than removed",
            advice="A new instance starts with no model loaded, so that one too many is cheaper than one too few. If "
            "you mean it, set accept_fast_scale_in: true.",
        )


def _check_schedules(*, scaling: Scaling, location: Location, production: bool) -> Iterator[Finding]:
    for name, count in Counter(schedule.name for schedule in scaling.schedules).items():
        if count > 1:
            yield Finding(location=location, found=f"{name} {count} times", allowed="each name once")
    for index, schedule in enumerate(scaling.schedules):
        place = (*location, index)
        for problem in time_problems(schedule.when):
            yield Finding(
                location=(*place, "when"),
                found=problem,
                allowed='"cron(0 7 ? * MON-FRI *)" or "at(2026-12-24T18:00:00)"',
            )
        if not is_time_zone(schedule.time_zone):
            yield Finding(
                location=(*place, "time_zone"),
                found=schedule.time_zone,
                allowed="an IANA name: UTC, Europe/Berlin, America/New_York",
            )
        yield from _check_limits(schedule=schedule, scaling=scaling, location=place, production=production)


def _check_limits(*, schedule: Schedule, scaling: Scaling, location: Location, production: bool) -> Iterator[Finding]:
    if schedule.minimum is None and schedule.maximum is None:
        yield Finding(location=location, found="neither minimum nor maximum", allowed="one of them or both")
        return
    least = scaling.minimum if schedule.minimum is None else schedule.minimum
    most = scaling.maximum if schedule.maximum is None else schedule.maximum
    if most < least and scaling.minimum <= scaling.maximum:
        yield Finding(
            location=location,
            found=f"a maximum of {most} with a minimum of {least}",
            allowed=f"a maximum of {least} or more; what a schedule leaves out is that of scaling: "
            f"{scaling.minimum} to {scaling.maximum}",
        )
    if production and least < PRODUCTION_INSTANCES and schedule.minimum is not None:
        yield Finding(
            location=(*location, "minimum"),
            found=str(schedule.minimum),
            allowed=f"{PRODUCTION_INSTANCES} or more on a production multi-model endpoint",
        )
