"""An environment: one account and region, its artifacts and its endpoints."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, PrivateAttr, model_validator

from tritonstack import naming
from tritonstack.arns import Arn
from tritonstack.catalogue import load_catalogue
from tritonstack.catalogue.price_file import project_prices
from tritonstack.catalogue.prices import HostingPrice, hosting_price
from tritonstack.config.alarms import AlarmSettings
from tritonstack.config.builds import BuildSettings, LogDays
from tritonstack.config.endpoint import EndpointSettings
from tritonstack.config.fields import (
    GREATEST_NUMBER,
    LEAST_NUMBER,
    Boundary,
    EnvironmentName,
    RolePath,
    SettingsModel,
    TagKey,
    TagValue,
    choices,
)
from tritonstack.config.load_test import LoadTestSettings
from tritonstack.config.network import NetworkSettings
from tritonstack.config.patterns import ACCOUNT_PATTERN
from tritonstack.config.scaling import PRODUCTION_INSTANCES
from tritonstack.config.yaml_loader import shown, unknown
from tritonstack.errors import Problem


class LogSettings(SettingsModel):
    """Retention, besides that of builds (``builds.log_days``) and of flow logs (``network.created.flow_log_days``)."""

    endpoint_days: LogDays | None = Field(
        default=None,
        description="Days that the containers' logs are kept, under the artifacts' key; the stack makes or adopts "
        "their log group. null: SageMaker makes it, and it never expires.",
    )
    function_days: LogDays | None = Field(
        default=None, description="Days that the logs of functions are kept; null: a week to three months, by function."
    )


OWN_PRICE = "the environment's file"
"""Source of the prices in ``prices``."""


KEY_PATTERN = r"arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+"
CREATED = "created"
"""In the place of an ARN: the key that the artifacts stack makes."""


class ArtifactSettings(SettingsModel):
    """The bucket that holds archives. Archives themselves never expire."""

    retain: bool = Field(
        default=True,
        description="Whether bucket and key outlive the stack; false empties and deletes them with it.",
    )
    noncurrent_days: int = Field(
        default=30, ge=1, description="Days until a noncurrent version of an object is deleted."
    )
    incomplete_upload_days: int = Field(default=7, ge=1, description="Days until an unfinished upload is removed.")
    key_arn: str | None = Field(
        default=None,
        pattern=f"^{KEY_PATTERN}$",
        description="A KMS key of your own for archives, logs and alarms, whose policy you keep "
        "(tritonstack docs decisions/0014-network-and-keys); null: one is made.",
    )
    earlier_key: str | None = Field(
        default=None,
        pattern=f"^({CREATED}|{KEY_PATTERN})$",
        description="While the key is changed, the one that objects are still encrypted with, which roles may use as "
        "well: the earlier key's ARN, or `created` for the one that was made here, which then stays "
        "(tritonstack docs updates#change-the-key); null: every object is under the present key.",
    )
    access_log_days: int = Field(default=90, ge=1, description="Days until an access log is deleted.")


class Environment(SettingsModel):
    """One file under environments/: where to deploy, and what."""

    environment: EnvironmentName = Field(description="The environment's name; the file is called <name>.yaml.")
    account: str = Field(pattern=ACCOUNT_PATTERN, description='AWS account, twelve digits in quotes ("123456789012").')
    region: str = Field(
        description="AWS region (us-east-1).",
        json_schema_extra=choices(load_catalogue().regions),
    )
    production: bool = Field(
        description="Whether people depend on it: multi-model endpoints then start with two instances or more."
    )
    permissions_boundary: Boundary = None
    role_path: RolePath = None
    tags: dict[TagKey, TagValue] = Field(
        default={}, max_length=40, description="Tags for every resource (AWS takes 50; some are ours)."
    )
    artifacts: ArtifactSettings = Field(default_factory=ArtifactSettings, description="The bucket that holds archives.")
    builds: BuildSettings = Field(
        default_factory=BuildSettings, description="How and where the environment's models are made."
    )
    logs: LogSettings = Field(default_factory=LogSettings, description="How long log groups keep what was written.")
    network: NetworkSettings | None = Field(
        default=None,
        description="The VPC of containers and builds; null: SageMaker's and CodeBuild's own network.",
    )
    dashboard: bool = Field(default=False, description="Whether CloudWatch gets a dashboard of the environment.")
    alarms: AlarmSettings | None = Field(
        default=None, description="Alarms and the addresses that they notify; {}: the defaults; null: no alarms."
    )
    load_test: LoadTestSettings | None = Field(
        default=None, description="Load tests in the cloud; {}: the defaults; null: nothing is made for them."
    )
    prices: dict[str, Annotated[float, Field(ge=LEAST_NUMBER, le=GREATEST_NUMBER)]] = Field(
        default={},
        description="USD an hour of instance types (ml.g4dn.xlarge: 0.74), and USD of what stands beside them in the "
        "unit of its list price (nat-gateway: 0.045; tritonstack docs prices), above those of prices.json and of the "
        "catalogue: yours, or where they know none.",
    )
    endpoints: Annotated[tuple[EndpointSettings, ...], Field(strict=False)] = Field(
        description="The endpoints, each with a name of its own. []: none yet; the environment is its bucket and key."
    )
    _project: Path | None = PrivateAttr(default=None)

    def in_project(self, project: Path) -> Self:
        """The same, with the folder whose ``prices.json`` its prices are looked up in."""
        placed = self.model_copy()
        placed._project = project
        return placed

    @property
    def project(self) -> Path:
        """The folder that paths of its file are below: above the file's own, else the working directory."""
        return self._project or Path.cwd()

    def price(self, instance_type: str) -> HostingPrice | None:
        """The price of an instance: of ``prices``, the project's ``prices.json``, or the catalogue; None: unknown.

        Raises InputError where ``prices.json`` is wrong.
        """
        own = self.prices.get(instance_type)
        if own is None:
            return hosting_price(instance_type=instance_type, region=self.region, own=project_prices(self._project))
        return HostingPrice(usd_per_hour=own, component="hosting", source=OWN_PRICE, date=None, kind=OWN_PRICE)

    @model_validator(mode="before")
    @classmethod
    def _default_instances(cls, value: Any) -> Any:
        """Set the default of ``initial_instance_count``, which depends on the environment."""
        if not (isinstance(value, dict) and isinstance(value.get("endpoints"), list)):
            return value
        endpoints = []
        for raw in value["endpoints"]:
            scaling = raw.get("scaling") if isinstance(raw, dict) else None
            minimum = scaling.get("minimum") if isinstance(scaling, dict) else getattr(scaling, "minimum", None)
            first = None
            if isinstance(minimum, int) and minimum >= 1:
                first = minimum
            elif isinstance(raw, dict) and raw.get("mode") == "multi-model" and value.get("production") is True:
                first = PRODUCTION_INSTANCES
            endpoints.append(raw if first is None else {"initial_instance_count": first, **raw})
        return {**value, "endpoints": endpoints}

    @property
    def resource_tags(self) -> dict[str, str]:
        """The tags of every resource, made by a stack, a function or a build job."""
        return {**self.tags, naming.ENVIRONMENT_TAG: self.environment}

    @property
    def joined_network(self) -> NetworkSettings | None:
        """The network that containers join; None where they are in SageMaker's own."""
        return self.network if self.network is not None and self.network.joined is not None else None

    @property
    def watched(self) -> bool:
        """Whether it has a stack of dashboard and alarms."""
        return bool(self.hosted_endpoints) and (self.dashboard or self.alarms is not None)

    @property
    def hosted_endpoints(self) -> tuple[EndpointSettings, ...]:
        """The endpoints that stacks make; none where only their archives are tested (``load_test.archives_only``)."""
        return () if self.load_test is not None and self.load_test.archives_only else self.endpoints

    @property
    def tested_endpoints(self) -> tuple[EndpointSettings, ...]:
        """The endpoints that load tests may invoke; none where the environment has no load tests."""
        if self.load_test is None:
            return ()
        return self.load_test.tested(self.endpoints)

    @property
    def benched_in_network(self) -> bool:
        """Whether a build in the environment's network puts load on endpoints."""
        inside = self.joined_network is not None and not self.builds.outside_network
        return inside and any(each.multi_model for each in self.tested_endpoints)

    @property
    def recommended_in_network(self) -> bool:
        """Whether Inference Recommender tests endpoints in the environment's network."""
        return self.joined_network is not None and any(not each.multi_model for each in self.tested_endpoints)

    def endpoint(self, name: str) -> EndpointSettings | None:
        """The endpoint called ``name``, or None."""
        return next((endpoint for endpoint in self.endpoints if endpoint.name == name), None)


