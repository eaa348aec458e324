"""Deployed endpoints, read back from the local AWS: endpoint → endpoint config → model, and the endpoint's tags."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any
from urllib.parse import quote, urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, CredentialRetrievalError

from tritonstack.naming import LOCAL_MAX_LOADED_MODELS_TAG
from tritonstack_local import REGION
from tritonstack_local.keys import OWN_ROUTES, TOKEN_HEADER
from tritonstack_local.runtime.settings import RuntimeSettings

DEPLOYING = frozenset({"Creating", "Updating", "SystemUpdating", "RollingBack"})
ENDED = frozenset({"Deleting", "Failed", "OutOfService", "UpdateRollbackFailed"})
SHIFTING = frozenset({"ActivatingTraffic", "Baking"})
"""What a new fleet's variant is while it takes a share of the requests (API reference, ProductionVariantStatus)."""


class DeploymentError(Exception):
    """A deployment that cannot run here; the message is the reason."""


class UnreachableError(Exception):
    """The local AWS does not respond, or not as expected."""


class RoleRefusedError(CredentialRetrievalError):
    """SageMaker cannot assume an execution role: it does not exist, or does not trust SageMaker."""


@dataclass(frozen=True, kw_only=True)
class S3Location:
    """A bucket and a key, or a prefix that ends with a slash."""

    bucket: str
    key: str

    @classmethod
    def parse(cls, url: str) -> S3Location:
        """``s3://bucket/key``. Raises DeploymentError for anything else."""
        parts = urlsplit(url)
        if parts.scheme != "s3" or not parts.netloc or not parts.path.strip("/"):
            raise DeploymentError(f"model data {url!r} is no s3://bucket/key")
        return cls(bucket=parts.netloc, key=parts.path.removeprefix("/"))

    def below(self, relative: str) -> S3Location:
        """The object at a path below this prefix."""
        return S3Location(bucket=self.bucket, key=f"{self.key.rstrip('/')}/{relative}")

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}"


@dataclass(frozen=True, kw_only=True)
class DeployedModel:
    """A SageMaker Model's only container."""

    name: str
    image: str  # the requested container image; it names the Triton release
    environment: Mapping[str, str]  # the container's environment variables
    multi_model: bool
    data: S3Location  # the archive, or in multi-model mode the prefix of the archives
    cache_enabled: bool  # MultiModelConfig.ModelCacheSetting
    role: str  # ExecutionRoleArn: downloads and the container's log are requests of its sessions


@dataclass(frozen=True, kw_only=True)
class DeployedConfig:
    """A production variant of an endpoint config; of a variant with instance pools, one of its instance types."""

    name: str  # the config's
    variant: str
    instance_type: str
    instance_count: int
    download_seconds: float  # ModelDataDownloadTimeoutInSeconds
    startup_seconds: float  # ContainerStartupHealthCheckTimeoutInSeconds
    model: DeployedModel
    component: str | None = None  # the inference component that the container is of; None: the variant itself
    pooled: bool = False  # whether it is one of instance pools
    metrics_seconds: int = 60  # MetricPublishFrequencyInSeconds
    enhanced_metrics: bool = False  # EnableEnhancedMetrics


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """The new fleet's share of the requests: instances that are on, and all of its instances."""

    instances: int
    of: int

    @property
    def share(self) -> float:
        """Its share of the requests, 0 to 1."""
        return self.instances / self.of


class Reported(Enum):
    """State of a deployment after a report."""

    ENDED = "ended"
    IN_PROGRESS = "in_progress"
    NOT_AWAITED = "not awaited"


@dataclass(frozen=True, kw_only=True)
class DeployedComponent:
    """An inference component as the local AWS has it."""

    name: str
    endpoint: str
    variant: str
    generation: int  # counts its changes
    serving: str | None  # the Model that serves; None before the first copy is up
    pending: str | None  # the Model of the change in progress, which may be the same; None where there is none
    copies: int  # that should run once the change is done


