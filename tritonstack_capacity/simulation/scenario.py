"""A scenario: models, rates of requests and instances, as ``tritonstack capacity simulate`` reads it from a file."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from tritonstack.aws.sagemaker_rules import HIGH_PERIODS, LOW_PERIODS
from tritonstack.catalogue import load_catalogue
from tritonstack.config.fields import EnvironmentName, Name, SettingsModel, choices
from tritonstack.config.scaling import Scaling

MOST_MODELS = 1_000_000
MOST_CALLS = 20_000_000
LONGEST_MINUTES = 100_000
MIB = 2**20
SPILL_CALLS = 8
LARGEST = 1e12
"""Of sizes, shares and rates: more is a slip, and its products are no numbers."""
SLOWEST = 0.001
"""Mebibytes a second of a download."""
Share = Annotated[float, Field(ge=1 / LARGEST, le=LARGEST, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, le=LARGEST, allow_inf_nan=False)]
AboveZero = Annotated[float, Field(gt=0, le=LARGEST, allow_inf_nan=False)]
Mebibytes = AboveZero
Seconds = Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]
Milliseconds = Annotated[float, Field(ge=0, le=3_600_000, allow_inf_nan=False)]
FileName = Annotated[str, Field(min_length=1)]


def _not_required(schema: dict[str, Any], field: str) -> None:
    """Make the field optional in the JSON schema: an environment may fill it in."""
    schema["required"].remove(field)


class ServiceTime(SettingsModel):
    """Time that a batch of n requests keeps one instance of the model busy: fixed_ms + per_item_ms * n.

    ``tritonstack capacity bench`` measures both: the latencies of two batch sizes, without load, give a line.
    """

    fixed_ms: Milliseconds = Field(default=0.0, description="Of an execution, whatever its batch size, milliseconds.")
    per_item_ms: Milliseconds = Field(default=0.0, description="More for each request in the batch, milliseconds.")
    distribution: Literal["constant", "exponential"] = Field(
        default="constant", description="Whether that is each execution's time, or the mean of exponential times."
    )


class ModelGroup(SettingsModel):
    """Models that differ only in their rate of requests."""

    name: Name = Field(description="Models are called <name>-<number>, from 0; a single one is called <name>.")
    count: int = Field(default=1, ge=1, le=MOST_MODELS, description="How many models.")
    gpu_memory_mib: Mebibytes = Field(description="GPU memory of one loaded model, all of its instances, MiB.")
    disk_mib: Mebibytes | None = Field(
        default=None, description="Unpacked files of one model, MiB; needed without a manifest."
    )
    download_mib: Mebibytes | None = Field(
        default=None, description="The archive that is downloaded, MiB; null: the manifest's, else as disk_mib."
    )
    manifest: FileName | None = Field(
        default=None,
        description="Manifest of a built archive (.local/archives/<model>.<digest>.json), whose sizes are taken; "
        "from this file's folder.",
    )
    load_seconds: Seconds | None = Field(
        default=None, description="Loading into Triton once the files are there, seconds; null: cold_start's."
    )
    cold_seconds: Seconds | None = Field(
        default=None,
        description="Download, unpacking and loading together, measured as a whole, seconds; what is not download is "
        "loading. null: the sum of the two.",
    )
    cold_results: Annotated[tuple[FileName, ...], Field(strict=False, max_length=100)] = Field(
        default=(),
        description="Files results.json of `tritonstack capacity bench --cold-starts`, whose median is cold_seconds; "
        "from this file's folder.",
    )
    measured_as: Name | None = Field(
        default=None, description="The model's name in cold_results; null: the group's name."
    )
    service: ServiceTime = Field(description="How long an execution takes.")
    max_batch: int = Field(
        default=1,
        ge=1,
        le=100_000,
        description="Dynamic batching: most requests; 1: none. Not given: as the manifest's config.pbtxt says.",
    )
    max_queue_delay_ms: Milliseconds = Field(
        default=0.0,
        description="Dynamic batching: how long a request waits for others while an instance is free. Not given: as "
        "the manifest says.",
    )
    instances: int = Field(
        default=1,
        ge=1,
        le=64,
        description="instance_group's count: executions at once. Not given: as the manifest says.",
    )
    share: Share | None = Field(
        default=None, description="Of all requests, relative to the other groups' shares; null: the number of models."
    )
    zipf: float = Field(
        default=0.0,
        ge=0,
        le=10,
        allow_inf_nan=False,
        description="The k-th model of the group gets requests in proportion to k ** -zipf; 0: all alike.",
    )


class RatePoint(SettingsModel):
    """A rate that holds from a minute on."""

    minute: NotNegative = Field(description="From when on, minutes.")
    per_minute: NotNegative = Field(description="Requests a minute, all models.")


class Arrivals(SettingsModel):
    """When requests come: a curve, or a trace."""

    duration_minutes: Annotated[float, Field(gt=0, le=LONGEST_MINUTES, allow_inf_nan=False)] | None = Field(
        default=None, description="How long requests come; needed with a curve."
    )
    curve: Annotated[tuple[RatePoint, ...], Field(strict=False, max_length=10_000)] = Field(
        default=(), description="Requests a minute over time; each holds until the next, the first is at minute 0."
    )
    process: Literal["poisson", "even"] = Field(
        default="poisson", description="Requests of the curve independently of each other, or at equal distances."
    )
    trace: FileName | None = Field(
        default=None,
        description="CSV, also packed by gzip, with the columns time_seconds,model, in the order of time, instead of a "
        "curve; from this file's folder.",
    )


class Instance(SettingsModel):
    """The instances that models run on."""

    model_config = ConfigDict(json_schema_extra=lambda schema: _not_required(schema, "type"))

    type: str = Field(
        description="SageMaker instance type; its GPU memory, disk and price are the catalogue's. Needed without an "
        "environment.",
        json_schema_extra=choices(load_catalogue().instances),
    )
    region: str = Field(default="us-east-1", description="Whose price is taken.")
    count: int = Field(default=1, ge=1, le=10_000, description="Instances at the beginning; without scaling, always.")
    gpu_memory_mib: Mebibytes | None = Field(default=None, description="All of its GPUs'; null: the catalogue's.")
    reserved_gpu_memory_mib: NotNegative = Field(
        default=0.0, description="Of it, not for models: CUDA contexts, Triton's pools."
    )
    disk_mib: Mebibytes | None = Field(default=None, description="For models' files; null: the catalogue's disk.")
    max_loaded_models: int | None = Field(default=None, ge=1, description="Most models at once, as the local runtime.")
    concurrent_executions: int | None = Field(
        default=None,
        ge=1,
        le=1024,
        description="Executions that the GPU does at once, each as fast as alone; null: the greatest `instances` of a "
        "group.",
    )
    usd_per_hour: AboveZero | None = Field(
        default=None, description="Price of one; null: the catalogue's, where it has one."
    )


class ColdStart(SettingsModel):
    """From a request of a model that is not loaded to its first execution."""

    download_mib_per_second: Annotated[float, Field(ge=SLOWEST, le=LARGEST, allow_inf_nan=False)] = Field(
        default=100.0, description="Download and unpacking of an archive; downloads do not slow each other."
    )
    load_seconds: Seconds = Field(default=3.0, description="Loading into Triton, for groups that do not say.")
    unload_seconds: Seconds = Field(default=0.0, description="Unloading of an evicted model.")
    parallel_loads: int = Field(default=2, ge=1, le=64, description="Loads at once in one container.")
    patience_seconds: Seconds = Field(
        default=2.0,
        description="How long a load waits for an idle model to evict, before the least recently used one takes no "
        "new calls.",
    )
    keep_on_disk: bool = Field(
        default=True,
        description="An unloaded model's files stay while there is disk; false: as the local runtime. With model_cache "
        "disabled they never do.",
    )


class Autoscaling(SettingsModel):
    """Speed of scaling, which AWS does not publish."""

    metric_delay_seconds: Seconds = Field(default=60.0, description="From a period's end to its value.")
    startup_seconds: Seconds = Field(default=300.0, description="From the decision to an instance that takes requests.")
    periods_out: int = Field(
        default=HIGH_PERIODS, ge=1, le=60, description="Periods above the target before instances come."
    )
    periods_in: int = Field(
        default=LOW_PERIODS, ge=1, le=120, description="Periods under 0.9 of it before instances go."
    )


Routing = Literal["loaded", "least_outstanding", "random"]


def _instance_or_environment(schema: dict[str, Any]) -> None:
    _not_required(schema, "instance")
    schema["anyOf"] = [{"required": ["instance"]}, {"required": ["environment"]}]


class Scenario(SettingsModel):
    """A fleet that could be."""

    model_config = ConfigDict(json_schema_extra=_instance_or_environment)

    description: str = Field(default="", max_length=1000, description="What it is, for the report.")
    environment: EnvironmentName | None = Field(
        default=None,
        description="What environments/<name>.yaml deploys: instance type, count, price, disk, scaling, routing, model "
        "cache and models are taken from it where this file does not say them.",
    )
    endpoint: Name | None = Field(default=None, description="Which of its endpoints; null: the only one.")
    instance: Instance = Field(description="What models run on. Needed without an environment.")
    models: Annotated[tuple[ModelGroup, ...], Field(strict=False, min_length=1, max_length=1000)] = Field(
        description="Groups of models."
    )
    arrivals: Arrivals = Field(description="When requests come.")
    cold_start: ColdStart = Field(default=ColdStart(), description="How models are loaded and unloaded.")
    model_cache: Literal["enabled", "disabled"] = Field(
        default="enabled",
        description="disabled: a model is unloaded, and its files are deleted, as soon as its requests are done.",
    )
    routing: Routing = Field(
        default="loaded",
        description="How calls spread over instances, which SageMaker does not publish in full. loaded: to one that "
        "has the model, while it has few calls of it; least_outstanding: "
        "to the one with the fewest calls in progress; random: to any.",
    )
    spill_calls: int = Field(
        default=SPILL_CALLS,
        ge=1,
        description="With routing loaded: so many calls of a model in progress on an instance send a further one to "
        "another instance, which loads it, too. Calls that waited for a load are not counted.",
    )
    scaling: Scaling | None = Field(default=None, description="As in an environment file; schedules are not simulated.")
    autoscaling: Autoscaling = Field(default=Autoscaling(), description="How fast scaling is.")
    latency_limit_ms: AboveZero | None = Field(
        default=None, description="What the 95th percentile of all requests' latency may be at most, milliseconds."
    )
    warm_up_minutes: NotNegative = Field(
        default=0.0, description="Requests before this are simulated, and left out of the shares and percentiles."
    )
    thrash_seconds: AboveZero = Field(
        default=300.0, description="A model that is loaded again within this time after it was evicted is thrash."
    )
