"""A rollout against its own kind, and against the instances that it is to be split over."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from tritonstack.config.endpoint import Endpoint
from tritonstack.config.findings import Finding
from tritonstack.config.rollout import MOST_ALARMS, SEEN_SECONDS, Rollout
from tritonstack.config.yaml_source import Location

LEAST = {"canary": 0, "linear": 10, "rolling": 5}
MOST = 50
"""Percent of the instances that one step may be (API reference, TrafficRoutingConfig and RollingUpdatePolicy)."""
NAMES = {"canary": "canary", "linear": "step", "rolling": "batch"}
ROLLBACK_SIZES = ("rollback_size_percent", "rollback_size_instances")


def check_rollout(*, endpoint: Endpoint, location: Location) -> Iterator[Finding]:
    """What is wrong with an endpoint's ``rollout``; ``location`` is the endpoint's."""
    rollout = endpoint.rollout
    if rollout is None:
        return
    place, counts = (*location, "rollout"), _counts(endpoint)
    if endpoint.multi_model and not rollout.accept_multi_model:
        yield Finding(
            location=(*place, "accept_multi_model"),
            found="false on a multi-model endpoint",
            allowed="true: AWS's feature matrix lists no guardrails for multi-model endpoints, other pages do not"
            " exclude them",
            advice="Try it on an endpoint that nobody depends on, then set it; or remove rollout.",
        )
    yield from _check_alarm_names(rollout=rollout, location=place)
    if rollout.kind == "all-at-once":
        yield from _check_all_at_once(rollout=rollout, location=place)
    else:
        yield from _check_in_steps(rollout=rollout, counts=counts, location=place)
    yield from _check_rolling(rollout=rollout, counts=counts, location=place)
    yield from _check_watched(rollout=rollout, location=place)
    yield from _check_slowest_load(endpoint=endpoint, rollout=rollout, location=place)
    yield from _check_duration(rollout=rollout, counts=counts, location=place)


def _counts(endpoint: Endpoint) -> range:
    """The fleets that an update may meet: as many as there are at the start, and as many as scaling may make of it."""
    scaling = endpoint.scaling
    if scaling is None:
        return range(endpoint.initial_instance_count, endpoint.initial_instance_count + 1)
    limits = [scaling.minimum, scaling.maximum, endpoint.initial_instance_count]
    limits += [limit for each in scaling.schedules for limit in (each.minimum, each.maximum) if limit is not None]
    return range(min(limits), max(limits) + 1)


def _check_alarm_names(*, rollout: Rollout, location: Location) -> Iterator[Finding]:
    place = (*location, "rollback_alarms")
    for name, number in Counter(rollout.rollback_alarms).items():
        if number > 1:
            yield Finding(location=place, found=f"{name} {number} times", allowed="each alarm once")
        if name.startswith("arn:"):
            yield Finding(
                location=place,
                found=name,
                allowed="an alarm's name: SageMaker finds it in the endpoint's account and region",
                advice="Take what follows :alarm: in the ARN.",
            )
    own, named = rollout.own_alarms.count if rollout.own_alarms else 0, len(rollout.rollback_alarms)
    if own + named > MOST_ALARMS:
        yield Finding(
            location=place,
            found=f"{named} names, and {own} alarms of the stack's own: {own + named}",
            allowed=f"{MOST_ALARMS} alarms together, so {MOST_ALARMS - own} names",
            advice="Join some in a composite alarm, or set alarms: null.",
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
    if rollout.termination_wait_seconds:
        yield from _check_alarms(rollout, location)


def _check_in_steps(*, rollout: Rollout, counts: range, location: Location) -> Iterator[Finding]:
    sizes = [name for name in ("size_percent", "size_instances") if getattr(rollout, name) is not None]
    if len(sizes) != 1:
        yield Finding(
            location=(*location, "size_percent"),
            found="both size_percent and size_instances" if sizes else "neither size_percent nor size_instances",
            allowed=f"exactly one of them with kind: {rollout.kind}",
        )
    else:
        # What is too large for the smallest fleet, or too small for the largest, is that for no other one alone.
        for count in sorted({counts[0], counts[-1]}):
            yield from _check_size(rollout=rollout, count=count, counts=counts, location=(*location, sizes[0]))
    if rollout.wait_seconds is None:
        yield Finding(
            location=(*location, "wait_seconds"),
            found="null",
            allowed=f"0 to 3600 seconds with kind: {rollout.kind}",
            advice="Give the alarms longer than the slowest model takes to load: the new fleet begins with none.",
        )
    yield from _check_alarms(rollout, location)


def _check_size(*, rollout: Rollout, count: int, counts: range, location: Location) -> Iterator[Finding]:
    """The step must be a whole instance or more, and between the limits."""
    what, least = NAMES[rollout.kind], LEAST[rollout.kind]
    instances = rollout.step_instances(count)
    size = f"{rollout.size_percent} % of {count}" if rollout.size_percent else f"{instances:g} of {count}"
    percent = rollout.size_percent or 100 * instances / count
    arithmetic = f"{size} instances, which is {instances:g} of an instance" if instances < 1 else f"{size} instances"
    if count == 1:
        yield Finding(
            location=location,
            found=f"a {what} of a fleet of 1 instance{_fleet(counts)}",
            allowed=f"a fleet of 2 or more: a {what} is at most {MOST} % of it, and {MOST} % of 1 is half an instance",
            advice="Set initial_instance_count: 2, or kind: all-at-once."
            if len(counts) == 1
            else "Set scaling.minimum: 2 (and each schedule's), or kind: all-at-once.",
        )
    elif instances < 1:
        yield Finding(
            location=location,
            found=f"{arithmetic}{_fleet(counts)}",
            allowed=f"at least one instance: {-(-100 // count)} % or more of {count}",
            advice=f"Set size_instances: 1 ({100 / count:.0f} % of the calls), or more instances.",
        )
    elif not least <= percent <= MOST:
        low = max(1, -(-least * count // 100))
        yield Finding(
            location=location,
            found=f"{arithmetic}, which is {percent:.0f} % of the fleet{_fleet(counts)}",
            allowed=f"{f'{least} to ' if least else 'at most '}{MOST} % of {count} instances: {low} to {count // 2}",
            advice="" if len(counts) == 1 else _sizes_of_all(counts, least=least),
        )


def _fleet(counts: range) -> str:
    """That the count is one of a range, where it is."""
    return "" if len(counts) == 1 else f"; scaling leaves it between {counts[0]} and {counts[-1]} instances"


def _sizes_of_all(counts: range, *, least: int) -> str:
    """Which sizes every fleet of the range takes."""
    low, high = max(1, -(-least * counts[-1] // 100)), counts[0] // 2
    lowest = max(least, math.ceil(100 / counts[0]))
    if low <= high:
        return f"Set size_instances from {low} to {high}, or size_percent from {lowest} to {MOST}."
    return (
        f"No number of instances suits them all ({low} or more for {counts[-1]}, {high} or fewer for {counts[0]}): set "
        f"size_percent from {lowest} to {MOST}."
    )


def _check_rolling(*, rollout: Rollout, counts: range, location: Location) -> Iterator[Finding]:
    """What rolling alone has, and what it has not (API reference, RollingUpdatePolicy)."""
    sizes = [name for name in ROLLBACK_SIZES if getattr(rollout, name) is not None]
    if rollout.kind != "rolling":
        for name in sizes:
            yield Finding(
                location=(*location, name),
                found=f"{getattr(rollout, name)} with kind: {rollout.kind}",
                allowed="null: the old fleet is whole until the end, and takes every call back at once",
                advice="Remove the field, or set kind: rolling.",
            )
        return
    if rollout.termination_wait_seconds:
        yield Finding(
            location=(*location, "termination_wait_seconds"),
            found=f"{rollout.termination_wait_seconds} with kind: rolling",
            allowed="0: old instances end after each batch, and wait_seconds follows the last one too",
            advice="Remove the field.",
        )
    if len(sizes) == 2:
        yield Finding(
            location=(*location, sizes[0]),
            found=f"both {sizes[0]} and {sizes[1]}",
            allowed="one of them, or none: all at once",
        )
        return
    count = counts[0]
    instances = rollout.rollback_instances(count)
    if not 1 <= instances <= count:
        part = rollout.rollback_size_percent
        found = (
            f"{instances:g} of {count} instances" if part is None else f"{part} % of {count}: {instances:g} instances"
        )
        yield Finding(
            location=(*location, sizes[0]),
            found=f"{found}{_fleet(counts)}",
            allowed=f"1 to {count} instances, or {math.ceil(100 / count)} to 100 %",
        )


def _check_watched(*, rollout: Rollout, location: Location) -> Iterator[Finding]:
    """An alarm of our own that cannot fire before the wait is over only looks as if it guarded something."""
    if rollout.alarms is None or not rollout.alarms.count:
        return
    for field, seconds in rollout.waits.items():
        given = field == "termination_wait_seconds" or rollout.wait_seconds is not None
        needed = field == "wait_seconds" or seconds > 0  # without a wait before the old fleet ends nothing is watched
        if given and needed and seconds < SEEN_SECONDS:
            yield Finding(
                location=(*location, field),
                found=f"{seconds} seconds",
                allowed=f"{SEEN_SECONDS} seconds or more, as long as the stack has alarms of its own: up to 60 until a"
                " minute's figures are complete, and up to 60 until CloudWatch evaluates them",
                advice="Wait longer, or set alarms: null.",
            )


def _check_slowest_load(*, endpoint: Endpoint, rollout: Rollout, location: Location) -> Iterator[Finding]:
    """The calls of a cold fleet that wait for their models must be answered before the alarms are believed."""
    slowest = rollout.slowest_load_seconds
    if slowest is None:
        return
    if not endpoint.multi_model:
        yield Finding(
            location=(*location, "slowest_load_seconds"),
            found=f"{slowest:g} on a single-model endpoint",
            allowed="null: its one model is loaded before an instance takes calls",
            advice="Remove the field.",
        )
        return
    field = "termination_wait_seconds" if rollout.kind == "all-at-once" else "wait_seconds"
    wait = getattr(rollout, field)
    watches = wait is not None and (field == "wait_seconds" or wait > 0)
    if watches and wait < slowest:
        yield Finding(
            location=(*location, field),
            found=f"{wait} seconds, and the slowest load took {slowest:g}: the wait is over {slowest - wait:g} seconds"
            " before that model has answered its first call",
            allowed=f"{math.ceil(slowest)} seconds or more (slowest_load_seconds)",
            advice="Wait longer, or make the load faster and measure again: tritonstack verify.",
        )


def _check_duration(*, rollout: Rollout, counts: range, location: Location) -> Iterator[Finding]:
    """SageMaker rolls back what does not end in time, and waits alone may take longer than that."""
    if rollout.maximum_execution_minutes is None:
        return
    count = max(counts, key=rollout.watched_seconds)
    most, waits = rollout.maximum_execution_minutes * 60, rollout.watched_seconds(count)
    if waits >= most:
        yield Finding(
            location=(*location, "maximum_execution_minutes"),
            found=f"{rollout.maximum_execution_minutes} ({most} s), and the waits of the steps of {count} instances"
            f" together take {waits} s{_fleet(counts)}",
            allowed=f"more than {waits // 60} minutes: the waits, and the start of the new fleet before them",
            advice="Raise it, or shorten wait_seconds or termination_wait_seconds.",
        )


def _check_alarms(rollout: Rollout, location: Location) -> Iterator[Finding]:
    """A wait needs an alarm that can end it in a rollback."""
    own = rollout.alarms is not None and rollout.alarms.count
    if own or rollout.rollback_alarms:
        return
    yield Finding(
        location=(*location, "rollback_alarms"),
        found=f"no alarm with kind: {rollout.kind} and a wait, and none of the stack's own",
        allowed="the names of 1 to 10 CloudWatch alarms, or alarms: {}",
        advice="Without an alarm nothing can end the wait in a rollback, and the update only takes longer.",
    )
