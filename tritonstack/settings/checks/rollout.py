"""A rollout against its own kind, and against the instances that it is to be split over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tritonstack.settings.endpoint import Endpoint
from tritonstack.settings.findings import Finding
from tritonstack.settings.rollout import Rollout
from tritonstack.settings.yaml_source import Location

LEAST_LINEAR, MOST = 10, 50
"""Percent of the instances: a canary is at most half, a linear step a tenth to half (API, TrafficRoutingConfig)."""


def check_rollout(*, endpoint: Endpoint, location: Location) -> Iterator[Finding]:
    """What is wrong with an endpoint's ``rollout``; ``location`` is the endpoint's."""
    rollout = endpoint.rollout
    if rollout is None:
        return
    place = (*location, "rollout")
    if endpoint.multi_model and not rollout.accept_multi_model:
        yield Finding(
            location=(*place, "accept_multi_model"),
            found="false on a multi-model endpoint",
            allowed="true: AWS's feature matrix lists no guardrails for multi-model endpoints, other pages do not"
            " exclude them",
            advice="Try it on an endpoint that nobody depends on, then set it; or remove rollout.",
        )
    yield from _check_alarm_names(rollout=rollout, location=(*place, "rollback_alarms"))
    if rollout.kind == "all-at-once":
        yield from _check_all_at_once(rollout=rollout, location=place)
    else:
        yield from _check_in_steps(rollout=rollout, counts=_counts(endpoint), location=place)
    yield from _check_duration(rollout=rollout, count=_counts(endpoint)[-1], location=place)


def _counts(endpoint: Endpoint) -> list[int]:
    """The smallest and the largest fleet that an update may meet."""
    scaling = endpoint.scaling
    return sorted({scaling.minimum, scaling.maximum} if scaling else {endpoint.initial_instance_count})


def _check_alarm_names(*, rollout: Rollout, location: Location) -> Iterator[Finding]:
    for name, number in Counter(rollout.rollback_alarms).items():
        if number > 1:
            yield Finding(location=location, found=f"{name} {number} times", allowed="each alarm once")
        if name.startswith("arn:"):
            yield Finding(
                location=location,
                found=name,
                allowed="an alarm's name: SageMaker finds it in the endpoint's account and region",
                advice="Take what follows :alarm: in the ARN.",
            )


def _check_all_at_once(*, rollout: Rollout, location: Location) -> Iterator[Finding]:
    for field in ("size_percent", "size_instances", "wait_seconds"):
        value = getattr(rollout, field)
        if value is not None:
            yield Finding(
                location=(*location, field),
                found=f"{value} with kind: all-at-once",
                allowed="null: there is one step, and what follows it is termination_wait_seconds",
                advice="Remove the field, or set kind: canary.",
            )
    if rollout.termination_wait_seconds and not rollout.rollback_alarms:
        yield _without_alarms(rollout, location)


def _check_in_steps(*, rollout: Rollout, counts: list[int], location: Location) -> Iterator[Finding]:
    sizes = [name for name in ("size_percent", "size_instances") if getattr(rollout, name) is not None]
    if len(sizes) != 1:
        yield Finding(
            location=(*location, "size_percent"),
            found="both size_percent and size_instances" if sizes else "neither size_percent nor size_instances",
            allowed=f"exactly one of them with kind: {rollout.kind}",
        )
    else:
        for count in counts:
            yield from _check_size(rollout=rollout, count=count, location=(*location, sizes[0]))
    if rollout.wait_seconds is None:
        yield Finding(
            location=(*location, "wait_seconds"),
            found="null",
            allowed=f"0 to 3600 seconds with kind: {rollout.kind}",
            advice="Give the alarms longer than the slowest model takes to load: the new fleet begins with none.",
        )
    if not rollout.rollback_alarms:
        yield _without_alarms(rollout, location)


def _check_size(*, rollout: Rollout, count: int, location: Location) -> Iterator[Finding]:
    """The step must be a whole instance or more, and between the limits."""
    what = "canary" if rollout.kind == "canary" else "step"
    instances = rollout.step_instances(count)
    size = f"{rollout.size_percent} % of {count}" if rollout.size_percent else f"{instances:g} of {count}"
    percent = rollout.size_percent or 100 * instances / count
    arithmetic = f"{size} instances, which is {instances:g} of an instance" if instances < 1 else f"{size} instances"
    least = LEAST_LINEAR if rollout.kind == "linear" else 0
    if count == 1:
        yield Finding(
            location=location,
            found=f"a {what} of a fleet of 1 instance",
            allowed=f"a fleet of 2 or more: a {what} is at most {MOST} % of it, and {MOST} % of 1 is half an instance",
            advice="Set initial_instance_count: 2, or kind: all-at-once.",
        )
    elif instances < 1:
        yield Finding(
            location=location,
            found=arithmetic,
            allowed=f"at least one instance: {-(-100 // count)} % or more of {count}",
            advice=f"Set size_instances: 1 ({100 / count:.0f} % of the calls), or more instances.",
        )
    elif not least <= percent <= MOST:
        low = max(1, -(-least * count // 100))
        yield Finding(
            location=location,
            found=f"{arithmetic}, which is {percent:.0f} % of the fleet",
            allowed=f"{f'{least} to ' if least else 'at most '}{MOST} % of {count} instances: {low} to {count // 2}",
        )


def _check_duration(*, rollout: Rollout, count: int, location: Location) -> Iterator[Finding]:
    """SageMaker rolls back what does not end in time, and waits alone may take longer than that."""
    if rollout.maximum_execution_minutes is None:
        return
    most, waits = rollout.maximum_execution_minutes * 60, rollout.watched_seconds(count)
    if waits >= most:
        yield Finding(
            location=(*location, "maximum_execution_minutes"),
            found=f"{rollout.maximum_execution_minutes} ({most} s), and the waits of the steps of {count} instances"
            f" together take {waits} s",
            allowed=f"more than {waits // 60} minutes: the waits, and the start of the new fleet before them",
            advice="Raise it, or shorten wait_seconds or termination_wait_seconds.",
        )


def _without_alarms(rollout: Rollout, location: Location) -> Finding:
    return Finding(
        location=(*location, "rollback_alarms"),
        found=f"no alarm with kind: {rollout.kind} and a wait",
        allowed="the names of 1 to 10 CloudWatch alarms",
        advice="Without an alarm nothing can end the wait in a rollback, and the update only takes longer.",
    )
