"""The capacity table: instances that each measured configuration needs for a load, which to take, how far it holds."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal
from pathlib import Path

from tritonstack.errors import InputError, Problem, refuse
from tritonstack_capacity.csv_file import CONSTRUCTED_MARK, csv_problem, reading
from tritonstack_capacity.sizing.measurements import (
    ABOVE_ZERO,
    InstancePrice,
    Measurement,
    PriceOf,
    is_above_zero,
    number_of,
)

HOURS = 24
COLUMNS = ("hour", "invocations_per_min")


@dataclass(frozen=True, kw_only=True)
class DailyCurve:
    """``loads[hour]``: invocations a minute in each hour of a day, 24 of them; the greatest is above zero."""

    loads: tuple[Decimal, ...]

    @property
    def peak(self) -> Decimal:
        """The greatest load of the day."""
        return max(self.loads)

    @property
    def least(self) -> Decimal:
        """The smallest load of the day."""
        return min(self.loads)


def read_daily_curve(file: Path) -> DailyCurve:
    """The curve in ``file``.

    Raises:
        InputError: unreadable, not the two columns, not each hour from 0 to 23 once, a load below zero, none above it.
    """
    with reading(file), file.open(newline="", encoding="utf-8-sig") as stream:
        reader = csv.DictReader(stream, strict=True)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise InputError([csv_problem(file, "line 1", ",".join(reader.fieldnames or ()), ",".join(COLUMNS))])
        lines = [(reader.line_num, row) for row in reader]
    return _curve(file, lines)


def _curve(file: Path, lines: list[tuple[int, dict[str | None, str | list[str] | None]]]) -> DailyCurve:
    problems: list[Problem] = []
    loads: dict[int, Decimal] = {}
    for number, row in lines:
        if None in row or None in row.values():
            found = "more or fewer values than columns"
            problems.append(csv_problem(file, f"line {number}", found, "one for each column"))
            continue
        hour, load = (number_of(str(row[column])) for column in COLUMNS)
        if hour is None or hour != hour.to_integral_value() or not 0 <= hour < HOURS:
            problems.append(csv_problem(file, f"line {number}, hour", str(row.get("hour")), "a whole number, 0 to 23"))
        elif int(hour) in loads:
            problems.append(csv_problem(file, f"line {number}, hour", f"{hour} a second time", "each hour once"))
        elif load is None or (load != 0 and not is_above_zero(load)):
            found = str(row.get("invocations_per_min"))
            problems.append(csv_problem(file, f"line {number}, invocations_per_min", found, f"zero, or {ABOVE_ZERO}"))
        else:
            loads[int(hour)] = load
    missing = [str(hour) for hour in range(HOURS) if hour not in loads]
    if not problems and missing:
        problems.append(csv_problem(file, "hour", f"nothing for {', '.join(missing)}", "each hour from 0 to 23"))
    if not problems and not any(loads.values()):
        problems.append(csv_problem(file, "invocations_per_min", "zero all day", "a load above zero in some hour"))
    refuse(problems)
    return DailyCurve(loads=tuple(loads[hour] for hour in range(HOURS)))


MINUTES_IN_AN_HOUR = 60
MILLION = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Demand:
    """Demand on the endpoint."""

    invocations_per_minute: Decimal  # all callers together, above zero
    latency_ms: Decimal  # what the model's latency may be at most, milliseconds, above zero


@dataclass(frozen=True, kw_only=True)
class CapacityRow:
    """A measured configuration at the demand."""

    measurement: Measurement  # the row of the file
    instances: int  # the least number whose measured rates add up to the load; latency is not in it
    price: InstancePrice | None  # of one instance; None where it is unknown, and the costs with it
    meets_latency: bool  # whether the measured latency is within the limit. The published table has only 5 of 24 such
    load: Decimal

    @property
    def cost_per_hour(self) -> Decimal | None:
        """Cost of all instances, USD; None where the price is unknown."""
        return None if self.price is None else self.price.usd_per_hour * self.instances

    @property
    def cost_per_million(self) -> Decimal | None:
        """Cost of a million invocations at this load, USD: an hour's cost by an hour's requests."""
        cost = self.cost_per_hour
        return None if cost is None else cost * MILLION / (self.load * MINUTES_IN_AN_HOUR)


@dataclass(frozen=True, kw_only=True)
class CapacityTable:
    """All rows in the file's order, and the cheapest that keeps the limit."""

    demand: Demand  # the load and the limit
    rows: tuple[CapacityRow, ...]  # one for each measurement
    # what each row that keeps the limit and has a price costs in a day whose load follows a curve; None where there is
    # no curve
    usd_per_day: Mapping[CapacityRow, Decimal] | None = None

    @property
    def recommended(self) -> CapacityRow | None:
        """The cheapest that keeps the limit: by the day, or without a day's curve at the load; None if none does."""
        return self.cheapest_of(self.rows)

    @property
    def cheapest_at_load(self) -> CapacityRow | None:
        """The cheapest that keeps the limit while all of the load is there."""
        return cheapest(self.rows)

    def cheapest_of(self, rows: tuple[CapacityRow, ...]) -> CapacityRow | None:
        """The one of ``rows`` to recommend, by the same rule."""
        days = self.usd_per_day
        if days is None:
            return cheapest(rows)
        priced = [row for row in rows if row in days]
        least = min((days[row] for row in priced), default=None)
        return cheapest(tuple(row for row in priced if days[row] == least))

    @property
    def unpriced(self) -> tuple[CapacityRow, ...]:
        """Rows that meet the limit but have no price, so that they were not compared."""
        return tuple(row for row in self.rows if row.meets_latency and row.price is None)

    @property
    def fastest(self) -> CapacityRow:
        """The row with the least latency."""
        return min(self.rows, key=lambda row: (row.measurement.latency_ms, row.measurement.line))