@dataclass(frozen=True, kw_only=True)
class DeployedEndpoint:
    """An endpoint as DescribeEndpoint shows it."""

    name: str
    status: str
    config: str | None  # the config in service; None before the first fleet is in service
    pending: str | None  # the config that is being deployed, or None
    created: str
    generation: str  # differs between two endpoints of one name and between two deployments of one
    traffic: Traffic | None = None  # the pending config's share of the requests; None while it has none
    instance_counts: Mapping[str, int] = field(default_factory=dict)  # variant → current instance count
    # (config, variant) → weight, of the config in service and of the pending one
    weights: Mapping[tuple[str, str], float] = field(default_factory=dict)
    # (config, variant) with instance pools → instance type → how many of its instances there are
    pools: Mapping[tuple[str, str], Mapping[str, int]] = field(default_factory=dict)
    max_loaded_models: int | None = None  # how many models the local container may hold (tag), or None
    tags: Mapping[str, str] = field(default_factory=dict)
    has_components: bool = False  # whether its variants have no model, and inference components run in its place
    components: tuple[DeployedComponent, ...] = ()

    def runs(self, config: DeployedConfig) -> bool:
        """Whether there are instances for it: one of instance pools may have none."""
        counts = self.pools.get((config.name, config.variant), {})
        return not config.pooled or counts.get(config.instance_type, 0) > 0

    def weight(self, config: DeployedConfig) -> float | None:
        """Its weight among the variants; of one of instance pools its part by its instances. None: unknown."""
        weight = self.weights.get((config.name, config.variant))
        counts = self.pools.get((config.name, config.variant), {})
        if weight is None or not config.pooled or not sum(counts.values()):
            return weight
        return weight * counts.get(config.instance_type, 0) / sum(counts.values())


def emulator_client(
    settings: RuntimeSettings, service: str, *, read_timeout: float = 20.0, keys: Mapping[str, str] | None = None
) -> Any:
    """A boto3 client of the local AWS. ``keys``: a session's, as boto3 takes them; None for the administrator's."""
    administrator = {name.lower(): value for name, value in settings.keys.credentials().items()}
    signed: Any = keys or administrator
    return boto3.client(
        service,
        endpoint_url=settings.emulator_url,
        region_name=REGION,
        **signed,
        config=Config(
            retries={"total_max_attempts": 2, "mode": "standard"},
            connect_timeout=5,
            read_timeout=read_timeout,
            max_pool_connections=8,
            s3={"addressing_style": "path"},
        ),
    )


def ask_emulator(settings: RuntimeSettings, path: str, question: Any = None, *, seconds: float = 10.0) -> Any:
    """Status and document of one of the emulator's own routes; a ``question`` is sent by POST.

    Raises UnreachableError: no response, or no JSON.
    """
    url = f"{settings.emulator_url}{OWN_ROUTES}{path}"
    body = None if question is None else json.dumps(question).encode()
    request = urllib.request.Request(url, data=body, headers={TOKEN_HEADER: settings.keys.token})  # noqa: S310
    try:
        try:
            with urllib.request.urlopen(request, timeout=seconds) as answer:  # noqa: S310  (the emulator, on loopback)
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as refused:
            return refused.code, json.loads(refused.read())
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise UnreachableError(f"{url}: {error!r}") from error


