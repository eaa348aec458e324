"""How far a recommendation holds: other loads, other rates, other limits, one changed at a time."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from tests.tritonstack_capacity.sizing.rows import measurement, table_of
from tritonstack_capacity.sizing.capacity import LOADS, RATES, CapacityRow, CapacityTable, sensitivity

POSITIVE = st.decimals(min_value="0.01", max_value="10000", places=2)
ROWS = st.lists(st.tuples(POSITIVE, POSITIVE, POSITIVE), min_size=1, max_size=6)


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


@given(rows=ROWS, load=POSITIVE, limit=POSITIVE)
def test_each_case_is_the_cheapest_under_its_own_assumption(
    rows: list[tuple[Decimal, Decimal, Decimal]], load: Decimal, limit: Decimal
) -> None:
    found = sensitivity(table(rows, load=load, limit=limit))
    assert {factor: cost(row) for factor, row in found.loads.items()} == {
        factor: cheapest_cost(rows, load=load * factor, limit=limit) for factor in LOADS
    }
    assert {factor: cost(row) for factor, row in found.rates.items()} == {
        factor: cheapest_cost([(rate * factor, *rest) for rate, *rest in rows], load=load, limit=limit)  # type: ignore[misc]
        for factor in RATES
    }


@given(rows=ROWS, load=POSITIVE, limit=POSITIVE, other=POSITIVE)
def test_the_limits_give_the_answer_of_any_limit(
    rows: list[tuple[Decimal, Decimal, Decimal]], load: Decimal, limit: Decimal, other: Decimal
) -> None:
    limits = sensitivity(table(rows, load=load, limit=limit)).limits
    assert list(limits) == sorted(limits)
    reached = [row for value, row in limits.items() if value <= other]
    assert (cost(reached[-1]) if reached else None) == cheapest_cost(rows, load=load, limit=other)
