"""Measurements and tables for tests."""

from __future__ import annotations

from decimal import Decimal

from tritonstack_capacity.sizing.capacity import CapacityTable, Demand, capacity_table
from tritonstack_capacity.sizing.measurements import Measurement, prices

UNPRICED_TYPE = "ml.none.xlarge"


def measurement(
    *, name: str = "plain", rate: str = "600", latency: str = "100", usd: str | None = None, type_: str = UNPRICED_TYPE
) -> Measurement:
    """One row; its type is none that the catalogue has a price for, unless named."""
    return Measurement(
        configuration=name,
        instance_type=type_,
        invocations_per_minute=Decimal(rate),
        latency_ms=Decimal(latency),
        usd_per_hour=None if usd is None else Decimal(usd),
    )


def table_of(*rows: Measurement, load: str = "6000", limit: str = "100") -> CapacityTable:
    """The table of ``rows``."""
    return capacity_table(
        rows,
        demand=Demand(invocations_per_minute=Decimal(load), latency_ms=Decimal(limit)),
        price_of=prices(region="us-east-1", overrides={}),
    )
