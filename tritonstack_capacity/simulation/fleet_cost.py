"""What a fleet costs: its instances' time by the price, where there is one."""

from __future__ import annotations

from dataclasses import dataclass

from tritonstack.catalogue.prices import hosting_price
from tritonstack.paths import project_folder
from tritonstack_capacity.simulation.scenario import Instance

HOUR = 3600.0
MILLION = 1_000_000


@dataclass(frozen=True, kw_only=True)
class FleetCost:
    """USD; every figure None where the price is unknown.

    Attributes:
        usd_per_hour: of one instance.
        source: of the price, or why it is unknown.
        instance_hours: paid, from an instance's start until it has drained, while calls came.
    """

    usd_per_hour: float | None
    source: str
    instance_hours: float
    hours: float
    calls: int

    @property
    def total(self) -> float | None:
        """Of the whole time."""
        return None if self.usd_per_hour is None else self.usd_per_hour * self.instance_hours

    @property
    def mean_per_hour(self) -> float | None:
        """Of an hour, on average."""
        return None if self.total is None else self.total / self.hours

    @property
    def per_million(self) -> float | None:
        """Of a million calls."""
        return None if self.total is None or not self.calls else self.total * MILLION / self.calls


Price = tuple[float | None, str]
"""USD an hour of one instance, and who says so; None and the reason where nobody does."""


def instance_price(instance: Instance, *, said_by: str) -> Price:
    """What one instance costs. ``said_by``: whose price ``instance`` has, if it has one.

    Raises:
        InputError: the project's own prices cannot be read.
    """
    if instance.usd_per_hour is not None:
        return instance.usd_per_hour, said_by
    listed = hosting_price(instance_type=instance.type, region=instance.region, project=project_folder())
    if listed is None:
        return None, (
            f"no source gives a price of {instance.type} in {instance.region}; "
            "`tritonstack capacity prices update` asks AWS, instance.usd_per_hour sets it"
        )
    date = f", {listed.date}" if listed.date else ""
    return listed.usd_per_hour, f"{listed.source} ({instance.region}, component {listed.component}{date})"


def fleet_cost(price: Price, *, instance_seconds: float, seconds: float, calls: int) -> FleetCost:
    """The cost of so much paid time in so many seconds."""
    usd, source = price
    return FleetCost(
        usd_per_hour=usd, source=source, instance_hours=instance_seconds / HOUR, hours=seconds / HOUR, calls=calls
    )
