"""The capacity table against the published one, the rules of its recommendation, and how far that holds."""

from __future__ import annotations

import csv
from decimal import Decimal
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import tritonstack_capacity.sizing
from tests.tritonstack_capacity.sizing.rows import measurement, table_of
from tritonstack_capacity.sizing.capacity import (
    LOADS,
    RATES,
    CapacityRow,
    CapacityTable,
    Demand,
    capacity_table,
    instances_for,
    sensitivity,
)
from tritonstack_capacity.sizing.measurements import prices, read_measurements

PUBLISHED = Path(tritonstack_capacity.sizing.__file__).parent / "data" / "bert_large_load_test.csv"
POSITIVE = st.decimals(min_value="0.001", max_value="1000000", places=3)


def published() -> CapacityTable:
    demand = Demand(invocations_per_minute=Decimal(30_000), latency_ms=Decimal(500))
    return capacity_table(
        read_measurements(PUBLISHED), demand=demand, price_of=prices(region="us-east-1", overrides={})
    )


def test_all_24_published_counts_and_costs_come_out_exactly() -> None:
    with PUBLISHED.open(newline="") as stream:
        printed = list(csv.DictReader(stream))
    rows = published().rows
    assert len(rows) == len(printed) == 24
    for row, expected in zip(rows, printed, strict=True):
        assert row.measurement.configuration == expected["configuration_name"]
        assert row.measurement.instance_type == expected["instance_type"]
        assert row.instances == int(expected["initial_instance_count"])
        assert row.cost_per_hour == Decimal(expected["cost_per_hour_usd"])
        assert row.meets_latency == (expected["meets_500ms"] == "True")


@given(load=POSITIVE, rate=POSITIVE)
def test_the_count_is_the_least_that_serves_the_load(load: Decimal, rate: Decimal) -> None:
    count = instances_for(load, rate=rate)
    assert count * rate >= load
    assert count == 1 or (count - 1) * rate < load


def test_of_equal_costs_the_faster_is_taken() -> None:
    slow, fast = measurement(name="slow", latency="90", usd="1"), measurement(name="fast", latency="80", usd="1")
    assert table_of(slow, fast).recommended == table_of(fast, slow).recommended
    chosen = table_of(slow, fast).recommended
    assert chosen is not None
    assert chosen.measurement.configuration == "fast"


AMOUNT = st.decimals(min_value="0.01", max_value="10000", places=2)
ROWS = st.lists(st.tuples(AMOUNT, AMOUNT, AMOUNT), min_size=1, max_size=6)


def cheapest_cost(rows: list[tuple[Decimal, Decimal, Decimal]], *, load: Decimal, limit: Decimal) -> Decimal | None:
    """Of the rows (rate, latency, USD) that keep the limit, by whole instances."""
    costs = []
    for rate, latency, usd in rows:
        if latency <= limit:
            whole, rest = divmod(load, rate)
            costs.append(usd * max(1, int(whole) + (1 if rest else 0)))
    return min(costs, default=None)


def cost(row: CapacityRow | None) -> Decimal | None:
    return None if row is None else row.cost_per_hour


def table(rows: list[tuple[Decimal, Decimal, Decimal]], *, load: Decimal, limit: Decimal) -> CapacityTable:
    measured = [
        measurement(name=f"m{number}", rate=str(rate), latency=str(latency), usd=str(usd))
        for number, (rate, latency, usd) in enumerate(rows)
    ]
    return table_of(*measured, load=str(load), limit=str(limit))


@given(rows=ROWS, load=AMOUNT, limit=AMOUNT)
def test_each_case_is_the_cheapest_under_its_own_assumption(
    rows: list[tuple[Decimal, Decimal, Decimal]], load: Decimal, limit: Decimal
) -> None:
    whole = table(rows, load=load, limit=limit)
    assert cost(whole.recommended) == cheapest_cost(rows, load=load, limit=limit)
    found = sensitivity(whole)
    assert {factor: cost(row) for factor, row in found.loads.items()} == {
        factor: cheapest_cost(rows, load=load * factor, limit=limit) for factor in LOADS
    }
    assert {factor: cost(row) for factor, row in found.rates.items()} == {
        factor: cheapest_cost([(rate * factor, *rest) for rate, *rest in rows], load=load, limit=limit)  # type: ignore[misc]
        for factor in RATES
    }
