"""``endpoints``: one SageMaker endpoint that serves models with Triton."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator

from tritonstack import naming
from tritonstack.catalogue import InstanceType, load_catalogue
from tritonstack.catalogue.triton_releases import RELEASE_PATTERN
from tritonstack.config.alarms import Thresholds
from tritonstack.config.capacity_reservation import (
    RESERVATION_CHARACTERS,
    RESERVATION_PATTERN,
    check_capacity_reservation,
)
from tritonstack.config.container import ContainerSettings, check_container
from tritonstack.config.endpoint_metrics import EndpointMetrics, check_metrics
from tritonstack.config.fields import MAXIMUM_NAME, Name, SettingsModel, Site, choices, repeated
from tritonstack.config.instance_pools import (
    INSTANCE_TYPE_PATTERN,
    LEAST_PROVISION_SECONDS,
    LONGEST_PROVISION_SECONDS,
    MOST_POOLS,
    POOL_ROUTING,
    check_pools,
    preferred_type,
)
from tritonstack.config.patterns import TAG_VALUE_PATTERN, VARIANT_PATTERN
from tritonstack.config.rollout import Rollout, check_rollout
from tritonstack.config.scaling import PRODUCTION_INSTANCES, Scaling, check_scaling
from tritonstack.config.triton_release import SAGEMAKER_DEFAULT_AMI, ImageBuild, ImageSetting, check_release
from tritonstack.config.variants import VariantSettings, check_variants
from tritonstack.errors import Location, Problem, listing, nearest
from tritonstack.naming import NAME_PATTERN


class DataCapture(SettingsModel):
    """Requests and responses that are kept below ``captured/<endpoint>/`` of the artifact bucket, under its key."""

    percentage: int = Field(ge=1, le=100, description="How many of a hundred requests are kept.")
    days: int = Field(default=30, ge=1, description="Days until what was kept is deleted.")


LONGEST_MINUTES = 50
"""A custom resource ends after an hour (CloudFormation user guide); the rest is for a last call and the answer."""


class VerificationSettings(SettingsModel):
    """The check after an endpoint's update: it runs the requested config, and changed models respond as expected."""

    models: int = Field(
        default=20,
        ge=0,
        le=500,
        description="How many of the models whose digest or platform changed are sent their sample requests; 0 sends "
        "none, and the endpoint's config is checked all the same.",
    )
    minutes: int = Field(
        default=LONGEST_MINUTES,
        ge=1,
        le=LONGEST_MINUTES,
        description="After this time a deployment whose models have not all responded fails, minutes.",
    )


class Timeouts(SettingsModel):
    """How long SageMaker waits while an instance starts."""

    model_download_seconds: int = Field(
        default=600, ge=60, le=3600, description="For the download of model data to one instance, seconds."
    )
    container_startup_seconds: int = Field(
        default=600, ge=60, le=3600, description="For the container to respond to /ping, seconds."
    )


class LocalSettings(SettingsModel):
    """Settings that only the local runtime reads."""

    max_loaded_models: int | None = Field(
        default=None,
        ge=1,
        description="Models that one local container holds before the least recently used one goes; null: no limit.",
    )


def _either(schema: dict[str, Any]) -> None:
    """JSON Schema: a file has one of each two."""
    pairs = (("models", "variants"), ("instance_type", "instance_types"))
    for first, _ in pairs:
        schema["required"].remove(first)
    schema["allOf"] = [{"anyOf": [{"required": [name]} for name in pair]} for pair in pairs]


