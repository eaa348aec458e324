"""``load_test``: load tests in the cloud: what is measured, for how long, and the limits of the gate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import Field

from tritonstack.catalogue import Catalogue
from tritonstack.config.builds import SHORTEST_MINUTES, BuildSettings, ComputeType, LogDays
from tritonstack.config.endpoint import Endpoint
from tritonstack.config.fields import BUILD_IMAGE_PATTERN, Name, SettingsModel
from tritonstack.config.network import NetworkSettings
from tritonstack.config.yaml_loader import shown
from tritonstack.errors import Problem, listing, nearest

LEAST_USERS, MOST_USERS = 1, 3
"""Users that a phase starts with (developer guide: "Run a custom load test", ``InitialNumberOfUsers``)."""
MOST_SPAWNED = 3
"""Users a minute that join (same page, ``SpawnRate`` 0 to 3)."""
SHORTEST_PHASE, LONGEST_PHASE = 120, 3600
"""Seconds of a phase (same page, and API reference: Phase, ``DurationInSeconds``)."""
MOST_INSTANCE_TYPES = 10
"""Of a load test (same page: "real-time instances (up to 10)"; API: ``EndpointConfigurations``)."""
LONGEST_JOB = 7200
"""Seconds of an advanced job (same page, ``JobDurationInSeconds``)."""
MOST_JOBS = 99
"""Of one test: two digits in their names, which stay short."""
LONGEST_TEST = 172_800
"""Seconds of one test with Inference Recommender: its state machine's ``TimeoutSeconds``, ours."""
LONGEST_BUILD_MINUTES = 2160
"""CodeBuild's longest time-out (API reference: CreateProject)."""

JobKind = Literal["default", "advanced", "both"]
Percentile = Literal["P95", "P99"]


class TrafficPhase(SettingsModel):
    """Users that call one after the other, and how their number grows."""

    initial_users: int = Field(ge=LEAST_USERS, le=MOST_USERS, description="Users that it starts with.")
    users_per_minute: int = Field(ge=0, le=MOST_SPAWNED, description="Users that join each minute.")
    seconds: int = Field(ge=SHORTEST_PHASE, le=LONGEST_PHASE, description="How long it takes.")


class LatencyLimit(SettingsModel):
    """The model latency that ends a load test."""

    percentile: Percentile = Field(default="P95", description="Which requests are looked at.")
    milliseconds: int = Field(default=500, ge=1, description="What they may take in the model.")


PUBLISHED_PHASES = (TrafficPhase(initial_users=2, users_per_minute=2, seconds=1500),)
"""Of the published load test of BERT large: 2 users and 2 more each minute, for 25 minutes."""


class RecommenderSettings(SettingsModel):
    """Single-model endpoints: what SageMaker Inference Recommender does."""

    job: JobKind = Field(
        default="advanced",
        description="default: it recommends instance types; advanced: a load test on those named; both.",
    )
    instance_types: Annotated[tuple[str, ...], Field(strict=False, max_length=MOST_INSTANCE_TYPES)] = Field(
        default=(),
        description="What is measured, with the endpoint's GPU; empty: the endpoint's own instance type.",
    )
    phases: Annotated[tuple[TrafficPhase, ...], Field(strict=False, min_length=1)] = Field(
        default=PUBLISHED_PHASES, description="Of an advanced job, one after the other."
    )
    max_invocations: int = Field(default=30_000, ge=1, description="Invocations a minute that end an advanced job.")
    latency: LatencyLimit = Field(
        default_factory=LatencyLimit, description="Model latency that ends an advanced job; by default the published."
    )
    flat_invocations: Literal["continue", "stop"] = Field(
        default="stop", description="What an advanced job does where more users bring no more invocations."
    )
    duration_seconds: int = Field(
        default=LONGEST_JOB, ge=SHORTEST_PHASE, le=LONGEST_JOB, description="The longest that an advanced job takes."
    )
    at_once: int = Field(default=2, ge=1, le=40, description="Jobs at once, each on instances of its own.")
    poll_seconds: int = Field(
        default=120,
        ge=1,
        le=3600,
        description="Seconds between two polls of a job; many long jobs need more (limits of load tests).",
    )
    domain: Literal["COMPUTER_VISION", "NATURAL_LANGUAGE_PROCESSING", "MACHINE_LEARNING"] = Field(
        default="MACHINE_LEARNING", description="The domain that the model package names."
    )
    task: str = Field(
        default="OTHER", min_length=1, max_length=64, description="The task that the package names: FILL_MASK, OTHER, …"
    )
    nearest_model: str | None = Field(
        default=None, min_length=1, max_length=128, description="A well-known model that is like it; null: none."
    )

    @property
    def jobs_each(self) -> int:
        """The jobs of one configuration: one that recommends, and one for each instance type that is named."""
        recommending = self.job in ("default", "both")
        return recommending + (0 if self.job == "default" else len(self.instance_types) or 1)


