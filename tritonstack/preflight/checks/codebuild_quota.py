"""Quotas of builds at once in CodeBuild: of its GPU machines, and of the CPU machine that a deployment builds on."""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack.preflight.checks.processing_quota import engines_at_once
from tritonstack.preflight.result import About, Result
from tritonstack.preflight.subject import Check, Subject

_GPU = "LINUX_GPU_CONTAINER"
_CPU = "LINUX_CONTAINER"
_NEWEST = 100
"""Builds that are looked at for those that run: one page of ListBuilds, newest first, and one call."""
_SIZES = {"SMALL": "Small", "MEDIUM": "Medium", "LARGE": "Large", "XLARGE": "XLarge", "2XLARGE": "2XLarge"}


def quota_name(compute_type: str, *, gpu: bool) -> str:
    """The quota of builds at once on a machine (``BUILD_GENERAL1_SMALL``), as Service Quotas calls it.

    GPU environments are spelt with a space, the others with a stroke: "Linux GPU Small environment" (L-F1FE1B52),
    "Linux/Small environment".
    """
    size = _SIZES[compute_type.removeprefix("BUILD_GENERAL1_")]
    return f"Concurrently running builds for Linux{' GPU ' if gpu else '/'}{size} environment"


def check(subject: Subject) -> Iterator[Result]:
    """A result for each GPU machine that builds engines, and one for the machine of a deployment's builds."""
    for compute_type, number in sorted(engines_at_once(subject, "codebuild").items()):
        yield from _look(subject, compute_type, number, environment_type=_GPU)
    if subject.builds_on_deploy:
        yield from _look(subject, subject.environment.builds.compute_type, 1, environment_type=_CPU)


def _look(subject: Subject, compute_type: str, number: int, *, environment_type: str) -> Iterator[Result]:
    what = "engines" if environment_type == _GPU else "a deployment's build"
    about = About(
        check="codebuild-quota",
        subject=f"{compute_type} {environment_type}",
        needed=f"{number} for {what} at once, and what runs now",
    )

    def compare(about: About) -> Result:
        others = _running(subject, compute_type, environment_type)
        about = About(
            check=about.check,
            subject=about.subject,
            needed=f"{number + others} builds at once: {number} for {what} + {others} that run now",
        )
        name = quota_name(compute_type, gpu=environment_type == _GPU)
        return subject.quotas.compare(about, service="codebuild", name=name, needed=number + others)

    yield from about.look(compare)


def _running(subject: Subject, compute_type: str, environment_type: str) -> int:
    """Builds on that machine that run now, among the newest of the account."""
    newest = subject.calls.must("codebuild", "list_builds", sortOrder="DESCENDING").get("ids", [])[:_NEWEST]
    if not newest:
        return 0
    builds = subject.calls.must("codebuild", "batch_get_builds", ids=newest).get("builds", [])
    return sum(
        build.get("buildStatus") == "IN_PROGRESS"
        and build.get("environment", {}).get("computeType") == compute_type
        and build.get("environment", {}).get("type") == environment_type
        for build in builds
    )


CHECK = Check(name="codebuild-quota", title="quotas of builds in CodeBuild", run=check)
