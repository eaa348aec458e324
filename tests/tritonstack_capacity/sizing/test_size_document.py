"""``--json``: every field, as the table and the advice have it."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from tests.tritonstack_capacity.sizing.rows import UNPRICED_TYPE, measurement, table_of
from tests.tritonstack_capacity.sizing.test_capacity import published
from tritonstack_capacity.commands.size_view import size_document
from tritonstack_capacity.sizing.capacity import CapacityTable, DailyCurve
from tritonstack_capacity.sizing.scaling_advice import ScalingAdvice, scaling_advice


def document(table: CapacityTable, advice: ScalingAdvice | None = None) -> Any:
    found = size_document(table, advice=advice, region="us-east-1")
    return json.loads(json.dumps(found, allow_nan=False))


def test_what_is_unknown_is_null_and_named_and_never_zero() -> None:
    found = document(table_of(measurement(name="unknown")))
    [row] = found["rows"]
    assert (row["usd_per_instance_hour"], row["price_source"]) == (None, None)
    assert (row["cost_per_hour"], row["cost_per_million"]) == (None, None)
    assert (found["recommended"], found["scaling"]) == (None, None)
    assert found["unpriced"] == [{"configuration": "unknown", "instance_type": UNPRICED_TYPE}]


def test_the_scaling_names_its_row_and_each_hour_of_the_day() -> None:
    table = table_of(measurement(rate="600", usd="2"), load="3000")
    loads = (Decimal(300),) * 12 + (Decimal(3000),) * 12
    advice = scaling_advice(table.rows[0], curve=DailyCurve(loads=loads), least=1)
    assert document(table, advice)["scaling"] == {
        "configuration": "plain",
        "instance_type": UNPRICED_TYPE,
        "requests_per_second": 10,
        "safety_factor": 0.5,
        "invocations_per_instance": 300,
        "minimum": 1,
        "maximum": 10,
        "maximum_for_invocations_per_minute": 3000,
        "instances_by_hour": [1] * 12 + [10] * 12,
        "usd_per_day": 264,
        "usd_per_day_at_maximum": 480,
        "note": "",
    }


def test_the_sensitivity_has_a_case_for_each_factor_and_each_limit_that_changes_the_answer() -> None:
    found = document(published())["sensitivity"]
    assert [case["value"] for case in found["load_factor"]] == [0.25, 0.5, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 4]
    assert [case["value"] for case in found["measured_rate_factor"]] == [0.7, 0.8, 0.9, 1]
    assert found["measured_rate_factor"][0] == {
        "value": 0.7,
        "recommended": {"configuration": "trt-db", "instance_type": "ml.g4dn.2xlarge"},
        "instances": 33,
        "cost_per_hour": 31.02,
    }
    assert [(case["value"], case["instances"]) for case in found["latency_limit_from_ms"]] == [
        (278, 6),
        (499, 23),
        (783, 10),
    ]
    nothing = document(table_of(measurement(name="slow", latency="900", usd="1")))["sensitivity"]["load_factor"][0]
    assert nothing == {"value": 0.25, "recommended": None, "instances": None, "cost_per_hour": None}
