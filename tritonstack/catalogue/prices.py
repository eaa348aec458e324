"""On-demand prices of instances and services, as public sources quote them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from tritonstack.catalogue.data_file import read_data


@dataclass(frozen=True, kw_only=True)
class HostingPrice:
    """An on-demand list price."""

    usd_per_hour: float  # of one instance
    component: str  # the part of SageMaker that the source names (``hosting``, ``batch transform``, ``not stated``)
    source: str  # where the figure stands
    date: str | None  # of the source (``2025-02-03``); None where it has none
    kind: str = "on-demand list price"  # what it is, in a few words, where it is no list price of today

    @property
    def short(self) -> str:
        """Short description of the source, with its date, and its component where that is not hosting."""
        dated = f" of {self.date}" if self.date else ""
        part = "" if self.component == "hosting" else f", component {self.component}"
        return f"{self.kind}{dated}{part}"


Prices = Mapping[tuple[str, str], HostingPrice]
"""(region, instance type) → price."""


def hosting_price(*, instance_type: str, region: str, own: Prices | None = None) -> HostingPrice | None:
    """The price of ``instance_type`` (``ml.g4dn.xlarge``) in ``region``; None where no source gives it.

    ``own``: prices that go before the catalogue's: those of ``price_file.project_prices``.
    """
    return (own or {}).get((region, instance_type)) or carried_prices().get((region, instance_type))


@dataclass(frozen=True, kw_only=True)
class ServicePrice:
    """An on-demand list price other than an instance's: a NAT gateway, a key, an alarm."""

    usd: float  # for one unit
    unit: str  # ``hour`` or ``month``
    source: str  # where the figure stands
    date: str | None  # of the source; None where it has none
    note: str = ""  # a remark on the source, if there is one


ANY_REGION = "any"
"""In place of a region: AWS lists one price for all of them."""


@lru_cache(maxsize=1)
def service_prices() -> Mapping[str, Mapping[str, ServicePrice]]:
    """Name (``nat-gateway``) → region, or ``ANY_REGION`` → price, of everything but instances."""
    priced = read_data("service_prices.json")["prices"]
    return {
        name: {region: ServicePrice(unit=entry["unit"], **row) for region, row in entry["regions"].items()}
        for name, entry in priced.items()
    }


def service_price(*, name: str, region: str) -> ServicePrice | None:
    """The price of ``name`` (``nat-gateway``) in ``region``; None where no source gives it."""
    regions = service_prices().get(name, {})
    return regions.get(region) or regions.get(ANY_REGION)


@lru_cache(maxsize=1)
def carried_prices() -> Prices:
    """The prices of the catalogue, which public sources quote."""
    regions = read_data("hosting_prices.json")["regions"]
    return {(region, name): HostingPrice(**row) for region, rows in regions.items() for name, row in rows.items()}
