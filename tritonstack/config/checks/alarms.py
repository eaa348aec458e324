"""Thresholds against the endpoints that they are of, and prices against the catalogue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from tritonstack.catalogue import Catalogue
from tritonstack.catalogue.prices import hosting_price, service_prices
from tritonstack.config.alarms import AlarmSettings, Thresholds
from tritonstack.config.endpoint import Endpoint
from tritonstack.config.findings import Finding, shown
from tritonstack.config.yaml_source import Location

OF_MULTI_MODEL = ("cache_hit_percent", "loading_wait_ms")
OF_SINGLE_MODEL = ("disk_percent", "gpu_memory_percent")


def check_prices(*, prices: Mapping[str, float], catalogue: Catalogue) -> Iterator[Finding]:
    """Instance types and other priced things that there are none of, and prices of zero or less."""
    for name, price in prices.items():
        if catalogue.instance(name) is None and name not in service_prices():
            allowed = f"GPU instance types of the catalogue, {', '.join(service_prices())}"
            yield Finding(location=("prices", name), found=shown(name), allowed=allowed)
        if price <= 0:
            yield Finding(location=("prices", name), found=str(price), allowed="more than 0 USD an hour")


def check_thresholds(
    *,
    endpoint: Endpoint,
    location: Location,
    alarms: AlarmSettings | None,
    prices: Mapping[str, float],
    region: str | None,
    project: Path,
) -> Iterator[Finding]:
    """Thresholds that no alarm would read, and budgets that nothing can be held against.

    ``project``: the folder whose ``prices.json`` may know a price. Raises InputError where that file is wrong.
    """
    own = endpoint.alarms
    if own is not None:
        yield from _unread(own=own, endpoint=endpoint, location=(*location, "alarms"), alarms=alarms)
    if own is not None and "budget_usd_per_hour" in own.model_fields_set:
        thresholds, place = own, (*location, "alarms")
    else:
        thresholds = own or (alarms.thresholds if alarms else Thresholds())
        place = ("alarms", "thresholds")
    if thresholds.budget_usd_per_hour is not None and region is not None and alarms is not None:
        name = endpoint.instance_type
        if name not in prices and hosting_price(instance_type=name, region=region, project=project) is None:
            yield Finding(
                location=(*place, "budget_usd_per_hour"),
                found=f"{thresholds.budget_usd_per_hour} for endpoint {endpoint.name}, and no source gives the price "
                f"of {name} in {region}",
                allowed="a budget where the price is known",
                advice=f"`tritonstack capacity prices update`, or set its price: prices: {{{name}: <USD an hour>}}",
            )


def _unread(
    *, own: Thresholds, endpoint: Endpoint, location: Location, alarms: AlarmSettings | None
) -> Iterator[Finding]:
    if alarms is None:
        yield Finding(
            location=location,
            found="thresholds, and the environment has no alarms",
            allowed="thresholds where `alarms` is set",
            advice="Set alarms: {} for the environment.",
        )
    other = OF_SINGLE_MODEL if endpoint.multi_model else OF_MULTI_MODEL
    for name in other:
        if name in own.model_fields_set:
            yield Finding(
                location=(*location, name),
                found=f"{getattr(own, name)} with mode: {endpoint.mode}",
                allowed=f"a threshold of {'single' if endpoint.multi_model else 'multi'}-model endpoints",
                advice="Memory and disk of a multi-model endpoint fill by design."
                if endpoint.multi_model
                else "A single model is loaded once and has no cache.",
            )
