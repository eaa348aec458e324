"""``alarms`` and ``prices``: thresholds of alarms, notified addresses, and the price of an instance hour."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from tritonstack.catalogue import load_catalogue
from tritonstack.catalogue.price_file import project_prices
from tritonstack.catalogue.prices import hosting_price, service_prices
from tritonstack.config.fields import SettingsModel
from tritonstack.config.patterns import EMAIL_PATTERN, NOT_BLANK_PATTERN
from tritonstack.config.yaml_loader import shown
from tritonstack.errors import Location, Problem

if TYPE_CHECKING:
    from tritonstack.config.endpoint import EndpointSettings


MINUTES_IN_A_DAY = 24 * 60
"""An alarm looks at a day at most where its periods are shorter than an hour (API reference: PutMetricAlarm)."""


class ErrorThresholds(SettingsModel):
    """Thresholds of errors. The defaults are this project's: set them from the endpoint's usual number of errors."""

    server_error_percent: float = Field(
        default=1.0, gt=0, le=100, description="Share of a minute's requests that end with 5XX, percent."
    )
    server_errors: int = Field(
        default=3, ge=1, description="And so many at least, so that one failed request of a quiet minute is no alarm."
    )
    model_error_percent: float = Field(
        default=5.0,
        gt=0,
        le=100,
        description="Share of a minute's requests that the container responds to with an error, clients' own included.",
    )
    model_errors: int = Field(default=10, ge=1, description="And so many at least.")


class Thresholds(ErrorThresholds):
    """Thresholds of an endpoint's alarms.

    The defaults are ours, for an endpoint without measurements: set them from a load test.
    """

    p99_latency_ms: float = Field(
        default=1000, gt=0, description="What one request in a hundred may take in the model, milliseconds."
    )
    cache_hit_percent: float = Field(
        default=50,
        gt=0,
        le=100,
        description="Multi-model mode. Share of requests whose model is loaded already: an alarm where it is lower …",
    )
    loading_wait_ms: float = Field(
        default=1000, gt=0, description="Multi-model mode. … while a request waits longer than this for its model."
    )
    disk_percent: float = Field(
        default=85, gt=0, le=100, description="Single-model mode. How full an instance's disk may be, percent."
    )
    gpu_memory_percent: float = Field(
        default=95,
        gt=0,
        le=100,
        description="Single-model mode. How full the GPUs' memory may be, percent, on average over an instance's GPUs.",
    )
    no_traffic_minutes: int | None = Field(
        default=None,
        ge=1,
        le=MINUTES_IN_A_DAY,
        description="So long without a single request is an alarm; null: an endpoint may be idle.",
    )
    budget_usd_per_hour: float | None = Field(
        default=None, gt=0, description="What the endpoint's instances may cost an hour, USD; null: no alarm."
    )


class AlarmSettings(SettingsModel):
    """The alarms of an environment."""

    email: Annotated[
        tuple[Annotated[str, Field(pattern=EMAIL_PATTERN, max_length=254)], ...], Field(strict=False, max_length=20)
    ] = Field(
        default=(),
        description="Addresses that alarms notify; each confirms a message first. Others subscribe.",
    )
    runbooks: str = Field(
        default="tritonstack docs operations",
        pattern=NOT_BLANK_PATTERN,
        max_length=300,
        description="Where the page Operations is read, such as its URL in your repository; each alarm names its "
        "paragraph.",
    )
    thresholds: Thresholds = Field(
        default_factory=Thresholds, description="Of every endpoint that has none of its own."
    )


def check_prices(prices: Mapping[str, float]) -> Iterator[Problem]:
    """Instance types and other priced things that there are none of."""
    for name in prices:
        if load_catalogue().instance(name) is None and name not in service_prices():
            allowed = f"GPU instance types of the catalogue, {', '.join(service_prices())}"
            yield Problem(location=("prices", name), found=shown(name), allowed=allowed)


def check_thresholds(
    *,
    endpoint: EndpointSettings,
    location: Location,
    alarms: AlarmSettings | None,
    prices: Mapping[str, float],
    region: str,
    project: Path,
) -> Iterator[Problem]:
    """Thresholds that no alarm uses, and budgets without a known price.

    ``project``: the folder whose ``prices.json`` may know a price. Raises InputError where that file is wrong.
    """
    own = endpoint.alarms
    place: Location = (*location, "alarms")
    if own is not None and alarms is None:
        yield Problem(
            location=place,
            found="thresholds, and the environment has no alarms",
            allowed="thresholds where `alarms` is set",
            advice="Set alarms: {} for the environment.",
        )
    if endpoint.multi_model:
        unread, reason = ("disk_percent", "gpu_memory_percent"), "fill by design on a multi-model endpoint"
    else:
        unread, reason = ("cache_hit_percent", "loading_wait_ms"), "are of a cache, which a single model has not"
    for field in unread:
        if own is not None and field in own.model_fields_set:
            found = f"{getattr(own, field)} with mode: {endpoint.mode}"
            yield Problem(location=(*place, field), found=found, allowed=f"nothing: {' and '.join(unread)} {reason}")
    thresholds = own or (alarms.thresholds if alarms else Thresholds())
    if own is None or "budget_usd_per_hour" not in own.model_fields_set:
        place = ("alarms", "thresholds")
    if thresholds.budget_usd_per_hour is None or alarms is None:
        return
    for name in dict.fromkeys(each.instance_type for each in endpoint.type_settings):
        if name in prices or hosting_price(instance_type=name, region=region, own=project_prices(project)) is not None:
            continue
        yield Problem(
            location=(*place, "budget_usd_per_hour"),
            found=f"{thresholds.budget_usd_per_hour} for endpoint {endpoint.name}, and no source gives the price "
            f"of {name} in {region}",
            allowed="a budget where the price is known",
            advice=f"`tritonstack capacity prices update`, or set its price: prices: {{{name}: <USD an hour>}}",
        )
