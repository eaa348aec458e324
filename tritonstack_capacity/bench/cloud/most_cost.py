"""What a test with Inference Recommender takes at most: jobs, hours, USD. Shown for confirmation before it starts."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

DEFAULT_SECONDS = 45 * 60
"""Of a default job (developer guide, "Recommendation jobs": "complete within 45 minutes")."""
ENDPOINT_SECONDS = 30 * 60
"""In which a job's endpoints start and are deleted, before and after its requests: ours, and billed."""
UsdPerHour = Callable[[str], float | None]
"""Instance type → price of an instance; None where it is unknown."""


@dataclass(frozen=True, kw_only=True)
class MostCost:
    """The most that the jobs of a test take; what is billed are their instances."""

    default_jobs: int
    load_tests: int
    seconds: float  # from the first job's start to the last one's end, with as many at once as the settings allow
    usd: float  # of the instances with a known price, each as long as its job may take
    unpriced: tuple[str, ...]  # instance types without a price

    @property
    def sentences(self) -> tuple[str, ...]:
        """Lines above the question whether it may start."""
        kinds = [
            f"{count} {noun}{'' if count == 1 else 's'}"
            for count, noun in ((self.default_jobs, "default job"), (self.load_tests, "load test"))
            if count
        ]
        hours = f"{self.seconds / 3600:,.1f} hours at most"
        cost = f"{self.usd:,.2f} USD of instances at most"
        missing = f"; without a price, and not in it: {', '.join(self.unpriced)}" if self.unpriced else ""
        return (f"Inference Recommender: {' and '.join(kinds) or 'no job'}, {hours}, {cost}{missing}",)


def most_cost(
    settings: Mapping[str, Any], *, kept: Collection[str] = (), at_once: int, usd_per_hour: UsdPerHour
) -> MostCost:
    """The most that the jobs of a test's settings take.

    A load test counts as its ``JobDurationInSeconds`` on an instance for each combination of container parameters, a
    default job as 45 minutes on every type that its package supports; both with the time of their endpoints.

    Args:
        settings: as they are written for the steps.
        kept: names of jobs that have ended already.
        at_once: how many jobs run at a time.
        usd_per_hour: prices.
    """
    jobs = [job for job in settings["jobs"] if job["name"] not in kept]
    usd, unpriced = 0.0, set[str]()
    for job in jobs:
        hours = _seconds(job) / 3600
        for instance_type, count in _instances(job, settings):
            price = usd_per_hour(instance_type)
            if price is None:
                unpriced.add(instance_type)
            else:
                usd += price * count * hours
    return MostCost(
        default_jobs=sum(job["job_type"] == "Default" for job in jobs),
        load_tests=sum(job["job_type"] == "Advanced" for job in jobs),
        seconds=_in_turn([_seconds(job) for job in jobs], at_once=at_once),
        usd=usd,
        unpriced=tuple(sorted(unpriced)),
    )


def _seconds(job: Mapping[str, Any]) -> float:
    given = job["request"]["InputConfig"].get("JobDurationInSeconds", DEFAULT_SECONDS)
    return float(given) + ENDPOINT_SECONDS


def _instances(job: Mapping[str, Any], settings: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Instance types of a job, and instances of each."""
    package = settings["packages"].get(job["configuration"], {}).get("InferenceSpecification", {})
    supported = package.get("SupportedRealtimeInferenceInstanceTypes", [])
    if job["job_type"] == "Default":
        yield from ((each, 1) for each in supported)
        return
    for one in job["request"]["InputConfig"]["EndpointConfigurations"]:
        ranges = one.get("EnvironmentParameterRanges", {}).get("CategoricalParameterRanges", [])
        tests = math.prod(len(each["Value"]) for each in ranges)
        types = supported if job["instance_type"] is None else [one["InstanceType"]]
        yield from ((each, tests) for each in types)


def _in_turn(durations: list[float], *, at_once: int) -> float:
    """When the last of these has ended, each started in turn as soon as fewer than ``at_once`` run."""
    ends = [0.0] * at_once
    for seconds in durations:
        heapq.heappush(ends, heapq.heappop(ends) + seconds)
    return max(ends)
