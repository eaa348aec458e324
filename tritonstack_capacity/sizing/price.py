"""What an instance costs an hour, and who says so: the environment file, the measurements, or the catalogue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from tritonstack.catalogue.prices import hosting_price
from tritonstack.errors import InputError, Problem
from tritonstack_capacity.sizing.measurement import Measurement
from tritonstack_capacity.sizing.number import ABOVE_ZERO, is_above_zero


@dataclass(frozen=True, kw_only=True)
class InstancePrice:
    """A price with its source, in words.

    Attributes:
        usd_per_hour: of one instance.
        source: who says so, with the date where one is known.
    """

    usd_per_hour: Decimal
    source: str


PriceOf = Callable[[Measurement], InstancePrice | None]
"""The price of a measurement's instance type; None where nobody gives it: then it is unknown, never zero."""


def prices(*, region: str, overrides: Mapping[str, float], project: Path | None = None) -> PriceOf:
    """Prices in ``region``: by ``overrides`` (instance type → USD an hour), else measured, else listed.

    Listed prices are those of ``project``'s own ``prices.json``, else the catalogue's.

    Raises:
        InputError: an override that is no price (1e300).
    """
    given = {name: Decimal(str(price)) for name, price in overrides.items()}
    wrong = {name: price for name, price in given.items() if not is_above_zero(price)}
    if wrong:
        problems = [
            Problem(field=f"prices: {name}", found=str(price), allowed=ABOVE_ZERO) for name, price in wrong.items()
        ]
        raise InputError(problems)

    def price_of(row: Measurement) -> InstancePrice | None:
        if row.instance_type in given:
            return InstancePrice(usd_per_hour=given[row.instance_type], source="the environment file")
        if row.usd_per_hour is not None:
            return InstancePrice(usd_per_hour=row.usd_per_hour, source="the measurements")
        listed = hosting_price(instance_type=row.instance_type, region=region, project=project)
        if listed is None:
            return None
        date = f", {listed.date}" if listed.date else ""
        source = f"{listed.source} ({region}, component {listed.component}{date})"
        return InstancePrice(usd_per_hour=Decimal(str(listed.usd_per_hour)), source=source)

    return price_of