class BenchBuildSettings(SettingsModel):
    """Multi-model endpoints: what ``tritonstack capacity bench`` does in CodeBuild."""

    users: Annotated[tuple[Annotated[int, Field(ge=1, le=1000)], ...], Field(strict=False, min_length=1)] = Field(
        default=(1, 2, 4, 8), description="Callers at once, one level after the other."
    )
    payload_format: Literal["binary", "json", "both"] = Field(default="binary", description="Of the requests.")
    stop_latency_ms: float | None = Field(
        default=None, gt=0, description="95th percentile after which no more callers are added; null: none."
    )
    max_seconds: float = Field(default=900, ge=60, description="The longest for one model and payload format.")
    compute_type: ComputeType = Field(default="BUILD_GENERAL1_LARGE", description="The CPU machine of the client.")
    image: str = Field(
        default="aws/codebuild/standard:7.0", pattern=BUILD_IMAGE_PATTERN, description="Its image, as builds.image."
    )
    timeout_minutes: int = Field(
        default=240, ge=SHORTEST_MINUTES, le=LONGEST_BUILD_MINUTES, description="The longest that one test takes."
    )


class GateSettings(SettingsModel):
    """What a load test's figures must not exceed; ``tritonstack capacity bench --gate`` fails where they do."""

    p95_ms: float | None = Field(
        default=None, gt=0, description="95th percentile of the latency, milliseconds; null: any."
    )
    per_minute: float | None = Field(
        default=None,
        gt=0,
        description="Invocations a minute that an instance must answer within p95_ms; null: the least load measured.",
    )
    usd_per_million: float | None = Field(
        default=None, gt=0, description="What a million invocations may cost at the best rate, USD; null: any."
    )
    unknown_price_fails: bool = Field(default=False, description="Whether a price that no source gives fails.")


class LoadTestSettings(SettingsModel):
    """Load tests in the cloud; {}: the defaults."""

    endpoints: Annotated[tuple[Name, ...], Field(strict=False, min_length=1)] | None = Field(
        default=None, description="The endpoints that may be tested; null: all."
    )
    log_days: LogDays = Field(default=90, description="Days that the logs of tests are kept.")
    recommender: RecommenderSettings = Field(
        default_factory=RecommenderSettings, description="Of single-model endpoints."
    )
    bench: BenchBuildSettings = Field(default_factory=BenchBuildSettings, description="Of multi-model endpoints.")
    gate: GateSettings | None = Field(default=None, description="What the figures must not exceed; null: nothing.")


# Step Functions keeps at most 25,000 events of a standard execution, and fails one that would have more (developer
# guide: "Step Functions service quotas"). The jobs are an inline Map, whose iterations' events are in the history of
# the execution itself (guide: "Using Map state in Inline mode"). Types of events: API reference, HistoryEvent.


MOST_EVENTS = 25_000
ALLOWED_EVENTS = 22_500
"""A tenth is spared for calls of the function that are repeated: three events a time."""
OUTSIDE = 25
"""Events: ExecutionStarted; five each of Register, Gather and CleanUp; MapStateEntered, -Started, -Succeeded, -Exited;
two of WasAllMeasured and two of Measured; ExecutionSucceeded."""
OF_A_JOB = 9
"""MapIterationStarted and -Succeeded, five of Start, two of Ended."""
OF_A_POLL = 9
"""WaitStateEntered and -Exited; TaskStateEntered, TaskScheduled, TaskStarted, TaskSucceeded, TaskStateExited;
ChoiceStateEntered and -Exited."""

DEFAULT_JOB_SECONDS = 2700
"""Of a default job ("complete within 45 minutes": developer guide, "Recommendation jobs")."""
ENDPOINT_SECONDS = 1800
"""Ours: for creating and deleting a job's endpoints. Whether a job's duration includes it is not documented."""
OTHER_SECONDS = 3600
"""Ours: room for what is done before and after the jobs, clean-up included."""


