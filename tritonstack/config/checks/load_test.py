"""``load_test`` against the endpoints that it is of, and against itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tritonstack.catalogue import Catalogue
from tritonstack.config.builds import BuildSettings
from tritonstack.config.checks.load_test_length import MOST_EVENTS, allowed_events, length_of
from tritonstack.config.endpoint import Endpoint
from tritonstack.config.findings import Finding, shown
from tritonstack.config.load_test import LONGEST_TEST, MOST_JOBS, GateSettings, LoadTestSettings, RecommenderSettings
from tritonstack.config.network import NetworkSettings

Endpoints = Mapping[str, Endpoint]
"""Name → endpoint; of those whose own settings are usable."""


def check_load_test(
    settings: LoadTestSettings,
    *,
    endpoints: Endpoints,
    names: frozenset[str],
    catalogue: Catalogue,
    network: NetworkSettings | None,
    builds: BuildSettings | None,
) -> Iterator[Finding]:
    """Tests that nothing would run, or that the service would refuse.

    Args:
        settings: the load tests.
        endpoints: those that can be tested.
        names: of all endpoints of the file, also of those whose settings have problems of their own.
        catalogue: knows instance types.
        network: the environment's; None where it has none, or its settings have problems of their own.
        builds: likewise.
    """
    for index, name in enumerate(settings.endpoints or ()):
        if name not in names:
            yield Finding(
                location=("load_test", "endpoints", index),
                found=shown(name),
                allowed=f"endpoints of this file: {', '.join(sorted(names)) or 'none'}",
            )
    tested = [each for name, each in endpoints.items() if settings.endpoints is None or name in settings.endpoints]
    single = [each for each in tested if not each.multi_model]
    yield from _check_phases(settings.recommender)
    yield from _check_jobs(settings.recommender, configurations=len(single))
    yield from _check_instance_types(settings.recommender, single=single, catalogue=catalogue)
    if settings.gate is not None:
        yield from _check_gate(settings.gate)
    closed = network is not None and network.is_closed and builds is not None and not builds.outside_network
    if closed and any(each.multi_model for each in tested):
        yield from _check_closed_in(settings.bench.image)


def _check_jobs(recommender: RecommenderSettings, *, configurations: int) -> Iterator[Finding]:
    jobs = configurations * recommender.jobs_each
    if jobs > MOST_JOBS:
        yield Finding(
            location=("load_test", "recommender"),
            found=f"{jobs} jobs: {recommender.jobs_each} for each of {configurations} single-model endpoints",
            allowed=f"{MOST_JOBS} of one test",
            advice="Name fewer instance types, or the endpoints that are tested (load_test.endpoints).",
        )
    elif jobs:
        yield from _check_length(recommender, jobs=jobs)


def _check_length(recommender: RecommenderSettings, *, jobs: int) -> Iterator[Finding]:
    """What its state machine would end: of a test that is ended so, the jobs that ran are stopped."""
    length, poll, at_once = length_of(recommender, jobs=jobs), recommender.poll_seconds, recommender.at_once
    enough = max(poll, length.least_poll_seconds())
    together = max(at_once, length.least_at_once(poll_seconds=enough))
    advice = (
        f"Take poll_seconds: {enough} and at_once: {together}; or a shorter duration_seconds, fewer instance "
        "types, or fewer endpoints that are tested (load_test.endpoints)."
    )
    of = f"{jobs} {'job' if jobs == 1 else 'jobs'} of up to {length.job_seconds} s, with making and removing endpoints"
    if (events := length.events(poll_seconds=poll)) > allowed_events():
        yield Finding(
            location=("load_test", "recommender", "poll_seconds"),
            found=f"{poll}, which makes up to {events:,} events of the state machine's history: {of}",
            allowed=f"{allowed_events():,} events: Step Functions ends an execution at {MOST_EVENTS:,} (Step Functions "
            "developer guide: service quotas), and the rest is for calls that are repeated",
            advice=advice,
        )
    if (seconds := length.seconds(poll_seconds=poll, at_once=at_once)) > LONGEST_TEST:
        yield Finding(
            location=("load_test", "recommender", "at_once"),
            found=f"{at_once}, which takes up to {seconds / 3600:.1f} hours: {of}",
            allowed=f"{LONGEST_TEST // 3600} hours, after which the state machine ends",
            advice=advice,
        )


def _check_phases(recommender: RecommenderSettings) -> Iterator[Finding]:
    together = sum(phase.seconds for phase in recommender.phases)
    if together > recommender.duration_seconds:
        yield Finding(
            location=("load_test", "recommender", "phases"),
            found=f"{together} seconds together",
            allowed=f"{recommender.duration_seconds} or less (load_test.recommender.duration_seconds): a phase does "
            "not outlast its job (SageMaker API reference: Phase)",
        )


def _check_instance_types(
    recommender: RecommenderSettings, *, single: list[Endpoint], catalogue: Catalogue
) -> Iterator[Finding]:
    for index, name in enumerate(recommender.instance_types):
        location = ("load_test", "recommender", "instance_types", index)
        instance = catalogue.instance(name)
        if name in recommender.instance_types[:index]:
            yield Finding(location=location, found=f"{name} twice", allowed="each instance type once")
        if instance is None:
            yield Finding(location=location, found=shown(name), allowed="GPU instance types of the catalogue")
            continue
        others = sorted({each.name for each in single if each.platform.gpu.lower() != instance.gpu.lower()})
        if others:
            yield Finding(
                location=location,
                found=f"{name} with {instance.gpu}, and archives of {', '.join(others)} are for another GPU",
                allowed="instance types with the GPU of every single-model endpoint that is tested",
                advice="An archive is built for one GPU. Give such endpoints an environment of their own.",
            )


def _check_closed_in(image: str) -> Iterator[Finding]:
    """Without a way out, a build in CodeBuild's own image waits for the package index until it times out."""
    if image.startswith("aws/codebuild/"):
        yield Finding(
            location=("load_test", "bench", "image"),
            found=f"{image}, which fetches Python packages, in a network with no way to the internet",
            allowed="an image in ECR that has the packages; or network.created.nat: one or each; or "
            "builds.outside_network: true",
        )


def _check_gate(gate: GateSettings) -> Iterator[Finding]:
    if gate.p95_ms is None and gate.usd_per_million is None:
        yield Finding(
            location=("load_test", "gate"),
            found="neither p95_ms nor usd_per_million",
            allowed="one of the two at least, or gate: null",
        )
    if gate.per_minute is not None and gate.p95_ms is None:
        yield Finding(
            location=("load_test", "gate", "per_minute"),
            found=f"{gate.per_minute:g} without p95_ms",
            allowed="the load at which p95_ms holds",
        )