class EmulatorReader:
    """Reads deployed endpoints, and reports on deployments. Methods block; one thread at a time calls them."""

    def __init__(self, settings: RuntimeSettings, *, restarted: Callable[[], None] = lambda: None) -> None:
        """Makes the client; sends nothing yet. ``restarted`` is called when another emulator responds than before."""
        self._settings = settings
        self._sagemaker = emulator_client(settings, "sagemaker")
        self._restarted = restarted
        self._instance: str | None = None

    def mark(self) -> str:
        """A mark that changes with anything about the endpoints; cheap to request. Raises UnreachableError."""
        status, answer = ask_emulator(self._settings, "mark")
        if status != 200 or "mark" not in answer:
            raise UnreachableError(f"the emulator responded {status}, not with its mark: {answer}")
        before, self._instance = self._instance, answer.get("instance")
        if before not in (None, self._instance):
            self._restarted()
        return str(answer["mark"])

    def endpoints(self) -> tuple[DeployedEndpoint, ...]:
        """Every endpoint, as listed and described. Raises UnreachableError."""
        try:
            pages = self._sagemaker.get_paginator("list_endpoints").paginate()
            summaries = [summary for page in pages for summary in page["Endpoints"]]
            found = [self._endpoint(summary["EndpointName"]) for summary in summaries]
        except (BotoCoreError, ClientError) as error:
            raise UnreachableError(str(error)) from error
        endpoints = [endpoint for endpoint in found if endpoint is not None]
        if any(endpoint.has_components for endpoint in endpoints):
            components = self._components()
            endpoints = [replace(one, components=tuple(components.get(one.name, ()))) for one in endpoints]
        return tuple(endpoints)

    def _components(self) -> dict[str, list[DeployedComponent]]:
        """Endpoint → its components. By a route of our own: DescribeInferenceComponent shows no change in progress."""
        status, answer = ask_emulator(self._settings, "components")
        found: dict[str, list[DeployedComponent]] = {}
        try:
            for each in answer["components"]:
                serving, pending = each.pop("serving"), each.pop("pending")
                component = DeployedComponent(
                    serving=serving and serving["ModelName"], pending=pending and pending["ModelName"], **each
                )
                found.setdefault(component.endpoint, []).append(component)
        except (KeyError, TypeError) as error:
            raise UnreachableError(f"the emulator responded {status}, not with its components: {error!r}") from error
        return found

    def component_config(self, component: DeployedComponent) -> DeployedConfig:
        """What a component's container is started with. Raises DeploymentError, UnreachableError."""
        try:
            endpoint = self._sagemaker.describe_endpoint(EndpointName=component.endpoint)
            config = self._sagemaker.describe_endpoint_config(EndpointConfigName=endpoint["EndpointConfigName"])
            variant = next(v for v in config["ProductionVariants"] if v["VariantName"] == component.variant)
            model = self._sagemaker.describe_model(ModelName=component.pending or component.serving)
            found = self._sagemaker.describe_inference_component(InferenceComponentName=component.name)
        except StopIteration as error:
            raise DeploymentError(f"variant {component.variant} of {component.name} is gone") from error
        except ClientError as error:
            raise DeploymentError(str(error)) from error
        except BotoCoreError as error:
            raise UnreachableError(str(error)) from error
        startup = found["Specification"].get("StartupParameters") or {}
        metrics = config.get("MetricsConfig") or {}
        made = self._variant(config["EndpointConfigName"], {**variant, **startup}, model, metrics)
        return replace(made, component=component.name)

    def report_component(self, component: DeployedComponent, *, outcome: str, reason: str = "") -> bool:
        """Report the end of a component's change; False where none is awaited. Raises UnreachableError."""
        report = {"generation": component.generation, "outcome": outcome, "reason": reason}
        status, answer = ask_emulator(self._settings, f"components/{quote(component.name)}/report", report)
        if status not in (200, 409):
            raise UnreachableError(f"the emulator responded {status} to a report: {answer}")
        return bool(status == 200)

    def _endpoint(self, name: str) -> DeployedEndpoint | None:
        """An endpoint, or None where it was deleted since it was listed."""
        try:
            return self._describe(name)
        except ClientError as error:
            if "Could not find" in str(error) or "not found" in str(error).lower():
                return None
            raise

    def _describe(self, name: str) -> DeployedEndpoint:
        answer = self._sagemaker.describe_endpoint(EndpointName=name)
        listed = self._sagemaker.list_tags(ResourceArn=answer["EndpointArn"]).get("Tags", [])
        tags = {tag["Key"]: tag["Value"] for tag in listed}
        limit = tags.get(LOCAL_MAX_LOADED_MODELS_TAG, "")
        status = answer["EndpointStatus"]
        summary = answer.get("PendingDeploymentSummary") or {}
        pending = summary.get("EndpointConfigName")
        config = answer.get("EndpointConfigName")
        if status == "Creating":
            pending, config = pending or config, None
        created = str(answer.get("CreationTime"))
        return DeployedEndpoint(
            name=name,
            status=status,
            config=config,
            pending=pending if status in DEPLOYING else None,
            created=created,
            traffic=_traffic(summary),
            generation=f"{created} {summary.get('StartTime') or answer.get('LastModifiedTime')}",
            instance_counts={
                variant["VariantName"]: variant.get("CurrentInstanceCount") or variant.get("DesiredInstanceCount") or 1
                for variant in answer.get("ProductionVariants") or []
            },
            weights={
                (fleet["EndpointConfigName"], variant["VariantName"]): variant.get("CurrentWeight", 1.0)
                for fleet in (summary, answer)
                for variant in fleet.get("ProductionVariants") or []
            },
            has_components=_has_components(answer),
            pools={
                (fleet["EndpointConfigName"], variant["VariantName"]): {
                    pool["InstanceType"]: pool["CurrentInstanceCount"] for pool in variant["InstancePools"]
                }
                for fleet in (answer, summary)  # the one in progress last: a first config is in both
                for variant in fleet.get("ProductionVariants") or []
                if variant.get("InstancePools")
            },
            max_loaded_models=int(limit) if limit.isdecimal() and int(limit) > 0 else None,
            tags=tags,
        )

    def config(self, name: str) -> tuple[DeployedConfig, ...]:
        """The variants of an endpoint config, each with its model; of instance pools each type, the preferred first.

        Raises DeploymentError, UnreachableError.
        """
        try:
            answer = self._sagemaker.describe_endpoint_config(EndpointConfigName=name)
            variants = [each for variant in answer["ProductionVariants"] for each in _of_types(variant)]
            metrics = answer.get("MetricsConfig") or {}
            models = [self._sagemaker.describe_model(ModelName=variant["ModelName"]) for variant in variants]
        except ClientError as error:
            raise DeploymentError(str(error)) from error
        except BotoCoreError as error:
            raise UnreachableError(str(error)) from error
        return tuple(self._variant(name, *each, metrics) for each in zip(variants, models, strict=True))

    def _variant(
        self, name: str, variant: Mapping[str, Any], model: Mapping[str, Any], metrics: Mapping[str, Any]
    ) -> DeployedConfig:
        return DeployedConfig(
            name=name,
            variant=variant["VariantName"],
            instance_type=variant.get("InstanceType", ""),
            instance_count=variant.get("InitialInstanceCount", 1),
            download_seconds=float(variant.get("ModelDataDownloadTimeoutInSeconds") or 3600),
            startup_seconds=float(variant.get("ContainerStartupHealthCheckTimeoutInSeconds") or 3600),
            model=read_model(model),
            pooled="InstancePools" in variant,
            metrics_seconds=metrics.get("MetricPublishFrequencyInSeconds", 60),
            enhanced_metrics=metrics.get("EnableEnhancedMetrics", False),
        )

    def report(self, *, endpoint: str, config: str, outcome: str, reason: str = "", instances: int = 0) -> Reported:
        """Report the progress of a deployment. Raises UnreachableError.

        ``outcome``: ``in_service``, ``failed`` for a ``reason``, or ``shifted`` to so many ``instances``.
        """
        report = {"endpoint_config_name": config, "outcome": outcome, "reason": reason, "instances": instances}
        status, answer = ask_emulator(self._settings, f"endpoints/{quote(endpoint)}/report", report)
        if status in (404, 409):
            return Reported.NOT_AWAITED
        try:
            return Reported(answer["deployment"])
        except (ValueError, KeyError, TypeError) as error:
            raise UnreachableError(f"the emulator responded {status} to a report: {answer}") from error


