"""On-demand prices of instances and services: the project's ``prices.json``, else public sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tritonstack.catalogue.data_file import read_data

PRICES_FILE = "prices.json"
"""The file in a project's folder that ``tritonstack capacity prices update`` writes."""


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
        """What it is in a few words, with its date, and its component where that is not hosting."""
        dated = f" of {self.date}" if self.date else ""
        part = "" if self.component == "hosting" else f", component {self.component}"
        return f"{self.kind}{dated}{part}"


Prices = Mapping[tuple[str, str], HostingPrice]
"""(region, instance type) → price."""


def hosting_price(
    *, instance_type: str, region: str, project: Path | None = None, own: Prices | None = None
) -> HostingPrice | None:
    """The price of ``instance_type`` (``ml.g4dn.xlarge``) in ``region``; None where no source gives it.

    Args:
        instance_type: SageMaker's name.
        region: the region.
        project: the folder whose ``prices.json``, where it has one, goes before the catalogue's prices.
        own: prices that go before the catalogue's, in place of ``project``.

    Raises:
        InputError: the project's file is wrong, with every problem.
    """
    if own is None:
        own = {} if project is None else project_prices(project)
    return own.get((region, instance_type)) or carried_prices().get((region, instance_type))


@dataclass(frozen=True, kw_only=True)
class ServicePrice:
    """An on-demand list price other than an instance's: a NAT gateway, a key, an alarm."""

    usd: float  # for one unit
    unit: str  # ``hour`` or ``month``
    source: str  # where the figure stands
    date: str | None  # of the source; None where it has none
    note: str = ""  # what a reader must know of the source; empty where nothing is


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


def project_prices(project: Path) -> Prices:
    """The prices of a project's own file; empty where it has none.

    Raises InputError where the file is wrong, with every problem.
    """
    file = project / PRICES_FILE
    try:
        stat = file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    return _read(file, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=8)
def _read(file: Path, _changed: int, _size: int) -> Prices:

    from tritonstack.catalogue.price_file import read_price_file  # noqa: PLC0415 - pydantic; most projects have no file

    return read_price_file(file).prices()