def engines_built_on_deploy(environment: Environment, needs_engine: bool) -> bool:
    """Whether a deployment of the environment builds its missing archives and waits for them.

    ``builds.on_deploy`` decides; where it is null, ``needs_engine``: whether an archive needs a TensorRT engine.
    """
    if not environment.endpoints:
        return False
    return needs_engine if environment.builds.on_deploy is None else environment.builds.on_deploy


def check_environment_fields(settings: Environment, *, stem: str) -> Iterator[Problem]:
    """Check an environment's own fields; ``stem`` is its file's name without the suffix."""
    name, region = settings.environment, settings.region
    if name != stem:
        yield Problem(
            location=("environment",),
            found=shown(name),
            allowed=f"{stem}, as the file is called",
            advice=f"Rename the file to {name}.yaml or the environment to {stem}.",
        )
    kind = "a region where SageMaker hosts endpoints"
    yield from unknown(region, load_catalogue().regions, location=("region",), kind=kind)
    for key in settings.tags:
        if key.lower().startswith(("aws:", "tritonstack:")):
            allowed = f"a key that does not begin with {key.lower().partition(':')[0]}:"
            yield Problem(location=("tags", key), found=f"the key {key}", allowed=allowed)
    yield from _check_keys(settings.artifacts, region)
    for index, endpoint in enumerate(settings.endpoints):
        if endpoint.role_arn is not None and (owner := Arn.parse(endpoint.role_arn).account) != settings.account:
            yield Problem(
                location=("endpoints", index, "role_arn"),
                found=f"a role of account {owner}",
                allowed=f"a role of the environment's account, {settings.account}",
            )


def _check_keys(artifacts: ArtifactSettings, region: str) -> Iterator[Problem]:
    for field, key in (("key_arn", artifacts.key_arn), ("earlier_key", artifacts.earlier_key)):
        key_region = region if key in (None, CREATED) else Arn.parse(key).region
        if key_region != region:
            allowed = f"a key in the environment's region, {region}"
            yield Problem(location=("artifacts", field), found=f"a key in {key_region}", allowed=allowed)
    if artifacts.earlier_key is not None and artifacts.earlier_key == (artifacts.key_arn or CREATED):
        yield Problem(
            location=("artifacts", "earlier_key"),
            found=f"{artifacts.earlier_key}, the present key",
            allowed="the key before it, which objects are still encrypted with; or null",
            advice="The present key is artifacts.key_arn, or the created one where that is null.",
        )
