"""Quotas of processing jobs, where SageMaker Processing builds engines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tritonstack.preflight.result import About, Result
from tritonstack.preflight.subject import Check, Subject

ALL_TYPES = "Number of instances across all processing jobs"
"""The quota's name in Service Quotas (its code is L-F311B08F)."""


def check(subject: Subject) -> Iterator[Result]:
    """A result for each type that builds engines, and one for all types together."""
    engines = engines_at_once(subject, "processing")
    for instance_type, number in sorted(engines.items()):
        yield from _look(subject, instance_type, number)
    if engines:
        yield from _look(subject, None, engines.total())


def engines_at_once(subject: Subject, kind: str) -> Counter[str]:
    """Machine → engines that are built on it at once, at most ``builds.parallel_engines``."""
    found: Counter[str] = Counter()
    for build in subject.served.engines.builds:
        if build.builder.kind == kind:
            found[build.builder.machine.name] += len(build.archives)
    most = subject.environment.builds.parallel_engines
    return Counter({name: min(number, most) for name, number in found.items()})


def _look(subject: Subject, instance_type: str | None, number: int) -> Iterator[Result]:
    about = About(
        check="processing-quota",
        subject=instance_type or "all instance types",
        needed=f"{number} for engines at once (builds.parallel_engines), and what runs now",
    )

    def compare(about: About) -> Result:
        others = sum(
            fleet.instances for fleet in subject.fleets.of_jobs() if instance_type in (None, fleet.instance_type)
        )
        about = About(
            check=about.check,
            subject=about.subject,
            needed=f"{number + others} instances: {number} for engines at once + {others} of jobs that run now",
        )
        name = ALL_TYPES if instance_type is None else f"{instance_type} for processing job usage"
        return subject.quotas.compare(about, service="sagemaker", name=name, needed=number + others)

    yield from about.look(compare)


CHECK = Check(name="processing-quota", title="quotas of processing jobs that build engines", run=check)
