"""``load_test``: load tests in the cloud: what is measured, for how long, and the limits of the gate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import Field

from tritonstack.catalogue import load_catalogue
from tritonstack.config.builds import SHORTEST_MINUTES, BuildSettings, ComputeType, LogDays
from tritonstack.config.endpoint import EndpointSettings
from tritonstack.config.fields import Name, SettingsModel
from tritonstack.config.network import NetworkSettings
from tritonstack.config.patterns import BUILD_IMAGE_PATTERN, VARIABLE_PATTERN
from tritonstack.config.yaml_loader import shown, unknown
from tritonstack.errors import Problem

# Limits of Inference Recommender: developer guide, "Run a custom load test", and API reference, Phase.
MOST_JOBS = 32
"""Of one test. At the longest, by default, they make 2,400 polls of nine events each, and Step Functions ends an
execution at 25,000 (developer guide: "Step Functions service quotas"); two at a time they end within LONGEST_TEST."""
LONGEST_TEST = 172_800
"""Seconds of one test with Inference Recommender: its state machine's ``TimeoutSeconds``, ours."""


class TrafficPhase(SettingsModel):
    """Users that send requests one after the other, and how their number grows."""

    initial_users: int = Field(ge=1, le=3, description="Users that it starts with.")
    users_per_minute: int = Field(ge=0, le=3, description="Users that join each minute.")
    seconds: int = Field(ge=120, le=3600, description="How long it takes.")


class LatencyLimit(SettingsModel):
    """The model latency that ends a load test."""

    percentile: Literal["P95", "P99"] = Field(default="P95", description="Which requests are looked at.")
    milliseconds: int = Field(default=500, ge=1, description="What they may take in the model.")


PUBLISHED_PHASES = (TrafficPhase(initial_users=2, users_per_minute=2, seconds=1500),)
"""Of the published load test of BERT large: 2 users and 2 more each minute, for 25 minutes."""


# Values of the API reference: CreateModelPackage (Task), RecommendationJobContainerConfig (Domain, Framework).
Domain = Literal["COMPUTER_VISION", "NATURAL_LANGUAGE_PROCESSING", "MACHINE_LEARNING"]
Framework = Literal["PYTORCH", "TENSORFLOW", "XGBOOST", "SAGEMAKER-SCIKIT-LEARN"]
Task = Literal[
    "IMAGE_CLASSIFICATION",
    "OBJECT_DETECTION",
    "TEXT_GENERATION",
    "IMAGE_SEGMENTATION",
    "FILL_MASK",
    "CLASSIFICATION",
    "REGRESSION",
    "OTHER",
]
MODEL_PACKAGE_GROUP_PATTERN = r"^[a-z0-9](-*[a-z0-9]){0,62}$"
"""In lower case, as SageMaker writes ARNs: policies name the group by its ARN."""
MOST_PARAMETERS, MOST_VALUES = 5, 3
"""Of one load test: environment variables, and values of each (API reference: EnvironmentParameterRanges)."""
MOST_TESTS = 10
"""Load tests of one instance type: as many as a job may have endpoint configurations, ours."""
VariableName = Annotated[str, Field(pattern=VARIABLE_PATTERN, max_length=64)]
VariableValue = Annotated[str, Field(min_length=1, max_length=128)]
VariableValues = Annotated[tuple[VariableValue, ...], Field(strict=False, min_length=1, max_length=MOST_VALUES)]


