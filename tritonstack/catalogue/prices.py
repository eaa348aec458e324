"""What an instance of an endpoint costs an hour, as far as public sources tell."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tritonstack.catalogue.data_file import read_data


@dataclass(frozen=True, kw_only=True)
class HostingPrice:
    """An on-demand list price.

    Attributes:
        usd_per_hour: of one instance.
        component: the part of SageMaker that the source names (``hosting``, ``batch transform``, ``not stated``).
        source: where the figure stands.
        date: of the source (``2025-02-03``); None where it has none.
    """

    usd_per_hour: float
    component: str
    source: str
    date: str | None


def hosting_price(*, instance_type: str, region: str) -> HostingPrice | None:
    """The price of ``instance_type`` (``ml.g4dn.xlarge``) in ``region``; None where no source gives it."""
    return _prices().get((region, instance_type))


@lru_cache(maxsize=1)
def _prices() -> dict[tuple[str, str], HostingPrice]:
    regions = read_data("hosting_prices.json")["regions"]
    return {(region, name): HostingPrice(**row) for region, rows in regions.items() for name, row in rows.items()}
