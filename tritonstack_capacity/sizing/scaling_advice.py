"""What to write under ``scaling:`` for a measured configuration: the target, and the least and greatest counts."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal

from tritonstack.settings.scaling import DEFAULT_SAFETY_FACTOR, SECONDS_IN_A_MINUTE
from tritonstack_capacity.sizing.capacity import CapacityRow, instances_for
from tritonstack_capacity.sizing.daily_curve import DailyCurve
from tritonstack_capacity.sizing.number import plain, rounded

LEAST_IN_PRODUCTION = 2
"""One instance of a multi-model endpoint would lose every loaded model while it is replaced."""
TARGET_DIGITS = 9
LEAST_DIGITS = 4
"""Of a rate in seconds; more only where 60 times these is another rate in minutes."""
ANOTHER_RATE = Decimal("1e-6")
"""Of the measured rate: no load test tells as little."""


@dataclass(frozen=True, kw_only=True)
class ScalingAdvice:
    """The scaling of one endpoint.

    Attributes:
        row: the measured configuration that the numbers hold for.
        peak: invocations a minute that the maximum is for: the load, or the curve's busiest hour where that is more.
        invocations_per_instance: the target of the invocations' policy, calls a minute and instance: what one instance
            answered in the load test, by the safety factor.
        safety_factor: share of it to aim at: a target at the measured limit would scale when it is too late.
        minimum, maximum: instances, at the target, in the day's quietest hour and at ``peak``.
        hourly: instances in each hour of the day at the target, at least ``minimum``; empty without a daily curve.
        usd_per_day: of ``hourly``, and of the greatest count all day; None without a curve or a price.
        curve: the day; None where none is known.
    """

    row: CapacityRow
    peak: Decimal
    invocations_per_instance: Decimal
    safety_factor: Decimal
    minimum: int
    maximum: int
    hourly: tuple[int, ...] = ()
    usd_per_day: tuple[Decimal, Decimal] | None = None
    curve: DailyCurve | None = None

    @property
    def requests_per_second(self) -> Decimal:
        """What one instance answered in a second, with the digits that give the settings the same target."""
        return by_the_second(self.row.measurement.invocations_per_minute)

    @property
    def note(self) -> str:
        """Which numbers follow the load and which the curve; empty where their greatest loads are one."""
        if self.curve is None or self.curve.peak == self.row.load:
            return ""
        load, busiest = plain(self.row.load), plain(self.curve.peak)
        if self.curve.peak < self.row.load:
            return (
                f"--load, {load} calls a minute, is above the busiest hour of --daily-curve, {busiest}: the maximum is "
                "for --load, the minimum and the cost of a day are by the curve"
            )
        return (
            f"the busiest hour of --daily-curve, {busiest} calls a minute, is above --load, {load}: the maximum is for "
            "the busiest hour; instances and costs an hour in the table are for --load; give --load "
            f"{busiest} to have both for the busiest hour"
        )


def scaling_advice(
    row: CapacityRow,
    *,
    safety_factor: Decimal = Decimal(str(DEFAULT_SAFETY_FACTOR)),
    curve: DailyCurve | None = None,
    least: int = LEAST_IN_PRODUCTION,
) -> ScalingAdvice:
    """How to scale ``row``'s configuration.

    The maximum is for the load, or for the curve's busiest hour where that is more: neither is left unserved. Without a
    curve nothing is known of quieter hours: the minimum is ``least``. The least count holds in every hour, and the
    greatest is never below it.
    """
    target = rounded(row.measurement.invocations_per_minute * safety_factor, digits=TARGET_DIGITS)
    hourly = () if curve is None else tuple(max(least, instances_for(load, rate=target)) for load in curve.loads)
    peak = row.load if curve is None else max(row.load, curve.peak)
    minimum = min(hourly) if hourly else least
    maximum = max(instances_for(peak, rate=target), minimum)
    price = row.price
    usd = None
    if price is not None and hourly:
        usd = (price.usd_per_hour * sum(hourly), price.usd_per_hour * maximum * len(hourly))
    return ScalingAdvice(
        row=row,
        peak=peak,
        invocations_per_instance=target,
        safety_factor=safety_factor,
        minimum=minimum,
        maximum=maximum,
        hourly=hourly,
        usd_per_day=usd,
        curve=curve,
    )


def by_the_second(rate: Decimal) -> Decimal:
    """``rate`` (a minute) in seconds, with four digits or as many more as it takes for 60 of it to be ``rate`` again.

    Rounded up, by less than a millionth: rounded down, the target would ask for an instance more than the maximum.
    """
    digits = LEAST_DIGITS
    while True:
        found = rounded(rate / SECONDS_IN_A_MINUTE, digits=digits, rounding=ROUND_CEILING)
        if found * SECONDS_IN_A_MINUTE - rate <= rate * ANOTHER_RATE:
            return found
        digits += 1
