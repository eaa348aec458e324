"""How far a recommendation holds: other loads, other rates, other limits, one changed at a time."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from tests.tritonstack_capacity.sizing.rows import measurement, table_of
from tests.tritonstack_capacity.sizing.test_capacity import published
from tritonstack_capacity.sizing.capacity import LOADS, RATES, CapacityTable, Case, sensitivity

POSITIVE = st.decimals(min_value="0.01", max_value="10000", places=2)
ROWS = st.lists(st.tuples(POSITIVE, POSITIVE, POSITIVE), min_size=1, max_size=6)


def cheapest_cost(rows: list[tuple[Decimal, Decimal, Decimal]], *, load: Decimal, limit: Decimal) -> Decimal | None:
    """By counting up instances, one by one, for each row that keeps the limit."""
    costs = []
    for rate, latency, usd in rows:
        if latency <= limit:
            whole, rest = divmod(load, rate)
            costs.append(usd * max(1, int(whole) + (1 if rest else 0)))
    return min(costs, default=None)


def cost(case: Case) -> Decimal | None:
    return None if case.recommended is None else case.recommended.cost_per_hour


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
    assert [case.value for case in found.loads] == list(LOADS)
    for case in found.loads:
        assert cost(case) == cheapest_cost(rows, load=load * case.value, limit=limit)
    assert [case.value for case in found.rates] == list(RATES)
    for case in found.rates:
        slower = [(rate * case.value, latency, usd) for rate, latency, usd in rows]
        assert cost(case) == cheapest_cost(slower, load=load, limit=limit)


@given(rows=ROWS, load=POSITIVE, limit=POSITIVE, asked=POSITIVE)
def test_the_limits_tell_the_answer_of_any_limit(
    rows: list[tuple[Decimal, Decimal, Decimal]], load: Decimal, limit: Decimal, asked: Decimal
) -> None:
    limits = sensitivity(table(rows, load=load, limit=limit)).limits
    assert [case.value for case in limits] == sorted({case.value for case in limits})
    holds = [case for case in limits if case.value <= asked]
    assert (cost(holds[-1]) if holds else None) == cheapest_cost(rows, load=load, limit=asked)


def test_the_published_answer_is_the_same_row_at_every_load_that_is_tried() -> None:
    found = {str(case.value): case.recommended for case in sensitivity(published()).loads}
    counts = {factor: row.instances for factor, row in found.items() if row is not None}
    assert counts["1"] == 23
    assert counts["2"] == 45
    assert {row.measurement.name for row in found.values() if row is not None} == {"trt-db on ml.g4dn.2xlarge"}


def test_a_row_without_a_price_is_the_answer_to_nothing() -> None:
    found = sensitivity(table_of(measurement(name="unknown")))
    assert [case.recommended for case in (*found.loads, *found.rates)] == [None] * (len(LOADS) + len(RATES))
    assert found.limits == ()