class EndpointSettings(SettingsModel):
    """A SageMaker endpoint that serves models with Triton: one production variant, or the two of ``variants``."""

    model_config = ConfigDict(json_schema_extra=_either)

    name: Name = Field(description="Name within the environment; at SageMaker it is <environment>-<name>.")
    description: str | None = Field(
        default=None,
        pattern=TAG_VALUE_PATTERN,
        max_length=256,
        description="Text of the tag `description` on the endpoint (purpose, owner, ticket); null: no such tag.",
    )
    mode: Literal["multi-model", "single-model"] = Field(
        description="multi-model: many archives behind one endpoint, loaded on demand. single-model: exactly one."
    )
    release: str = Field(
        pattern=RELEASE_PATTERN,
        description='Triton release ("24.09", in quotes): decides the image, TensorRT, CUDA, Python and backends. One '
        "that is not in the catalogue needs an image of your own, and is taken for the release before it.",
        json_schema_extra={"anyOf": [choices(load_catalogue().releases), {"pattern": RELEASE_PATTERN}]},
    )
    instance_type: str = Field(
        pattern=INSTANCE_TYPE_PATTERN,
        description="GPU instance type (ml.g4dn.xlarge). Multi-model mode takes types with a single GPU. Left out "
        "where `instance_types` name them.",
        json_schema_extra=choices(load_catalogue().instances),
    )
    instance_types: Annotated[
        tuple[Annotated[str, Field(pattern=INSTANCE_TYPE_PATTERN)], ...], Field(strict=False, max_length=MOST_POOLS)
    ] = Field(
        default=(),
        description="Single-model mode, instead of instance_type: instance pools, two to five GPU types in order of "
        "preference. Where AWS has no capacity of the first, SageMaker provisions the next (tritonstack docs "
        "instance-pools); []: instance_type alone.",
    )
    provision_seconds: int | None = Field(
        default=None,
        ge=LEAST_PROVISION_SECONDS,
        le=LONGEST_PROVISION_SECONDS,
        description="How long SageMaker tries to provision instances before the operation fails, downloads and starts "
        "not included; null: SageMaker's default.",
    )
    initial_instance_count: int = Field(
        default=1,
        ge=1,
        description="Instances to start with; unless set the minimum of scaling. A production multi-model endpoint "
        "takes two or more, and two unless set.",
    )
    models: Annotated[tuple[Name, ...], Field(strict=False, min_length=1)] = Field(
        description="What the endpoint serves: folders under model_repos/, each of which means all its archives, "
        "or single archives of theirs; exactly one archive in single-model mode. Left out where `variants` name them."
    )
    model_cache: Literal["enabled", "disabled"] | None = Field(
        default=None,
        description="Multi-model mode: enabled (the default there) keeps models loaded between requests; disabled "
        "unloads and deletes a model after each request.",
    )
    container: ContainerSettings = Field(
        default_factory=ContainerSettings, description="Settings of the Triton container."
    )
    capacity_reservation: str | None = Field(
        default=None,
        pattern=RESERVATION_PATTERN,
        max_length=RESERVATION_CHARACTERS,
        description="ARN of an ML capacity reservation or a SageMaker training plan for endpoints, of the instance "
        "type; instances start in it alone, and the endpoint stops when it ends. null: on demand.",
    )
    timeouts: Timeouts = Field(default_factory=Timeouts, description="Time limits while an instance starts.")
    host_ami: str | None = Field(
        default=None,
        description="Host AMI (InferenceAmiVersion), which decides the NVIDIA driver. null: the newest of the "
        "release's CUDA major version; sagemaker-default: what SageMaker takes for the instance type (driver 470 with "
        "CUDA 11.4 on g4dn, g5 and p4d, driver 535 with CUDA 12.2 on g6 and p5), refused where that is older than the "
        "release's CUDA major version.",
        json_schema_extra={
            "anyOf": [
                choices([*(ami.name for ami in load_catalogue().host_amis), SAGEMAKER_DEFAULT_AMI]),
                {"type": "null"},
            ]
        },
    )
    image: ImageSetting | None = Field(
        default=None,
        description="An image in place of AWS's of the release, whose contents it is taken to have: its URI in ECR, "
        "or what a deployment builds it from. Engines are built in the URI's image, else in AWS's.",
    )
    role_arn: str | None = Field(
        default=None,
        pattern=r"^arn:aws[a-z-]*:iam::[0-9]{12}:role/\S+$",
        description="ARN of a role of your own that the containers run under, of the environment's account; you keep "
        "its policy, which `tritonstack preflight --role-policy` prints. null: the stack makes one.",
    )
    additional_backends: Annotated[tuple[str, ...], Field(strict=False)] = Field(
        default=(), description="Triton backends that the image or the archives add to those of the release."
    )
    accept_unlisted_instance_type: bool = Field(
        default=False,
        description="Multi-model mode: take a single-GPU type that AWS does not list for it (g6, g6e). Whether "
        "SageMaker accepts it is not verified.",
    )
    routing: Literal["LEAST_OUTSTANDING_REQUESTS", "RANDOM"] | None = Field(
        default=None,
        description="How SageMaker spreads requests over the instances; null: SageMaker's default. Its other two "
        "are made for prompts and not offered: PREFIX_AWARE needs a PrefixLength and a ConcurrencyThreshold, KV_AWARE "
        "works with containers such as the vLLM one alone (API reference, ProductionVariantRoutingConfig).",
    )
    metrics: EndpointMetrics | None = Field(
        default_factory=EndpointMetrics,
        description="What SageMaker publishes of the endpoint; null: SageMaker's own defaults, among them detailed "
        "observability, which is charged by the gigabyte.",
    )
    data_capture: DataCapture | None = Field(
        default=None, description="Single-model mode: which requests and responses are kept; null: none."
    )
    network_isolation: Literal[False, True, "everywhere"] = Field(
        default=False,
        description="Whether the container can reach nothing at all (EnableNetworkIsolation of the Model); SageMaker "
        "still brings it its archives. everywhere: the endpoint configuration says so, too, where policies of your "
        "account ask for `sagemaker:NetworkIsolation` of CreateEndpointConfig; whether SageMaker takes both is "
        "UNVERIFIED.",
    )
    rollout: Rollout | None = Field(
        default=None,
        description="How an update moves the requests to the new fleet (deployment guardrails); null: all at once, and "
        "nothing is watched.",
    )
    scaling: Scaling | None = Field(
        default=None,
        description="How the number of instances follows the load; null: initial_instance_count, whatever the load.",
    )
    variant: str | None = Field(
        default=None,
        pattern=VARIANT_PATTERN,
        max_length=MAXIMUM_NAME,
        description="Name of the one production variant at SageMaker (VariantName), AllTraffic in AWS's examples; "
        "null: the instance type, g4dn-xlarge. Not with `scaling`: SageMaker refuses another instance type of a "
        "scaled variant that keeps its name.",
    )
    variants: Annotated[tuple[VariantSettings, ...], Field(strict=False, max_length=2)] = Field(
        default=(),
        description="Single-model mode: two production variants that share the requests by weight (A/B, "
        "tritonstack docs updates#two-variants), each with an archive and a fleet of its own; []: one variant.",
    )
    verification: VerificationSettings = Field(
        default_factory=VerificationSettings,
        description="How a deployment verifies the endpoint before release records move.",
    )
    alarms: Thresholds | None = Field(
        default=None, description="Thresholds of its alarms; null: those of the environment's alarms."
    )
    local: LocalSettings = Field(default_factory=LocalSettings, description="Limits that only the local runtime reads.")

    @model_validator(mode="before")
    @classmethod
    def _named_elsewhere(cls, value: Any) -> Any:
        """``models`` of a file that names them in ``variants``, ``instance_type`` of one that lists several."""
        value = preferred_type(value)
        variants = value.get("variants") if isinstance(value, Mapping) else None
        if not isinstance(variants, list | tuple) or not variants or "models" in value:
            return value
        named = [each.get("model") if isinstance(each, Mapping) else getattr(each, "model", None) for each in variants]
        # What is no name is reported where it is, and once.
        models = [each if re.fullmatch(NAME_PATTERN, str(each)) else "refused" for each in named]
        return {**value, "models": models}

    @property
    def multi_model(self) -> bool:
        """Whether the endpoint is in multi-model mode."""
        return self.mode == "multi-model"

    @property
    def streams(self) -> bool:
        """Whether the endpoint's responses are streams; all of its variants do, or none (``check_streaming``)."""
        return self.variant_settings[0].container.streams

    @property
    def variant_settings(self) -> tuple[EndpointSettings, ...]:
        """The settings of each production variant: the endpoint's own where it has one variant."""
        return tuple(each.of(self) for each in self.variants) or (self,)

    @property
    def types(self) -> tuple[str, ...]:
        """Every instance type that the endpoint may run on, the preferred one first: several with instance pools."""
        return self.instance_types or (self.instance_type,)

    def on(self, instance_type: str) -> EndpointSettings:
        """The settings as they hold on one of its types."""
        return self.model_copy(update={"instance_type": instance_type})

    @property
    def type_settings(self) -> tuple[EndpointSettings, ...]:
        """The settings of each production variant as they hold for each instance type that it may run on."""
        return tuple(each.on(name) for each in self.variant_settings for name in each.types)

    @property
    def platform_settings(self) -> tuple[EndpointSettings, ...]:
        """The endpoint's settings as they hold for each of its platforms, the preferred one first.

        Instance pools may have several GPUs, and an archive is built for one.
        """
        if not self.instance_types:
            return (self,)
        found: dict[naming.Platform, EndpointSettings] = {}
        for name in self.instance_types:
            each = self.on(name)
            found.setdefault(each.platform, each)
        return tuple(found.values())

    @property
    def model_places(self) -> tuple[Location, ...]:
        """Where each of ``models`` is in the endpoint's settings."""
        if self.variants:
            return tuple(("variants", number, "model") for number in range(len(self.variants)))
        return tuple(("models", number) for number in range(len(self.models)))

    @property
    def instance(self) -> InstanceType:
        """The catalogue's row of the instance type; LookupError for settings that ``load_environment`` would refuse."""
        row = load_catalogue().instance(self.instance_type)
        if row is None:
            raise LookupError(f"no such GPU instance type in the catalogue: {self.instance_type}")
        return row

    @property
    def platform(self) -> naming.Platform:
        """The platform of this endpoint's engines; raises as ``instance`` does."""
        return naming.Platform(release=self.release, gpu=self.instance.gpu)

    @property
    def variant_name(self) -> str:
        """The production variant's name; an endpoint with two has ``variant_settings`` for each."""
        name = self.variants[0].name if self.variants else None
        return self.variant or naming.variant_name(instance_type=self.types[0], name=name, pools=self.instance_types)

    @property
    def routing_strategy(self) -> str | None:
        """``RoutingStrategy`` to render, or None to leave it to SageMaker."""
        return self.routing or (POOL_ROUTING if self.instance_types else None)

    @property
    def model_cache_setting(self) -> Literal["Enabled", "Disabled"] | None:
        """``ModelCacheSetting`` as SageMaker spells it; None in single-model mode, which has no such setting."""
        if not self.multi_model:
            return None
        return "Disabled" if self.model_cache == "disabled" else "Enabled"

    @property
    def inference_ami_version(self) -> str | None:
        """``InferenceAmiVersion`` to render, or None to leave it to SageMaker."""
        if self.host_ami is not None:
            return None if self.host_ami == SAGEMAKER_DEFAULT_AMI else self.host_ami
        catalogue = load_catalogue()
        proposal = catalogue.propose_host_ami(self.release, instance=catalogue.instance(self.instance_type))
        return proposal.name if proposal else None

    def container_environment(self) -> dict[str, str]:
        """The container's environment as it is rendered, sorted by name."""
        return self.container.rendered(multi_model=self.multi_model, release=self.release)

    def image_uri(self, region: str) -> str:
        """The image's URI: the override, else AWS's image in ``region``. Raises LookupError where there is none.

        Where a deployment builds the image (``image_build``), AWS's: in it engines are built.
        """
        own = self.image if isinstance(self.image, str) else None
        return own or load_catalogue().image_uri(release=self.release, region=region)

    @property
    def image_build(self) -> ImageBuild | None:
        """The source that a deployment builds the containers' image from; None where the image is in ECR already."""
        return self.image if isinstance(self.image, ImageBuild) else None

    def sagemaker_name(self, environment: str) -> str:
        """The endpoint's name at SageMaker."""
        return naming.endpoint_name(environment=environment, endpoint=self.name)


