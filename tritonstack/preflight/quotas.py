"""Service quotas: endpoint instances, processing jobs, concurrent builds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tritonstack.config import EndpointSettings
from tritonstack.preflight.subject import CheckedItem, PreflightResult, Subject

ALL_TYPES = "all instance types"
ALL_ENDPOINT_INSTANCES = "Number of instances across active endpoints"
"""The quota's name, as CreateEndpoint quotes it in ResourceLimitExceeded (its code is L-7A3DF611)."""
ALL_PROCESSING_INSTANCES = "Number of instances across all processing jobs"
"""The quota's name in Service Quotas (its code is L-F311B08F)."""


@dataclass(frozen=True, kw_only=True)
class InstanceNeed:
    """Instances of one type, or of all."""

    highest: int  # the sum of the endpoints' greatest numbers
    # the most that updates add: a new fleet starts next to the old one, a rolling one a batch at a time
    second_fleet: int
    at_once: int  # endpoints that are updated at the same time
    others: int  # instances of other endpoints of the account now

    @property
    def total(self) -> int:
        """All of them."""
        return self.highest + self.second_fleet + self.others

    def __str__(self) -> str:
        new = "a new fleet during an update" if self.at_once == 1 else f"new fleets of {self.at_once} updates at once"
        return (
            f"{self.total} instances: {self.highest} at maximum + {self.second_fleet} of {new}"
            f" + {self.others} of other endpoints now"
        )


def instance_need(
    endpoints: Sequence[EndpointSettings], *, others: int, at_once: int = 1, instance_type: str | None = None
) -> InstanceNeed:
    """Instances that these endpoints need besides ``others``; those of one type, or all.

    Of instance pools each type may be all that AWS has, so each counts in full.

    ``at_once``: how many stacks are deployed at the same time; then the largest updates count that may meet.
    """
    by_endpoint = [
        [each for each in endpoint.variant_settings if instance_type in (None, *each.types)] for endpoint in endpoints
    ]
    added = sorted((sum(update_count(each) for each in of_one) for of_one in by_endpoint if of_one), reverse=True)
    return InstanceNeed(
        highest=sum(highest_count(each) for of_one in by_endpoint for each in of_one),
        second_fleet=sum(added[:at_once]),
        at_once=max(1, min(at_once, len(added))),
        others=others,
    )


def update_count(endpoint: EndpointSettings) -> int:
    """Instances that an update adds for a while, at a fleet's greatest number: as many again, or a rolling batch."""
    count = highest_count(endpoint)
    if endpoint.rollout is None or endpoint.rollout.kind != "rolling":
        return count
    return min(count, math.ceil(endpoint.rollout.step_instances(count)))


def highest_count(endpoint: EndpointSettings) -> int:
    """The greatest number of instances that a fleet can have: scaling's, a schedule's, or the initial one."""
    scaling = endpoint.scaling
    if scaling is None:
        return endpoint.initial_instance_count
    scheduled = [schedule.maximum or schedule.minimum or 0 for schedule in scaling.schedules]
    return max(scaling.maximum, endpoint.initial_instance_count, *scheduled)


def endpoint_quota_name(instance_type: str) -> str:
    """The name of a type's quota, as CreateEndpoint quotes it in ResourceLimitExceeded."""
    return f"{instance_type} for endpoint usage"


def codebuild_quota_name(compute_type: str, *, gpu: bool) -> str:
    """The quota of concurrent builds on a machine (``BUILD_GENERAL1_SMALL``), as Service Quotas calls it.

    GPU environments are spelt with a space, the others with a stroke: "Linux GPU Small environment" (L-F1FE1B52),
    "Linux/Small environment".
    """
    sizes = {"SMALL": "Small", "MEDIUM": "Medium", "LARGE": "Large", "XLARGE": "XLarge", "2XLARGE": "2XLarge"}
    size = sizes[compute_type.removeprefix("BUILD_GENERAL1_")]
    return f"Concurrently running builds for Linux{' GPU ' if gpu else '/'}{size} environment"