def capacity_table(measured: Iterable[Measurement], *, demand: Demand, price_of: PriceOf) -> CapacityTable:
    """Each measurement at ``demand``."""
    rows = tuple(capacity_row(row, demand=demand, price=price_of(row)) for row in measured)
    return CapacityTable(demand=demand, rows=rows)


def capacity_row(measurement: Measurement, *, demand: Demand, price: InstancePrice | None) -> CapacityRow:
    """One measurement at ``demand``."""
    return CapacityRow(
        measurement=measurement,
        instances=instances_for(demand.invocations_per_minute, rate=measurement.invocations_per_minute),
        price=price,
        meets_latency=measurement.latency_ms <= demand.latency_ms,
        load=demand.invocations_per_minute,
    )


Beside = Mapping[CapacityRow, CapacityRow]
"""Row → the row of another table for the same configuration and instance type; rows without one are not in it."""


def rows_beside(table: CapacityTable, other: CapacityTable) -> Beside:
    """Each row with the other table's row for it.

    Names agree where they have the same parts in any order (the published table has ``pt-ig-db``, its text
    ``pt-db-ig``), and without what marks a row of the local AWS.
    """
    theirs = {_place(row.measurement): row for row in other.rows}
    return {row: theirs[place] for row in table.rows if (place := _place(row.measurement)) in theirs}


def _place(measurement: Measurement) -> tuple[frozenset[str], str]:
    name = measurement.configuration.removesuffix(CONSTRUCTED_MARK)
    return frozenset(name.split("-")), measurement.instance_type


def instances_for(load: Decimal, *, rate: Decimal) -> int:
    """The least whole number of instances of ``rate`` invocations a minute that serve ``load``; at least one."""
    return max(1, int((load / rate).to_integral_value(ROUND_CEILING)))


def cheapest(rows: tuple[CapacityRow, ...]) -> CapacityRow | None:
    """The cheapest that keeps the limit; of equal ones the faster, then the one named first in the file."""
    fit = [(cost, row) for row in rows if row.meets_latency and (cost := row.cost_per_hour) is not None]
    if not fit:
        return None
    return min(fit, key=lambda each: (each[0], each[1].measurement.latency_ms, each[1].measurement.line))[1]


LOADS = tuple(Decimal(text) for text in ("0.25", "0.5", "0.8", "0.9", "1", "1.1", "1.25", "1.5", "2", "4"))
RATES = tuple(Decimal(text) for text in ("0.7", "0.8", "0.9", "1"))
Cases = dict[Decimal, CapacityRow | None]
"""Changed value → the cheapest row then; None where none keeps the limit and has a price."""


@dataclass(frozen=True, kw_only=True)
class Sensitivity:
    """The cheapest row at the load under other assumptions, one changed at a time."""

    loads: Cases  # by factor of the load
    rates: Cases  # by factor of all measured rates
    limits: Cases  # by latency limit in milliseconds, from the strictest that a row keeps; each holds up to the next


def sensitivity(table: CapacityTable) -> Sensitivity:
    """How far the recommendation by the cost at the load holds."""
    load = table.demand.invocations_per_minute
    limits: Cases = {}
    last = None
    for limit in sorted({row.measurement.latency_ms for row in table.rows}):
        best = _cheapest_at(table, limit=limit)
        if best is not None and (last is None or best.measurement != last.measurement):
            limits[limit] = last = best
    return Sensitivity(
        loads={each: _cheapest_at(table, load=load * each) for each in LOADS},
        rates={each: _cheapest_at(table, rate=each) for each in RATES},
        limits=limits,
    )


def _cheapest_at(
    table: CapacityTable, *, load: Decimal | None = None, limit: Decimal | None = None, rate: Decimal = Decimal(1)
) -> CapacityRow | None:
    demand = Demand(
        invocations_per_minute=load or table.demand.invocations_per_minute, latency_ms=limit or table.demand.latency_ms
    )
    measured = [
        (replace(row.measurement, invocations_per_minute=row.measurement.invocations_per_minute * rate), row.price)
        for row in table.rows
    ]
    return cheapest(tuple(capacity_row(each, demand=demand, price=price) for each, price in measured))