def check_endpoint(*, endpoint: EndpointSettings, location: Location, site: Site) -> Iterator[Problem]:
    """Everything that is wrong with one endpoint whose fields have the right types."""
    if site.environment is not None:
        name = endpoint.sagemaker_name(site.environment)
        if len(name) > MAXIMUM_NAME:
            yield Problem(
                location=(*location, "name"),
                found=f"{name} ({len(name)} characters)",
                allowed=f"at most {MAXIMUM_NAME} characters for <environment>-<name>, the endpoint's name at SageMaker",
            )
    yield from repeated(endpoint.models, location=(*location, "variants" if endpoint.variants else "models"))
    yield from _check_mode(endpoint=endpoint, location=location, site=site)
    yield from _check_streaming(endpoint=endpoint, location=location)
    yield from check_variants(endpoint=endpoint, location=location)
    yield from check_pools(endpoint=endpoint, location=location)
    yield from _check_variant_name(endpoint=endpoint, location=location)
    yield from check_release(endpoint=endpoint, location=location, site=site)
    yield from check_metrics(endpoint=endpoint, location=location)
    yield from check_capacity_reservation(endpoint=endpoint, location=location, site=site)
    yield from _check_fleet(endpoint=endpoint, location=location, site=site)
    for number, variant in enumerate(endpoint.variants):
        if variant.model_fields_set - {"name", "model", "weight"}:  # else it has the endpoint's settings
            place = (*location, "variants", number)
            yield from _check_fleet(endpoint=variant.of(endpoint), location=place, site=site)