class RecommenderSettings(SettingsModel):
    """Single-model endpoints: what SageMaker Inference Recommender does."""

    job: Literal["default", "advanced", "both"] = Field(
        default="advanced",
        description="default: Inference Recommender chooses instance types and measures them; advanced: a load test on "
        "instance_types; both: first the default job, whose recommended container parameters (and, where "
        "instance_types is empty, instance types) the load tests take.",
    )
    instance_types: Annotated[tuple[str, ...], Field(strict=False, max_length=10)] = Field(
        default=(),
        description="What is measured, with the endpoint's GPU; empty: the endpoint's own instance type, and for a "
        "default job all types with its GPU.",
    )
    environment_parameters: Annotated[dict[VariableName, VariableValues], Field(max_length=MOST_PARAMETERS)] = Field(
        default={},
        description="Environment variables of the container that load tests vary, and the values of each: a load test "
        "for each combination (EnvironmentParameterRanges; OMP_NUM_THREADS: ['1', '4']).",
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
    duration_seconds: int = Field(default=7200, ge=120, le=7200, description="The longest that an advanced job takes.")
    at_once: int = Field(default=2, ge=1, le=40, description="Jobs at once, each on instances of its own.")
    poll_seconds: int = Field(
        default=120,
        ge=1,
        le=3600,
        description="Seconds between two polls of a job.",
    )
    framework: Framework = Field(default="PYTORCH", description="The framework that the model package names.")
    framework_version: str | None = Field(
        default=None,
        pattern=r"^[0-9]\.[A-Za-z0-9.-]+$",
        min_length=3,
        max_length=10,
        description="Its version (1.6.0); null: the package names none.",
    )
    domain: Domain = Field(default="MACHINE_LEARNING", description="The domain that the model package names.")
    task: Task = Field(
        default="OTHER", description="The task that the package names; of texts into two classes: CLASSIFICATION."
    )
    nearest_model: str | None = Field(
        default=None,
        min_length=1,
        max_length=128,
        description="A model like it that AWS has measured, by its name in ListModelMetadata (bert-base-cased); "
        "null: none.",
    )
    model_package_group: str | None = Field(
        default=None,
        pattern=MODEL_PACKAGE_GROUP_PATTERN,
        description="A group of the model registry in which each test registers a version of each configuration, and "
        "which stays; null: a group of the test's own, which is removed with it.",
    )

    @property
    def jobs_each(self) -> int:
        """The jobs of one configuration: one that recommends, and one for each instance type that is named."""
        recommending = self.job in ("default", "both")
        return recommending + (0 if self.job == "default" else len(self.instance_types) or 1)

    @property
    def combinations(self) -> int:
        """The load tests of one instance type: one for each combination of ``environment_parameters``."""
        return math.prod(len(values) for values in self.environment_parameters.values())


class BenchBuildSettings(SettingsModel):
    """Multi-model endpoints: what ``tritonstack capacity bench`` does in CodeBuild."""

    users: Annotated[tuple[Annotated[int, Field(ge=1, le=1000)], ...], Field(strict=False, min_length=1)] = Field(
        default=(1, 2, 4, 8), description="Callers at once, one level after the other."
    )
    payload_format: Literal["binary", "json", "both"] = Field(default="binary", description="Of the requests.")
    models: Annotated[tuple[Name, ...], Field(strict=False, min_length=1)] | None = Field(
        default=None,
        description="The models that are measured; null, and of an endpoint that has none of them: all of its models.",
    )
    stop_latency_ms: float | None = Field(
        default=None, gt=0, description="95th percentile after which no more callers are added; null: none."
    )
    max_seconds: float = Field(default=900, ge=60, description="The longest for one model and payload format.")
    compute_type: ComputeType = Field(default="BUILD_GENERAL1_LARGE", description="The CPU machine of the client.")
    image: str = Field(
        default="aws/codebuild/standard:7.0", pattern=BUILD_IMAGE_PATTERN, description="Its image, as builds.image."
    )
    timeout_minutes: int = Field(
        # CodeBuild's limits (API reference: CreateProject)
        default=240,
        ge=SHORTEST_MINUTES,
        le=2160,
        description="The longest that one test takes.",
    )


class GateSettings(SettingsModel):
    """Limits of a load test's figures; ``tritonstack capacity bench --gate`` fails where they do."""

    p95_ms: float | None = Field(
        default=None, gt=0, description="95th percentile of the latency, milliseconds; null: any."
    )
    per_minute: float | None = Field(
        default=None,
        gt=0,
        description="Invocations a minute that an instance must serve within p95_ms; null: the least load measured.",
    )
    usd_per_million: float | None = Field(
        default=None, gt=0, description="What a million invocations may cost at the best rate, USD; null: any."
    )
    unknown_price_fails: bool = Field(default=False, description="Whether a price that no source gives fails.")


class LoadTestSettings(SettingsModel):
    """Load tests in the cloud; {}: the defaults."""

    endpoints: Annotated[tuple[Name, ...], Field(strict=False, min_length=1)] | None = Field(
        default=None, description="The endpoints that may be tested; null: all with one variant."
    )
    archives_only: bool = Field(
        default=False,
        description="Whether the environment's endpoints are configurations to compare, and no stack makes them: their "
        "archives alone are built, and tested by Inference Recommender under the endpoints' names.",
    )
    log_days: LogDays = Field(default=90, description="Days that the logs of tests are kept.")
    recommender: RecommenderSettings = Field(
        default_factory=RecommenderSettings, description="Of single-model endpoints."
    )
    bench: BenchBuildSettings = Field(default_factory=BenchBuildSettings, description="Of multi-model endpoints.")
    gate: GateSettings | None = Field(default=None, description="What the figures must not exceed; null: nothing.")

    def benched_models(self, endpoint: EndpointSettings) -> tuple[str, ...]:
        """The models of a multi-model endpoint that a test measures, in the endpoint's order."""
        named = tuple(each for each in endpoint.models if each in (self.bench.models or ()))
        return named or tuple(endpoint.models)

    def tested(self, endpoints: Sequence[EndpointSettings]) -> tuple[EndpointSettings, ...]:
        """The endpoints that may be tested."""
        if self.endpoints is None:
            return tuple(each for each in endpoints if not (each.variants or each.streams))
        return tuple(each for each in endpoints if each.name in self.endpoints)


def check_load_test(
    settings: LoadTestSettings,
    *,
    endpoints: Sequence[EndpointSettings],
    network: NetworkSettings | None,
    builds: BuildSettings,
) -> Iterator[Problem]:
    """Tests that nothing would run, or that the service would refuse."""
    names = [each.name for each in endpoints]
    for index, name in enumerate(settings.endpoints or ()):
        place = ("load_test", "endpoints", index)
        yield from unknown(name, sorted(names), location=place, kind="endpoints of this file")
    tested = settings.tested(endpoints)
    single = [each for each in tested if not each.multi_model]
    for each in (each for each in single if each.variants):
        yield Problem(
            location=("load_test", "endpoints"),
            found=f"{each.name}, whose requests two variants share",
            allowed="endpoints with one variant: a test measures one model on one fleet",
            advice="Name the other endpoints, or give a variant's model an endpoint of its own while it is measured.",
        )
    for each in (each for each in tested if each.streams):
        yield Problem(
            location=("load_test", "endpoints"),
            found=f"{each.name}, which streams",
            allowed="endpoints that infer: Inference Recommender sends InvokeEndpoint, and measures whole responses",
            advice="Measure it with `tritonstack capacity bench`, which shows the time to the first event.",
        )
    served = sorted({model for each in tested if each.multi_model for model in each.models})
    for index, name in enumerate(settings.bench.models or ()):
        model_place = ("load_test", "bench", "models", index)
        yield from unknown(name, served, location=model_place, kind="models of multi-model endpoints that are tested")
    if settings.archives_only:
        yield from _check_archives_only(endpoints, network=network)
    yield from _check_jobs(settings.recommender, configurations=len(single))
    yield from _check_tests(settings.recommender)
    yield from _check_instance_types(settings.recommender, single=single)
    if settings.gate is not None:
        yield from _check_gate(settings.gate)
    closed = network is not None and network.is_closed and not builds.outside_network
    image = settings.bench.image
    if closed and image.startswith("aws/codebuild/") and any(each.multi_model for each in tested):
        # it would wait for the package index until it times out
        yield Problem(
            location=("load_test", "bench", "image"),
            found=f"{image}, which fetches Python packages, in a network with no outbound internet access",
            allowed="an image in ECR that has the packages; or network.created.nat: one or each; or "
            "builds.outside_network: true",
        )


def _check_jobs(recommender: RecommenderSettings, *, configurations: int) -> Iterator[Problem]:
    jobs = configurations * recommender.jobs_each
    if jobs > MOST_JOBS:
        yield Problem(
            location=("load_test", "recommender"),
            found=f"{jobs} jobs: {recommender.jobs_each} for each of {configurations} single-model endpoints",
            allowed=f"{MOST_JOBS} of one test",
            advice="Name fewer instance types, or the endpoints that are tested (load_test.endpoints).",
        )


def _check_tests(recommender: RecommenderSettings) -> Iterator[Problem]:
    """Combinations of container parameters, each a load test, and values that are no combination of their own."""
    place = ("load_test", "recommender", "environment_parameters")
    if recommender.environment_parameters and recommender.job == "default":
        yield Problem(
            location=place,
            found="parameters with job: default, which chooses them itself",
            allowed="job: advanced or both",
        )
    for name, values in recommender.environment_parameters.items():
        if len(set(values)) < len(values):
            found = f"{', '.join(values)}: a value twice"
            yield Problem(location=(*place, name), found=found, allowed="each value once")
    if recommender.combinations > MOST_TESTS:
        yield Problem(
            location=place,
            found=f"{recommender.combinations} combinations, each a load test of every job",
            allowed=f"{MOST_TESTS} of one job",
            advice="Name fewer variables or values.",
        )


def _check_archives_only(
    endpoints: Sequence[EndpointSettings], *, network: NetworkSettings | None
) -> Iterator[Problem]:
    """What cannot be tested without an endpoint."""
    place = ("load_test", "archives_only")
    multi = [each.name for each in endpoints if each.multi_model]
    if multi:
        yield Problem(
            location=place,
            found=f"true, and {', '.join(multi)} multi-model",
            allowed="single-model endpoints: Inference Recommender tests one archive",
        )
    variants = [each.name for each in endpoints if each.variants]
    if variants:
        yield Problem(
            location=place, found=f"true, and variants of {', '.join(variants)}", allowed="endpoints without variants"
        )
    built = [each.name for each in endpoints if each.image_build is not None]
    if built:
        yield Problem(
            location=place,
            found=f"true, and {', '.join(built)} with an image that the endpoint's deployment builds",
            allowed="an image in ECR, or none: AWS's",
        )
    if network is not None and network.joined is not None:
        yield Problem(
            location=place,
            found="true in a network, whose subnets and security groups a test takes from the deployed model",
            allowed="network: null",
        )


def _check_instance_types(recommender: RecommenderSettings, *, single: list[EndpointSettings]) -> Iterator[Problem]:
    for index, name in enumerate(recommender.instance_types):
        location = ("load_test", "recommender", "instance_types", index)
        instance = load_catalogue().instance(name)
        if name in recommender.instance_types[:index]:
            yield Problem(location=location, found=f"{name} twice", allowed="each instance type once")
        if instance is None:
            yield Problem(location=location, found=shown(name), allowed="GPU instance types of the catalogue")
            continue
        others = sorted({each.name for each in single if each.instance.gpu != instance.gpu})
        if others:
            yield Problem(
                location=location,
                found=f"{name} with {instance.gpu}, and archives of {', '.join(others)} are for another GPU",
                allowed="instance types with the GPU of every single-model endpoint that is tested",
                advice="An archive is built for one GPU. Give such endpoints an environment of their own.",
            )


def _check_gate(gate: GateSettings) -> Iterator[Problem]:
    place = ("load_test", "gate")
    if gate.p95_ms is None and gate.usd_per_million is None:
        yield Problem(
            location=place, found="neither p95_ms nor usd_per_million", allowed="one of the two, or gate: null"
        )
    if gate.per_minute is not None and gate.p95_ms is None:
        found = f"{gate.per_minute:g} without p95_ms"
        yield Problem(location=(*place, "per_minute"), found=found, allowed="the load at which p95_ms holds")