def _has_components(answer: Mapping[str, Any]) -> bool:
    """Whether no variant has an image of its own, by DescribeEndpoint."""
    variants = answer.get("ProductionVariants") or []
    return bool(variants) and not any(variant.get("DeployedImages") for variant in variants)


def _of_types(variant: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """A variant, or each of its instance pools as a variant of one type with the Model that this type runs."""
    pools = sorted(variant.get("InstancePools") or [], key=lambda pool: pool["Priority"])
    return [
        {
            **variant,
            "InstanceType": pool["InstanceType"],
            "ModelName": pool.get("ModelNameOverride") or variant["ModelName"],
        }
        for pool in pools
    ] or [variant]


def _traffic(summary: Mapping[str, Any]) -> Traffic | None:
    """Instances of a PendingDeploymentSummary's first variant that receive requests during the shift."""
    for variant in summary.get("ProductionVariants", [])[:1]:
        if SHIFTING & {status["Status"] for status in variant.get("VariantStatus", [])}:
            return Traffic(instances=variant["CurrentInstanceCount"], of=variant["DesiredInstanceCount"])
    return None


def read_model(answer: Mapping[str, Any]) -> DeployedModel:
    """DescribeModel's response. Raises DeploymentError for a model that the runtime cannot serve."""
    name = answer["ModelName"]
    container = answer["PrimaryContainer"]
    return DeployedModel(
        name=name,
        image=container.get("Image", ""),
        environment=dict(container.get("Environment") or {}),
        multi_model=container.get("Mode") == "MultiModel",
        data=S3Location.parse(container.get("ModelDataUrl", "")),
        cache_enabled=(container.get("MultiModelConfig") or {}).get("ModelCacheSetting") != "Disabled",
        role=answer["ExecutionRoleArn"],
    )