def most_events(*, jobs: int, polls: int) -> int:
    """Events of the execution's history, where each job is polled so often."""
    return OUTSIDE + jobs * (OF_A_JOB + OF_A_POLL * polls)


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
) -> Iterator[Problem]:
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
            yield Problem(
                location=("load_test", "endpoints", index),
                found=shown(name),
                allowed=f"endpoints of this file: {listing(sorted(names))}",
                advice=nearest(str(name), names),
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


def _check_jobs(recommender: RecommenderSettings, *, configurations: int) -> Iterator[Problem]:
    jobs = configurations * recommender.jobs_each
    if jobs > MOST_JOBS:
        yield Problem(
            location=("load_test", "recommender"),
            found=f"{jobs} jobs: {recommender.jobs_each} for each of {configurations} single-model endpoints",
            allowed=f"{MOST_JOBS} of one test",
            advice="Name fewer instance types, or the endpoints that are tested (load_test.endpoints).",
        )
        return
    yield from _check_length(recommender, jobs=jobs)


def _check_length(recommender: RecommenderSettings, *, jobs: int) -> Iterator[Problem]:
    """What its state machine would end: of a test that is ended so, the jobs that ran are stopped."""
    longest = DEFAULT_JOB_SECONDS if recommender.job == "default" else recommender.duration_seconds
    if recommender.job == "both":
        longest = max(longest, DEFAULT_JOB_SECONDS)
    longest += ENDPOINT_SECONDS
    of = f"{jobs} {'job' if jobs == 1 else 'jobs'} of up to {longest} s, with making and removing endpoints"
    events = most_events(jobs=jobs, polls=math.ceil(longest / recommender.poll_seconds))
    if events > ALLOWED_EVENTS:
        yield Problem(
            location=("load_test", "recommender", "poll_seconds"),
            found=f"{recommender.poll_seconds}, which makes up to {events:,} events in the state machine's history: "
            f"{of}",
            allowed=f"{ALLOWED_EVENTS:,} events: Step Functions ends an execution at {MOST_EVENTS:,} (Step Functions "
            "developer guide: service quotas), and the rest is for calls that are repeated",
            advice="Poll less often, or test fewer instance types or endpoints (load_test.endpoints).",
        )
    # An end is seen up to one ``poll_seconds`` late; then the next job begins.
    seconds = OTHER_SECONDS + math.ceil(jobs / recommender.at_once) * (longest + recommender.poll_seconds)
    if seconds > LONGEST_TEST:
        yield Problem(
            location=("load_test", "recommender", "at_once"),
            found=f"{recommender.at_once}, which takes up to {seconds / 3600:.1f} hours: {of}",
            allowed=f"{LONGEST_TEST // 3600} hours, after which the state machine ends",
            advice="Run more jobs at once, or test fewer instance types or endpoints (load_test.endpoints).",
        )


def _check_phases(recommender: RecommenderSettings) -> Iterator[Problem]:
    together = sum(phase.seconds for phase in recommender.phases)
    if together > recommender.duration_seconds:
        yield Problem(
            location=("load_test", "recommender", "phases"),
            found=f"{together} seconds together",
            allowed=f"{recommender.duration_seconds} or less (load_test.recommender.duration_seconds): a phase does "
            "not outlast its job (SageMaker API reference: Phase)",
        )


def _check_instance_types(
    recommender: RecommenderSettings, *, single: list[Endpoint], catalogue: Catalogue
) -> Iterator[Problem]:
    for index, name in enumerate(recommender.instance_types):
        location = ("load_test", "recommender", "instance_types", index)
        instance = catalogue.instance(name)
        if name in recommender.instance_types[:index]:
            yield Problem(location=location, found=f"{name} twice", allowed="each instance type once")
        if instance is None:
            yield Problem(location=location, found=shown(name), allowed="GPU instance types of the catalogue")
            continue
        others = sorted({each.name for each in single if each.platform.gpu.lower() != instance.gpu.lower()})
        if others:
            yield Problem(
                location=location,
                found=f"{name} with {instance.gpu}, and archives of {', '.join(others)} are for another GPU",
                allowed="instance types with the GPU of every single-model endpoint that is tested",
                advice="An archive is built for one GPU. Give such endpoints an environment of their own.",
            )


def _check_closed_in(image: str) -> Iterator[Problem]:
    """Without a way out, a build in CodeBuild's own image waits for the package index until it times out."""
    if image.startswith("aws/codebuild/"):
        yield Problem(
            location=("load_test", "bench", "image"),
            found=f"{image}, which fetches Python packages, in a network with no way to the internet",
            allowed="an image in ECR that has the packages; or network.created.nat: one or each; or "
            "builds.outside_network: true",
        )


def _check_gate(gate: GateSettings) -> Iterator[Problem]:
    if gate.p95_ms is None and gate.usd_per_million is None:
        yield Problem(
            location=("load_test", "gate"),
            found="neither p95_ms nor usd_per_million",
            allowed="one of the two at least, or gate: null",
        )
    if gate.per_minute is not None and gate.p95_ms is None:
        yield Problem(
            location=("load_test", "gate", "per_minute"),
            found=f"{gate.per_minute:g} without p95_ms",
            allowed="the load at which p95_ms holds",
        )
