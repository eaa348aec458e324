"""One named endpoint of an environment."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tritonstack import naming
from tritonstack.catalogue import InstanceType, load_catalogue
from tritonstack.catalogue.releases import RELEASE_PATTERN
from tritonstack.config.alarms import Thresholds
from tritonstack.config.container import ContainerSettings
from tritonstack.config.data_capture import DataCapture
from tritonstack.config.fields import ECR_PATTERN, Name, SettingsModel, choices
from tritonstack.config.rollout import Rollout
from tritonstack.config.scaling import Scaling
from tritonstack.config.verification import VerificationSettings

SAGEMAKER_DEFAULT_AMI = "sagemaker-default"
"""The value of ``host_ami`` that leaves the choice to SageMaker."""

PRODUCTION_INSTANCES = 2
"""AWS advises two instances or more behind a multi-model endpoint (SageMaker developer guide)."""


class Timeouts(SettingsModel):
    """How long SageMaker waits while an instance starts."""

    model_download_seconds: int = Field(
        default=600, ge=60, le=3600, description="For the download of model data to one instance, seconds."
    )
    container_startup_seconds: int = Field(
        default=600, ge=60, le=3600, description="For the container to answer /ping, seconds."
    )


class EndpointMetrics(SettingsModel):
    """``MetricsConfig`` of the endpoint's configuration (API reference; developer guide, "Detailed observability")."""

    detailed: bool | None = Field(
        default=None,
        description="Detailed observability: OpenTelemetry metrics of GPUs, hosts and the container's Prometheus "
        "endpoint, for PromQL in CloudWatch. null: SageMaker's default, which is on, in either mode, for "
        "configurations made after 17 June 2026. Of containers AWS names vLLM and SGLang; that it finds Triton's "
        "metrics (container.allow_metrics) is UNVERIFIED.",
    )
    enhanced: bool = Field(
        default=False,
        description="CloudWatch's metrics with the dimensions InstanceId and AcceleratorId too, each charged as a "
        "metric. AWS's page names single-model endpoints; on a multi-model endpoint it is UNVERIFIED.",
    )
    publish_seconds: Literal[10, 30, 60] = Field(
        default=60,
        description="Seconds between two figures of what instances use (with enhanced also of invocations). SageMaker "
        "takes up to 300; the alarms, the dashboard and scaling need one a minute.",
    )


class LocalSettings(SettingsModel):
    """What only the local runtime reads."""

    max_loaded_models: int | None = Field(
        default=None,
        ge=1,
        description="Models that one local container holds before the least recently used one goes; null: no limit.",
    )


