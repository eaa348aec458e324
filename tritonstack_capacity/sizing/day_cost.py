"""What a day costs on each measured configuration, so that the cheapest is not the cheapest of one moment alone."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from tritonstack_capacity.sizing.capacity import CapacityTable
from tritonstack_capacity.sizing.daily_curve import DailyCurve
from tritonstack_capacity.sizing.scaling_advice import scaling_advice


def with_day(table: CapacityTable, *, curve: DailyCurve, safety_factor: Decimal, least: int) -> CapacityTable:
    """``table`` with the cost of a day for each row that keeps the limit and has a price.

    Each hour has the instances that its load needs at the target (measured rate x ``safety_factor``), at least
    ``least``. So large instances are dear where most hours are quiet, however cheap they are at the load.
    """
    found = {}
    for row in table.rows:
        advice = scaling_advice(row, safety_factor=safety_factor, curve=curve, least=least)
        if row.meets_latency and advice.usd_per_day is not None:
            found[row] = advice.usd_per_day[0]
    return replace(table, usd_per_day=found)
