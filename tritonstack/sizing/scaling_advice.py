"""What to write under ``scaling:`` for a measured configuration: the target, and the least and greatest counts."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal

from tritonstack.settings.scaling import DEFAULT_SAFETY_FACTOR, SECONDS_IN_A_MINUTE
from tritonstack.sizing.capacity import CapacityRow, instances_for
from tritonstack.sizing.daily_curve import DailyCurve

LEAST_IN_PRODUCTION = 2
"""One instance of a multi-model endpoint would lose every loaded model while it is replaced."""
DIGITS = 4
"""Of the rate that is proposed: no load test tells more."""


@dataclass(frozen=True, kw_only=True)
class ScalingAdvice:
    """The scaling of one endpoint.

    Attributes:
        row: the measured configuration that the numbers hold for.
        peak: invocations a minute in the day's busiest hour.
        requests_per_second: what one instance answered in the load test, rounded down to four digits.
        safety_factor: share of it to aim at: a target at the measured limit would scale when it is too late.
        minimum, maximum: instances, at the target, in the day's quietest and busiest hour.
        hourly: instances in each hour of the day at the target, at least ``minimum``; empty without a daily curve.
        usd_per_day: of ``hourly``, and of the greatest count all day; None without a curve or a price.
    """

    row: CapacityRow
    peak: Decimal
    requests_per_second: Decimal
    safety_factor: Decimal
    minimum: int
    maximum: int
    hourly: tuple[int, ...] = ()
    usd_per_day: tuple[Decimal, Decimal] | None = None

    @property
    def invocations_per_instance(self) -> Decimal:
        """The target of the invocations' policy: calls a minute and instance."""
        return self.requests_per_second * SECONDS_IN_A_MINUTE * self.safety_factor


def scaling_advice(
    row: CapacityRow,
    *,
    safety_factor: Decimal = Decimal(str(DEFAULT_SAFETY_FACTOR)),
    curve: DailyCurve | None = None,
    least: int = LEAST_IN_PRODUCTION,
) -> ScalingAdvice:
    """How to scale ``row``'s configuration.

    Without a curve the load is taken as the busiest hour, and nothing is known of the others: the minimum is ``least``.
    The least count holds in every hour, and the greatest is never below it.
    """
    rate = rounded_down(row.measurement.invocations_per_minute / SECONDS_IN_A_MINUTE)
    target = rate * SECONDS_IN_A_MINUTE * safety_factor
    hourly = () if curve is None else tuple(max(least, instances_for(load, rate=target)) for load in curve.loads)
    peak = row.load if curve is None else curve.peak
    minimum = min(hourly) if hourly else least
    maximum = max(instances_for(peak, rate=target), minimum)
    price = row.price
    usd = None
    if price is not None and hourly:
        usd = (price.usd_per_hour * sum(hourly), price.usd_per_hour * maximum * len(hourly))
    return ScalingAdvice(
        row=row,
        peak=peak,
        requests_per_second=rate,
        safety_factor=safety_factor,
        minimum=minimum,
        maximum=maximum,
        hourly=hourly,
        usd_per_day=usd,
    )


def rounded_down(number: Decimal) -> Decimal:
    """The first four digits of ``number`` (22.8166… → 22.81): so no target is above what was measured."""
    return number.quantize(Decimal(1).scaleb(number.adjusted() - DIGITS + 1), ROUND_DOWN)