class Endpoint(SettingsModel):
    """A SageMaker endpoint with one production variant that serves models with Triton."""

    name: Name = Field(description="Name within the environment; at SageMaker it is <environment>-<name>.")
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
        pattern=r"^ml\.[a-z0-9-]+\.[a-z0-9]+$",
        description="GPU instance type (ml.g4dn.xlarge). Multi-model mode takes types with a single GPU.",
        json_schema_extra=choices(load_catalogue().instances),
    )
    initial_instance_count: int = Field(
        default=1,
        ge=1,
        description="Instances to start with; unless set the minimum of scaling. A production multi-model endpoint "
        "takes two or more, and two unless set.",
    )
    models: Annotated[tuple[Name, ...], Field(strict=False, min_length=1)] = Field(
        description="What the endpoint serves: folders under model_repos/, each of which stands for all its archives, "
        "or single archives of theirs; exactly one archive in single-model mode."
    )
    model_cache: Literal["enabled", "disabled"] | None = Field(
        default=None,
        description=(
            "Multi-model mode: enabled (the default there) keeps models loaded between calls; disabled unloads and "
            "deletes a model after each call."
        ),
    )
    container: ContainerSettings = Field(
        default_factory=ContainerSettings, description="What the Triton container is told."
    )
    timeouts: Timeouts = Field(default_factory=Timeouts, description="Time limits while an instance starts.")
    host_ami: str | None = Field(
        default=None,
        description=(
            "Host AMI (InferenceAmiVersion), which decides the NVIDIA driver. null: the one that suits the release's "
            "CUDA; sagemaker-default: whatever SageMaker takes for the instance type."
        ),
        json_schema_extra={
            "anyOf": [
                {"enum": [*(ami.name for ami in load_catalogue().host_amis), SAGEMAKER_DEFAULT_AMI]},
                {"type": "null"},
            ]
        },
    )
    image: str | None = Field(
        default=None,
        max_length=255,
        pattern=ECR_PATTERN,
        description="Image URI in ECR to use instead of AWS's image of the release, which still says what is in it.",
    )
    additional_backends: Annotated[tuple[str, ...], Field(strict=False)] = Field(
        default=(), description="Triton backends that the image or the archives bring beside those of the release."
    )
    accept_unlisted_instance_type: bool = Field(
        default=False,
        description=(
            "Multi-model mode: take a single-GPU type that AWS does not list for it (g6, g6e). Whether SageMaker "
            "accepts it is not verified."
        ),
    )
    volume_size_gb: int | None = Field(
        default=None,
        ge=1,
        le=512,
        description="Size of the EBS volume, GB; only for types without local NVMe, which get none.",
    )
    volume_key_arn: str | None = Field(
        default=None,
        pattern=r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:(key|alias)/[A-Za-z0-9:/_-]+$",
        description="KMS key of that volume; refused where the type has local NVMe, which a key does not encrypt.",
    )
    routing: Literal["LEAST_OUTSTANDING_REQUESTS", "RANDOM"] | None = Field(
        default=None,
        description="How SageMaker spreads calls over the instances; null: SageMaker's default. SageMaker's other two "
        "are made for prompts and not offered: PREFIX_AWARE needs a PrefixLength and a ConcurrencyThreshold, KV_AWARE "
        "works with containers such as the vLLM one alone (API reference, ProductionVariantRoutingConfig).",
    )
    metrics: EndpointMetrics | None = Field(
        default=None, description="What SageMaker publishes of the endpoint (MetricsConfig); null: SageMaker's default."
    )
    data_capture: DataCapture | None = Field(
        default=None, description="Single-model mode: which requests and answers are kept; null: none."
    )
    network_isolation: bool = Field(
        default=False,
        description="Whether the container can reach nothing at all (EnableNetworkIsolation); SageMaker still brings "
        "it its archives.",
    )
    rollout: Rollout | None = Field(
        default=None,
        description="How an update moves the calls to the new fleet (deployment guardrails); null: all at once, and "
        "nothing is watched.",
    )
    scaling: Scaling | None = Field(
        default=None,
        description="How the number of instances follows the load; null: initial_instance_count, whatever the load.",
    )
    verification: VerificationSettings = Field(
        default_factory=VerificationSettings,
        description="What a deployment asks of the endpoint before release records move.",
    )
    alarms: Thresholds | None = Field(
        default=None, description="From where on something is wrong; null: the thresholds of the environment's alarms."
    )
    local: LocalSettings = Field(default_factory=LocalSettings, description="Limits that only the local runtime reads.")

    @property
    def multi_model(self) -> bool:
        """Whether the endpoint is in multi-model mode."""
        return self.mode == "multi-model"

    @property
    def instance(self) -> InstanceType:
        """The catalogue's row of the instance type.

        Raises:
            LookupError: the catalogue has none (never for settings that ``load_environment`` returned).
        """
        row = load_catalogue().instance(self.instance_type)
        if row is None:
            raise LookupError(f"no such GPU instance type in the catalogue: {self.instance_type}")
        return row

    @property
    def platform(self) -> naming.Platform:
        """What an engine for this endpoint depends on; raises as ``instance`` does."""
        return naming.Platform(release=self.release, gpu=self.instance.gpu)

    @property
    def variant_name(self) -> str:
        """The production variant's name."""
        return naming.variant_name(instance_type=self.instance_type)

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
        proposal = load_catalogue().propose_host_ami(self.release)
        return proposal.name if proposal else None

    def container_environment(self) -> dict[str, str]:
        """The container's environment as it is rendered, sorted by name."""
        return self.container.rendered(multi_model=self.multi_model, release=self.release)

    def image_uri(self, region: str) -> str:
        """The image's URI: the override, else AWS's image of the release in ``region``.

        Raises:
            ImageNotFoundError: (a LookupError) AWS has none there.
        """
        return self.image or load_catalogue().image_uri(release=self.release, region=region)

    def sagemaker_name(self, environment: str) -> str:
        """The endpoint's name at SageMaker."""
        return naming.endpoint_name(environment=environment, endpoint=self.name)
