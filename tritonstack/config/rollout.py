"""``rollout``: how an update moves traffic to the new fleet (SageMaker's deployment guardrails)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from tritonstack.config.alarms import ErrorThresholds
from tritonstack.config.fields import SettingsModel
from tritonstack.errors import Location, Problem

if TYPE_CHECKING:
    from tritonstack.config.endpoint import EndpointSettings
    from tritonstack.config.scaling import Scaling, Schedule


ALARM_MINUTES = 3
"""Evaluation periods of an alarm, of which one bad minute suffices: it stays in ALARM that long."""
SEEN_SECONDS = 120
"""A minute's figures are complete when it is over, and alarms are evaluated once a minute: no alarm fires sooner."""


MOST_SECONDS = 28_800
"""The largest ``MaximumExecutionTimeoutInSeconds``, which "should be larger than the total waiting time specified in
TerminationWaitInSeconds and WaitIntervalInSeconds" (API reference, BlueGreenUpdatePolicy; RollingUpdatePolicy has it
too)."""


class RollbackAlarms(ErrorThresholds):
    """Error thresholds of the new fleet that roll an update back. Requests to the old fleet do not count.

    Never latency: a new fleet is cold. Never 4XX: those are clients' mistakes, and a cold multi-model fleet's
    ModelNotReadyException.
    """