def _check_variant_name(*, endpoint: EndpointSettings, location: Location) -> Iterator[Problem]:
    """Check that nothing else names the production variant, and that nothing scales one of a name of its own."""
    if endpoint.variant is None:
        return
    place = (*location, "variant")
    if endpoint.variants:
        yield Problem(
            location=place,
            found=f"{endpoint.variant} beside variants",
            allowed="null: each of `variants` has a name",
            advice="Remove `variant`.",
        )
    elif endpoint.scaling is not None:
        yield Problem(
            location=place,
            found=f"{endpoint.variant} on a scaled endpoint",
            allowed="null with `scaling`: SageMaker refuses another instance type of a scaled variant that keeps its "
            "name, so that the type is in the name there (API reference, UpdateEndpoint)",
            advice="Remove `variant`, or `scaling`.",
        )


def _check_fleet(*, endpoint: EndpointSettings, location: Location, site: Site) -> Iterator[Problem]:
    """Check the settings that a production variant may have of its own; ``endpoint``: the settings that hold for it."""
    yield from check_rollout(endpoint=endpoint, location=location)
    yield from check_scaling(endpoint=endpoint, location=location, site=site)
    for number, name in enumerate(endpoint.instance_types):
        yield from _check_instance_type(
            endpoint=endpoint.on(name), place=(*location, "instance_types", number), site=site
        )
    if not endpoint.instance_types:
        yield from _check_instance_type(endpoint=endpoint, place=(*location, "instance_type"), site=site)
    # Of several types the one with the least memory.
    rows = [row for each in endpoint.type_settings if (row := load_catalogue().instance(each.instance_type))]
    instance = min(rows, key=lambda row: row.memory_gib, default=None)
    yield from check_container(endpoint=endpoint, instance=instance, location=location)


