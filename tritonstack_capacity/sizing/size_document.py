"""``capacity size --json``: the table, the recommendation, its scaling and the sensitivity, for programs."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from tritonstack_capacity.sizing.capacity import CapacityRow, CapacityTable
from tritonstack_capacity.sizing.scaling_advice import ScalingAdvice
from tritonstack_capacity.sizing.sensitivity import Case, Sensitivity


def size_document(
    table: CapacityTable, *, advice: ScalingAdvice | None, sensitive: Sensitivity, region: str
) -> dict[str, Any]:
    """Numbers as JSON numbers, money in USD; what is unknown is null and said in ``unpriced``."""
    chosen, at_load = table.recommended, table.cheapest_at_load
    return {
        "schema": 1,
        "region": region,
        "invocations_per_minute": _number(table.demand.invocations_per_minute),
        "latency_limit_ms": _number(table.demand.latency_ms),
        "rows": [_row(row, usd_per_day=(table.usd_per_day or {}).get(row)) for row in table.rows],
        "recommended": None if chosen is None else _named(chosen),
        "recommended_by": "load" if table.usd_per_day is None else "day",
        "cheapest_at_load": None if at_load is None else _named(at_load),
        "unpriced": [_named(row) for row in table.unpriced],
        "scaling": None if advice is None else _advice(advice),
        "sensitivity": {
            "load_factor": [_case(case) for case in sensitive.loads],
            "measured_rate_factor": [_case(case) for case in sensitive.rates],
            "latency_limit_from_ms": [_case(case) for case in sensitive.limits],
        },
    }


def _named(row: CapacityRow) -> dict[str, str]:
    return {"configuration": row.measurement.configuration, "instance_type": row.measurement.instance_type}


def _row(row: CapacityRow, *, usd_per_day: Decimal | None) -> dict[str, Any]:
    return {
        **_named(row),
        "invocations_per_minute_per_instance": _number(row.measurement.invocations_per_minute),
        "latency_ms": _number(row.measurement.latency_ms),
        "instances": row.instances,
        "usd_per_instance_hour": _number(None if row.price is None else row.price.usd_per_hour),
        "price_source": None if row.price is None else row.price.source,
        "cost_per_hour": _number(row.cost_per_hour),
        "cost_per_million": _number(row.cost_per_million, digits=4),
        "cost_per_day": _number(usd_per_day),
        "meets_latency": row.meets_latency,
    }


def _advice(advice: ScalingAdvice) -> dict[str, Any]:
    day, all_day = advice.usd_per_day or (None, None)
    return {
        **_named(advice.row),
        "requests_per_second": _number(advice.requests_per_second),
        "safety_factor": _number(advice.safety_factor),
        "invocations_per_instance": _number(advice.invocations_per_instance),
        "minimum": advice.minimum,
        "maximum": advice.maximum,
        "maximum_for_invocations_per_minute": _number(advice.peak),
        "instances_by_hour": list(advice.hourly),
        "usd_per_day": _number(day),
        "usd_per_day_at_maximum": _number(all_day),
        "note": advice.note,
    }


def _case(case: Case) -> dict[str, Any]:
    row = case.recommended
    found: dict[str, Any] = {"recommended": None, "instances": None, "cost_per_hour": None}
    if row is not None:
        found = {"recommended": _named(row), "instances": row.instances, "cost_per_hour": _number(row.cost_per_hour)}
    return {"value": _number(case.value), **found}


def _number(value: Decimal | None, *, digits: int | None = None) -> float | int | None:
    if value is None:
        return None
    number = float(value if digits is None else round(value, digits))
    return int(number) if number.is_integer() else number