class Rollout(SettingsModel):
    """How an update moves traffic to a new fleet: blue/green, or rolling: in place, batch by batch.

    Limits: API reference, DeploymentConfig and its parts (botocore's service model agrees), and developer
    guide, "Blue/Green Deployments" and "Use rolling deployments". How SageMaker rounds a percentage to instances is
    UNVERIFIED; whatever it does, a size that is accepted here is one instance or more.
    """

    kind: Literal["all-at-once", "canary", "linear", "rolling"] = Field(
        description="all-at-once: every request in one step; canary: a few first, then the rest; linear: equal steps; "
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
    alarms: RollbackAlarms = Field(
        default_factory=RollbackAlarms,
        description="The stack's own alarms on the errors of the new fleet: one in ALARM while they are watched moves "
        "every request back.",
    )
    slowest_load_seconds: float | None = Field(
        default=None,
        gt=0,
        description="Multi-model mode: the slowest load of a model that was measured (`tritonstack verify` "
        "reports it), seconds. A shorter wait is refused: it is over before the new fleet has responded.",
    )
    accept_multi_model: bool = Field(
        default=False,
        description="Multi-model mode: take a rollout, though AWS's pages disagree on whether SageMaker has it there.",
    )

    @property
    def own_alarms(self) -> RollbackAlarms | None:
        """The alarms; None where nothing is waited for, and so nothing watched."""
        return self.alarms if any(self.waits.values()) else None

    @property
    def waits(self) -> dict[str, int]:
        """The waits that this kind has and in which alarms are watched: field → seconds."""
        step, last = (
            {"wait_seconds": self.wait_seconds or 0},
            {"termination_wait_seconds": self.termination_wait_seconds},
        )
        return {"all-at-once": last, "rolling": step}.get(self.kind, {**step, **last})

    def waiting_seconds(self, count: int) -> int:
        """The sum of all waits of an update of ``count`` instances, seconds."""
        # A canary is one step and the rest; linear steps are waited for in between, rolling batches each.
        waits = {"canary": 1, "linear": self._steps(count) - 1, "rolling": self._steps(count)}.get(self.kind, 0)
        last = 0 if self.kind == "rolling" else self.termination_wait_seconds
        return waits * (self.wait_seconds or 0) + last

    def execution_timeout_seconds(self, count: int, *, start_seconds: int) -> int:
        """``MaximumExecutionTimeoutInSeconds`` for an update of ``count`` instances: all waits, and the starts.

        ``start_seconds``: the longest that instances take until they respond; a rolling update starts each batch anew.
        """
        starts = self._steps(count) if self.kind == "rolling" else 1
        return min(max(self.waiting_seconds(count) + starts * start_seconds, 600), MOST_SECONDS)

    def _steps(self, count: int) -> int:
        """Number of steps or batches for ``count`` instances: the most, with sizes rounded down to whole instances."""
        return math.ceil(count / max(1, math.floor(self.step_instances(count))))

    def step_instances(self, count: int) -> float:
        """Instances out of ``count`` that one step turns on, not rounded; all of them in a single step."""
        if self.size_instances is not None:
            return self.size_instances
        return count if self.size_percent is None else count * self.size_percent / 100


LEAST = {"canary": 0, "linear": 10, "rolling": 5}
MOST = 50
"""Percent of the instances that one step may be (API reference, TrafficRoutingConfig and RollingUpdatePolicy)."""
NAMES = {"canary": "canary", "linear": "step", "rolling": "batch"}


def check_rollout(*, endpoint: EndpointSettings, location: Location) -> Iterator[Problem]:
    """Check an endpoint's ``rollout``; ``location`` is the endpoint's."""
    rollout = endpoint.rollout
    if rollout is None:
        return
    fleets = fleet_limits(endpoint.initial_instance_count, endpoint.scaling)
    place = (*location, "rollout")
    if endpoint.multi_model and not rollout.accept_multi_model:
        yield Problem(
            location=(*place, "accept_multi_model"),
            found="false on a multi-model endpoint",
            allowed="true: AWS's feature matrix lists no guardrails for multi-model endpoints, other pages do not"
            " exclude them",
            advice="Try it on an endpoint without clients, then set it; or remove rollout.",
        )
    if rollout.kind == "all-at-once":
        wrong = list(_check_all_at_once(rollout=rollout, location=place))
    else:
        wrong = list(_check_in_steps(rollout=rollout, fleets=fleets, location=place))
    yield from wrong
    yield from _check_waits(endpoint=endpoint, rollout=rollout, location=place)
    if not wrong:  # wrong sizes have no steps
        yield from _check_sum(rollout=rollout, largest=fleets[1], location=place)


def fleet_limits(initial: int, scaling: Scaling | None) -> tuple[int, int]:
    """The smallest and the largest fleet that an update may meet: that of the start, and those that scaling makes."""
    limits: list[int | None] = [initial]
    if scaling is not None:
        parts: tuple[Scaling | Schedule, ...] = (scaling, *scaling.schedules)
        limits += [limit for each in parts for limit in (each.minimum, each.maximum)]
    counts = [limit for limit in limits if limit is not None]
    return min(counts), max(counts)


def _check_all_at_once(*, rollout: Rollout, location: Location) -> Iterator[Problem]:
    for field in ("size_percent", "size_instances", "wait_seconds"):
        value = getattr(rollout, field)
        if value is not None:
            yield Problem(
                location=(*location, field),
                found=f"{value} with kind: all-at-once",
                allowed="null: there is one step, and what follows it is termination_wait_seconds",
                advice="Remove the field, or set kind: canary.",
            )


def _check_in_steps(*, rollout: Rollout, fleets: tuple[int, int], location: Location) -> Iterator[Problem]:
    sizes = [name for name in ("size_percent", "size_instances") if getattr(rollout, name) is not None]
    if len(sizes) != 1:
        yield Problem(
            location=(*location, "size_percent"),
            found="both size_percent and size_instances" if sizes else "neither size_percent nor size_instances",
            allowed=f"exactly one of them with kind: {rollout.kind}",
        )
    else:
        # What is too large for the smallest fleet, or too small for the largest, is that for no other one alone.
        for count in sorted(set(fleets)):
            yield from _check_size(rollout=rollout, count=count, fleets=fleets, location=(*location, sizes[0]))
    if rollout.wait_seconds is None:
        yield Problem(
            location=(*location, "wait_seconds"),
            found="null",
            allowed=f"0 to 3600 seconds with kind: {rollout.kind}",
            advice="Give the alarms longer than the slowest model takes to load: the new fleet begins with none.",
        )
    if rollout.kind == "rolling" and rollout.termination_wait_seconds:
        yield Problem(
            location=(*location, "termination_wait_seconds"),
            found=f"{rollout.termination_wait_seconds} with kind: rolling",
            allowed="0: old instances end after each batch, and wait_seconds follows the last one too",
            advice="Remove the field.",
        )


def _check_size(*, rollout: Rollout, count: int, fleets: tuple[int, int], location: Location) -> Iterator[Problem]:
    """The step must be a whole instance or more, and between the limits."""
    what, least, (smallest, largest) = NAMES[rollout.kind], LEAST[rollout.kind], fleets
    instances = rollout.step_instances(count)
    percent = rollout.size_percent or 100 * instances / count
    size = f"{rollout.size_percent} % of {count}" if rollout.size_percent else f"{instances:g} of {count}"
    scaled = "" if smallest == largest else f"; scaling leaves it between {smallest} and {largest} instances"
    if count == 1:
        yield Problem(
            location=location,
            found=f"a {what} of a fleet of 1 instance{scaled}",
            allowed=f"a fleet of 2 or more: a {what} is at most {MOST} % of it, and {MOST} % of 1 is half an instance",
            advice=f"Set {'scaling.minimum: 2 (and each schedule)' if scaled else 'initial_instance_count: 2'}, or "
            "kind: all-at-once.",
        )
    elif instances < 1:
        yield Problem(
            location=location,
            found=f"{size} instances, which is {instances:g} of an instance{scaled}",
            allowed=f"at least one instance: {math.ceil(100 / count)} % or more of {count}",
            advice=f"Set size_instances: 1 ({100 / count:.0f} % of the requests), or more instances.",
        )
    elif not least <= percent <= MOST:
        low = max(1, math.ceil(least * count / 100))
        # a percentage that is one instance of the smallest fleet suits every larger one
        advice = f"Set size_percent from {max(least, math.ceil(100 / smallest))} to {MOST}, which suits all of them."
        yield Problem(
            location=location,
            found=f"{size} instances, which is {percent:.0f} % of the fleet{scaled}",
            allowed=f"{f'{least} to ' if least else 'at most '}{MOST} % of {count} instances: {low} to {count // 2}",
            advice=advice if scaled and smallest > 1 else "",
        )


def _check_sum(*, rollout: Rollout, largest: int, location: Location) -> Iterator[Problem]:
    """All waits together must be shorter than a deployment may take."""
    seconds = rollout.waiting_seconds(largest)
    if seconds >= MOST_SECONDS:
        field = "termination_wait_seconds" if rollout.kind == "all-at-once" else "wait_seconds"
        yield Problem(
            location=(*location, field),
            found=f"waits of {seconds} seconds together, of an update of {largest} instances"
            f" (kind: {rollout.kind}, wait_seconds: {rollout.wait_seconds or 0},"
            f" termination_wait_seconds: {rollout.termination_wait_seconds})",
            allowed=f"less than {MOST_SECONDS} seconds: the longest that SageMaker lets a deployment take"
            " (MaximumExecutionTimeoutInSeconds), in which instances start as well",
            advice="Shorten the waits, or make the steps larger.",
        )


def _check_waits(*, endpoint: EndpointSettings, rollout: Rollout, location: Location) -> Iterator[Problem]:
    """A wait must be longer than an alarm takes to fire; the first one, than a cold fleet's slowest load too."""
    slowest = rollout.slowest_load_seconds
    if slowest is not None and not endpoint.multi_model:
        found, allowed = f"{slowest:g} on a single-model endpoint", "null: its model is loaded before it takes requests"
        yield Problem(location=(*location, "slowest_load_seconds"), found=found, allowed=allowed)
        slowest = None
    for field, seconds in rollout.waits.items():
        if rollout.wait_seconds is None if field == "wait_seconds" else seconds == 0:
            continue  # nothing is watched then, or the missing wait is reported
        if seconds < SEEN_SECONDS:
            yield Problem(
                location=(*location, field),
                found=f"{seconds} seconds",
                allowed=f"{SEEN_SECONDS} seconds or more: up to 60 until a minute's figures are complete, and up to 60 "
                "until CloudWatch evaluates them",
            )
        if slowest is not None and seconds < slowest and field == next(iter(rollout.waits)):
            yield Problem(
                location=(*location, field),
                found=f"{seconds} seconds, and the slowest load took {slowest:g}: the wait is over "
                f"{slowest - seconds:g} seconds before that model has responded to its first request",
                allowed=f"{math.ceil(slowest)} seconds or more (slowest_load_seconds)",
                advice="Wait longer, or make the load faster and measure again: tritonstack verify.",
            )