def _check_mode(*, endpoint: EndpointSettings, location: Location, site: Site) -> Iterator[Problem]:
    """Fields that only one of the two modes has."""
    if endpoint.multi_model:
        too_few = endpoint.initial_instance_count < PRODUCTION_INSTANCES
        if site.production and too_few and endpoint.scaling is None:  # else scaling.minimum is reported
            yield Problem(
                location=(*location, "initial_instance_count"),
                found=str(endpoint.initial_instance_count),
                allowed=f"{PRODUCTION_INSTANCES} or more on a production multi-model endpoint",
                advice="With one instance, every model is gone while that instance is replaced.",
            )
        if endpoint.data_capture is not None:
            yield Problem(
                location=(*location, "data_capture"),
                found="data capture on a multi-model endpoint",
                allowed="null: SageMaker captures no data there (developer guide: Model Deployment Feature Matrix)",
                advice="Serve the model from a single-model endpoint, or have the client keep what it sends.",
            )
        return
    if len(endpoint.models) > 1 and not endpoint.variants:
        yield Problem(
            location=(*location, "models"),
            found=f"{len(endpoint.models)} models on a single-model endpoint",
            allowed="exactly one",
            advice="Set mode: multi-model, make an ensemble of them, give each an endpoint of its own, or compare two "
            "that take the same requests: variants.",
        )
    unlisted = "true" if endpoint.accept_unlisted_instance_type else None
    for place, value, allowed in (
        (("model_cache",), endpoint.model_cache, "nothing: only multi-model mode has a model cache"),
        (("local", "max_loaded_models"), endpoint.local.max_loaded_models, "null: the one model stays loaded"),
        (("accept_unlisted_instance_type",), unlisted, "false: every GPU type serves a single model"),
    ):
        if value is not None:
            found = f"{value} on a single-model endpoint"
            yield Problem(location=(*location, *place), found=found, allowed=allowed, advice="Remove the field.")


