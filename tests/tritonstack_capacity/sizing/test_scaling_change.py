"""Which settings the advice changes, which it keeps, and the reason that stands beside each number."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from tests.tritonstack_capacity.sizing.test_environment_diff import HEAD, change_of, endpoint_text, written
from tritonstack_capacity.sizing.capacity import DailyCurve
from tritonstack_capacity.sizing.scaling_advice import ScalingChange

PRODUCTION = HEAD.replace("production: false", "production: true")
DAY = DailyCurve(loads=(Decimal(900),) * 12 + (Decimal(3000),) * 12)
QUIET = DailyCurve(loads=(Decimal(0),) + (Decimal(3000),) * 23)


def values(change: ScalingChange) -> dict[str, tuple[float | None, float]]:
    return {
        each.field: (None if each.before is None else float(each.before), float(each.after)) for each in change.settings
    }


def why(change: ScalingChange, field: str) -> str:
    [found] = [each.why for each in change.settings if each.field == field]
    return found


def test_an_endpoint_without_scaling_gets_what_was_measured_and_the_factor_apart(tmp_path: Path) -> None:
    change = change_of(written(tmp_path, f"{HEAD}endpoints:\n{endpoint_text()}"))
    assert values(change) == {
        "minimum": (None, 1),
        "maximum": (None, 20),
        "requests_per_second": (None, 10),
        "safety_factor": (None, 0.5),
    }
    assert why(change, "maximum") == "--load, 6000 calls a minute at 300 an instance"
    assert why(change, "requests_per_second") == "measured: 600 calls a minute, plain on ml.none.xlarge"
    assert "AWS advises" in why(change, "safety_factor")


def test_a_production_endpoint_has_two_instances_at_least(tmp_path: Path) -> None:
    change = change_of(written(tmp_path, f"{PRODUCTION}endpoints:\n{endpoint_text()}"))
    assert values(change)["minimum"] == (None, 2)
    assert "the least in production" in why(change, "minimum")
    quiet = change_of(written(tmp_path, f"{PRODUCTION}endpoints:\n{endpoint_text()}"), curve=QUIET)
    assert values(quiet)["minimum"] == (None, 2)
    assert "the quietest hour needs no more" in why(quiet, "minimum")


@pytest.mark.parametrize(
    ("scaling", "changed"),
    [
        ("invocations_per_instance: 3000, gpu_utilization: 70", {"maximum": 20, "invocations_per_instance": 300}),
        ("requests_per_second: 4", {"maximum": 20, "requests_per_second": 10}),
        ("requests_per_second: 10.0", {"maximum": 20}),
        ("requests_per_second: 4, safety_factor: 0.8", {"maximum": 13, "requests_per_second": 10}),
        ("gpu_utilization: 70", {"maximum": 20, "requests_per_second": 10, "safety_factor": 0.5}),
    ],
)
def test_the_targets_form_and_the_factor_stay_as_the_file_has_them(
    scaling: str, changed: dict[str, float], tmp_path: Path
) -> None:
    own = f"scaling: {{minimum: 3, maximum: 4, {scaling}}}"
    change = change_of(written(tmp_path, f"{HEAD}endpoints:\n{endpoint_text(own)}"))
    assert {each.field: float(each.after) for each in change.changed} == changed
    assert values(change)["minimum"] == (3, 3)
    assert why(change, "minimum").startswith("kept: nothing tells how quiet the day gets")


def test_a_factor_that_is_told_goes_before_the_files(tmp_path: Path) -> None:
    own = "scaling: {minimum: 2, maximum: 4, requests_per_second: 4, safety_factor: 0.8}"
    change = change_of(written(tmp_path, f"{HEAD}endpoints:\n{endpoint_text(own)}"), factor="0.25")
    assert values(change)["safety_factor"] == (0.8, 0.25)
    assert values(change)["maximum"] == (4, 40)
    assert why(change, "safety_factor").endswith("--safety-factor")
    kept = change_of(written(tmp_path, f"{HEAD}endpoints:\n{endpoint_text(own)}"))
    assert why(kept, "safety_factor").endswith("the file's")


def test_a_day_decides_both_limits_whatever_the_file_says(tmp_path: Path) -> None:
    own = "scaling: {minimum: 5, maximum: 40, requests_per_second: 10}"
    file = written(tmp_path, f"{HEAD}endpoints:\n{endpoint_text(own)}")
    change = change_of(file, curve=DAY, load="3000")
    assert (values(change)["minimum"], values(change)["maximum"]) == ((5, 3), (40, 10))
    assert why(change, "minimum") == "the quietest hour, 900 calls a minute at 300 an instance"
    assert why(change, "maximum") == "the busiest hour, 3000 calls a minute at 300 an instance"


@pytest.mark.parametrize(("count", "after"), [("1", 3), ("2", 3), ("3", None), ("10", None), ("11", 10)])
def test_the_count_to_start_with_changes_only_where_it_is_outside_the_limits(
    count: str, after: int | None, tmp_path: Path
) -> None:
    file = written(tmp_path, f"{HEAD}endpoints:\n{endpoint_text(f'initial_instance_count: {count}')}")
    change = change_of(file, curve=DAY, load="3000")
    found = values(change).get("initial_instance_count")
    assert found == (None if after is None else (float(count), after))


def test_a_busiest_hour_above_the_load_decides_the_maximum_and_the_reason_names_both(tmp_path: Path) -> None:
    change = change_of(written(tmp_path, f"{HEAD}endpoints:\n{endpoint_text()}"), curve=DAY, load="600")
    assert values(change)["maximum"] == (None, 10)
    assert why(change, "maximum") == "the busiest hour, 3000 calls a minute at 300 an instance; --load is 600"