def check_endpoint_quota(subject: Subject) -> Iterator[PreflightResult]:
    """Quotas of endpoint instances: of each type of the environment, and of all types together."""
    types = sorted(
        {each.instance_type for endpoint in subject.environment.endpoints for each in endpoint.type_settings}
    )
    for instance_type in (*types, None):
        item = CheckedItem(
            check="endpoint-quota",
            subject=instance_type or ALL_TYPES,
            needed="instances at maximum, of new fleets during updates, and of other endpoints",
        )
        yield from item.look(_endpoint_quota, subject, instance_type)


def _endpoint_quota(item: CheckedItem, subject: Subject, instance_type: str | None) -> PreflightResult:
    """Instances of other endpoints count; those that the environment's endpoints have now are in their maximum."""
    environment = subject.environment
    own = {endpoint.sagemaker_name(environment.environment) for endpoint in environment.endpoints}
    others = sum(
        each.instances
        for each in subject.facts.endpoint_instances()
        if each.owner not in own and instance_type in (None, each.instance_type)
    )
    need = instance_need(
        environment.hosted_endpoints, others=others, at_once=subject.at_once, instance_type=instance_type
    )
    name = ALL_ENDPOINT_INSTANCES if instance_type is None else endpoint_quota_name(instance_type)
    if instance_type is not None and subject.facts.quota("sagemaker", name) is None:
        return item.fails(
            f"Service Quotas has no quota of it in {environment.region}",  # each type that is hosted there has one
            advice=f"Choose a type that SageMaker hosts in {environment.region}, or another region.",
        )
    return subject.facts.compare_quota(replace(item, needed=str(need)), "sagemaker", name, need.total)


def _engines_at_once(subject: Subject, kind: str) -> Counter[str]:
    """Machine → engines that are built on it at once, at most ``builds.parallel_engines``."""
    found: Counter[str] = Counter()
    for build in subject.served.engines.builds:
        if build.builder.kind == kind:
            found[build.builder.machine.name] += len(build.archives)
    most = subject.environment.builds.parallel_engines
    return Counter({name: min(number, most) for name, number in found.items()})


def check_processing_quota(subject: Subject) -> Iterator[PreflightResult]:
    """Quotas of processing jobs, where SageMaker Processing builds engines: of each type, and of all together."""
    engines = _engines_at_once(subject, "processing")
    numbers = [*sorted(engines.items()), *([(None, engines.total())] if engines else [])]
    for instance_type, number in numbers:
        item = CheckedItem(
            check="processing-quota",
            subject=instance_type or ALL_TYPES,
            needed=f"{number} for engines at once (builds.parallel_engines)",
        )
        name = ALL_PROCESSING_INSTANCES if instance_type is None else f"{instance_type} for processing job usage"
        yield from item.look(subject.facts.compare_quota, "sagemaker", name, number)


def check_codebuild_quota(subject: Subject) -> Iterator[PreflightResult]:
    """Quotas of concurrent builds: of CodeBuild's GPU machines, and of the CPU machine that a deployment builds on."""
    engines = sorted(_engines_at_once(subject, "codebuild").items())
    builds = [(machine, True, number, "engines") for machine, number in engines]
    if subject.builds_on_deploy:
        builds.append((subject.environment.builds.compute_type, False, 1, "a deployment's build"))
    for compute_type, gpu, number, purpose in builds:
        item = CheckedItem(
            check="codebuild-quota",
            subject=f"{compute_type} {'LINUX_GPU_CONTAINER' if gpu else 'LINUX_CONTAINER'}",
            needed=f"{number} for {purpose} at once",
        )
        yield from item.look(
            subject.facts.compare_quota, "codebuild", codebuild_quota_name(compute_type, gpu=gpu), number
        )
