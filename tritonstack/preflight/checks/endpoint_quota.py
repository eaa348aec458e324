"""Quotas of endpoint instances: of each type, and of all types together."""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack.preflight.instance_need import InstanceNeed, instance_need
from tritonstack.preflight.result import About, Result
from tritonstack.preflight.subject import Check, Subject

ALL_TYPES = "Number of instances across active endpoints"
"""The quota's name, as CreateEndpoint quotes it in ResourceLimitExceeded (its code is L-7A3DF611)."""
NEEDED = "instances at maximum, of a new fleet during an update, and of other endpoints"


def of_type(instance_type: str) -> str:
    """The name of a type's quota, as CreateEndpoint quotes it in ResourceLimitExceeded."""
    return f"{instance_type} for endpoint usage"


def check(subject: Subject) -> Iterator[Result]:
    """A result for each instance type of the environment, and one for all."""
    for instance_type in sorted({endpoint.instance_type for endpoint in subject.environment.endpoints}):
        yield from _look(subject, instance_type)
    yield from _look(subject, None)


def _look(subject: Subject, instance_type: str | None) -> Iterator[Result]:
    about = About(check="endpoint-quota", subject=instance_type or "all instance types", needed=NEEDED)
    yield from about.look(_compare, subject, instance_type)


def _compare(about: About, subject: Subject, instance_type: str | None) -> Result:
    need = _need(subject, instance_type)
    about = About(check=about.check, subject=about.subject, needed=str(need))
    name = ALL_TYPES if instance_type is None else of_type(instance_type)
    return subject.quotas.compare(about, service="sagemaker", name=name, needed=need.total)


def _need(subject: Subject, instance_type: str | None) -> InstanceNeed:
    """What other endpoints of the account have counts; what those of this environment have now is in their maximum."""
    endpoints = [
        endpoint for endpoint in subject.environment.endpoints if instance_type in (None, endpoint.instance_type)
    ]
    others = sum(
        fleet.instances
        for fleet in subject.fleets.of_endpoints()
        if fleet.owner not in subject.endpoint_names and instance_type in (None, fleet.instance_type)
    )
    return instance_need(endpoints, others=others)


CHECK = Check(name="endpoint-quota", title="quotas of endpoint instances", run=check)