def _check_streaming(*, endpoint: EndpointSettings, location: Location) -> Iterator[Problem]:
    """All variants stream or none; and what SageMaker may not do with streams is off."""
    streaming = [each.container.streams for each in endpoint.variant_settings]
    if any(streaming) and not all(streaming):
        yield Problem(
            location=(*location, "variants"),
            found="variants of which one streams (container.inference_type)",
            allowed="the same inference_type of both: a request reaches either variant",
        )
    if any(streaming) and endpoint.data_capture is not None:
        yield Problem(
            location=(*location, "data_capture"),
            found="data capture on an endpoint that streams (container.inference_type: generate_stream)",
            allowed="null: no page of AWS says that streamed responses are captured",
            advice="Remove data_capture, or keep the responses in the client.",
        )


def _check_instance_type(*, endpoint: EndpointSettings, place: Location, site: Site) -> Iterator[Problem]:
    name, catalogue = endpoint.instance_type, load_catalogue()
    instance = catalogue.instance(name)
    if instance is None:
        reason = catalogue.omitted_types.get(name)
        yield Problem(
            location=place,
            found=name + (f" ({reason})" if reason else ""),
            allowed=f"a GPU type of the catalogue: {listing(catalogue.instances)}",
            advice=nearest(name, catalogue.instances),
        )
        return
    if site.region in catalogue.regions and site.region not in instance.regions:
        hosted = [row.name for row in catalogue.instances.values() if site.region in row.regions]
        yield Problem(
            location=place,
            found=f"{name}, which SageMaker does not host in {site.region}",
            allowed=f"a type that is hosted there: {listing(hosted)}",
            advice=f"The type is hosted in {', '.join(instance.regions)}.",
        )
    support = instance.multi_model_support
    accepted = support == "listed" or (support == "unlisted" and endpoint.accept_unlisted_instance_type)
    if endpoint.multi_model and not accepted:
        gpus = f"{name} with {instance.gpu_count} GPUs in multi-model mode"
        found = gpus if support == "refused" else f"{name}, which AWS does not list for multi-model mode"
        listed = [row.name for row in catalogue.instances.values() if row.multi_model]
        yield Problem(
            location=place,
            found=found,
            allowed=f"a type with one GPU that AWS lists for multi-model mode: {listing(listed)}",
            advice="Take a single-GPU type, or set mode: single-model."
            if support == "refused"
            else "If you know that SageMaker takes it, set accept_unlisted_instance_type: true on this endpoint.",
        )
