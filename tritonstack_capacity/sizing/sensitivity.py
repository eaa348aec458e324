"""How far the recommendation holds: at other loads, other limits, and where the measured rate was too good."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal

from tritonstack_capacity.sizing.capacity import CapacityRow, CapacityTable, Demand, capacity_row, cheapest
from tritonstack_capacity.sizing.number import is_above_zero

LOADS = tuple(Decimal(text) for text in ("0.25", "0.5", "0.8", "0.9", "1", "1.1", "1.25", "1.5", "2", "4"))
RATES = tuple(Decimal(text) for text in ("0.7", "0.8", "0.9", "1"))


@dataclass(frozen=True, kw_only=True)
class Case:
    """One changed assumption.

    Attributes:
        value: the factor of the load or of the measured rates, or the limit in milliseconds.
        recommended: the cheapest row then; None where none keeps the limit.
    """

    value: Decimal
    recommended: CapacityRow | None


@dataclass(frozen=True, kw_only=True)
class Sensitivity:
    """``loads`` and ``rates`` by factor; ``limits``: from each limit on (up to the next) what is cheapest."""

    loads: tuple[Case, ...]
    rates: tuple[Case, ...]
    limits: tuple[Case, ...]


def sensitivity(table: CapacityTable) -> Sensitivity:
    """Which row would cost the least at the load under other assumptions, one changed at a time.

    A factor that makes the load one that nobody could have given is left out.
    """
    load = table.demand.invocations_per_minute
    return Sensitivity(
        loads=tuple(
            Case(value=factor, recommended=_at(table, load=factor)) for factor in LOADS if is_above_zero(load * factor)
        ),
        rates=tuple(Case(value=factor, recommended=_at(table, rate=factor)) for factor in RATES),
        limits=_limits(table),
    )


def _at(table: CapacityTable, *, load: Decimal = Decimal(1), rate: Decimal = Decimal(1)) -> CapacityRow | None:
    demand = replace(table.demand, invocations_per_minute=table.demand.invocations_per_minute * load)
    return cheapest(tuple(_slower(row, demand=demand, rate=rate) for row in table.rows))


def _slower(row: CapacityRow, *, demand: Demand, rate: Decimal) -> CapacityRow:
    measured = replace(row.measurement, invocations_per_minute=row.measurement.invocations_per_minute * rate)
    return capacity_row(measured, demand=demand, price=row.price)


def _limits(table: CapacityTable) -> tuple[Case, ...]:
    """Each limit at which the answer changes, from the strictest that some row keeps."""
    cases: list[Case] = []
    for limit in sorted({row.measurement.latency_ms for row in table.rows}):
        demand = replace(table.demand, latency_ms=limit)
        best = cheapest(tuple(capacity_row(row.measurement, demand=demand, price=row.price) for row in table.rows))
        if best is not None and (not cases or not _same(cases[-1].recommended, best)):
            cases.append(Case(value=limit, recommended=best))
    return tuple(cases)


def _same(one: CapacityRow | None, other: CapacityRow) -> bool:
    return one is not None and one.measurement == other.measurement
