"""What is proposed as scaling: which settings change and why, for which endpoint, from which row."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from tests.cases import cases
from tests.tritonstack_capacity.sizing.rows import measurement, table_of
from tests.tritonstack_capacity.sizing.test_environment_diff import HEAD, change_of, endpoint_text, written
from tritonstack.config import Environment, Scaling, load_environment
from tritonstack.errors import InputError, Problem
from tritonstack_capacity import LimitMissedError
from tritonstack_capacity.sizing.capacity import (
    CapacityTable,
    DailyCurve,
    Demand,
    capacity_table,
    read_daily_curve,
)
from tritonstack_capacity.sizing.scaling_advice import ScalingChange, scaling_advice, scaling_target


def curve_file(folder: Path, *lines: str) -> Path:
    file = folder / "day.csv"
    file.write_text("\n".join(("hour,invocations_per_min", *lines)) + "\n")
    return file


def test_the_target_is_the_settings_own_arithmetic() -> None:
    [row] = table_of(measurement(rate="1335", usd="0.94"), load="30000").rows
    advice = scaling_advice(row)
    settings = Scaling(
        minimum=advice.minimum,
        maximum=advice.maximum,
        requests_per_second=float(advice.requests_per_second),
        safety_factor=float(advice.safety_factor),
    )
    assert settings.invocations_target == pytest.approx(float(advice.invocations_per_instance))
    assert advice.invocations_per_instance == Decimal("667.5")
    assert (advice.minimum, advice.maximum) == (2, 45)  # 30,000 calls at 667.5 an instance, not at 1,335


def test_a_day_gives_the_least_and_the_greatest_count_and_what_following_it_saves() -> None:
    loads = (Decimal(300),) * 12 + (Decimal(3000),) * 12
    [row] = table_of(measurement(rate="600", usd="2"), load="3000").rows
    advice = scaling_advice(row, curve=DailyCurve(loads=loads), least=1)
    assert (advice.minimum, advice.maximum) == (1, 10)
    assert advice.hourly == (1,) * 12 + (10,) * 12
    assert advice.usd_per_day == (Decimal(2 * 12 * 11), Decimal(2 * 24 * 10))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([f"{hour},5" for hour in range(24) if hour not in (1, 2)], "nothing for 1, 2"),
        ([f"{hour},0" for hour in range(24)], "zero all day"),
    ],
)
def test_a_curve_needs_each_hour_and_some_load(lines: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        read_daily_curve(curve_file(tmp_path, *lines))


def test_every_fault_of_a_curve_is_named(tmp_path: Path) -> None:
    file = curve_file(tmp_path, "0,10", "0,20", "24,5", "x,5", "3,-1", "4,1e400", "5,NaN", "6,5,5", "7")
    with pytest.raises(InputError) as refused:
        read_daily_curve(file)
    fields = [problem.field.removeprefix("line ") for problem in refused.value.problems]
    assert fields[:3] == ["3, hour", "4, hour", "5, hour"]
    assert fields[3:] == [*(f"{line}, invocations_per_min" for line in (6, 7, 8)), "9", "10"]


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
    assert why(change, "maximum") == "--load, 6000 invocations a minute at 300 an instance"
    assert why(change, "requests_per_second") == "measured: 600 invocations a minute, plain on ml.none.xlarge"
    assert "AWS advises" in why(change, "safety_factor")


def test_a_production_endpoint_has_two_instances_at_least(tmp_path: Path) -> None:
    change = change_of(written(tmp_path, f"{PRODUCTION}endpoints:\n{endpoint_text()}"))
    assert values(change)["minimum"] == (None, 2)
    assert "the least in production" in why(change, "minimum")
    quiet = change_of(written(tmp_path, f"{PRODUCTION}endpoints:\n{endpoint_text()}"), curve=QUIET)
    assert values(quiet)["minimum"] == (None, 2)
    assert "the quietest hour needs no more" in why(quiet, "minimum")


@cases("scaling, changed")
def test_the_targets_form_and_the_factor_stay_as_the_file_has_them(
    scaling: str, changed: dict[str, int | float], tmp_path: Path
) -> None:
    own = f"scaling: {{minimum: 3, maximum: 4, {scaling}}}"
    change = change_of(written(tmp_path, f"{HEAD}endpoints:\n{endpoint_text(own)}"))
    assert {each.field: float(each.after) for each in change.changed} == changed
    assert values(change)["minimum"] == (3, 3)
    assert why(change, "minimum").startswith("kept: nothing shows how quiet the day gets")


def test_a_given_factor_goes_before_the_files(tmp_path: Path) -> None:
    own = "scaling: {minimum: 2, maximum: 4, requests_per_second: 4, safety_factor: 0.8}"
    change = change_of(written(tmp_path, f"{HEAD}endpoints:\n{endpoint_text(own)}"), factor="0.25")
    assert values(change)["safety_factor"] == (0.8, 0.25)
    assert values(change)["maximum"] == (4, 40)
    assert why(change, "safety_factor").endswith("--safety-factor")
    kept = change_of(written(tmp_path, f"{HEAD}endpoints:\n{endpoint_text(own)}"))
    assert why(kept, "safety_factor").endswith("the file's")


@pytest.mark.parametrize(("count", "after"), [("1", 3), ("2", 3), ("3", None), ("10", None), ("11", 10)])
def test_the_count_to_start_with_changes_only_where_it_is_outside_the_limits(
    count: str, after: int | None, tmp_path: Path
) -> None:
    file = written(tmp_path, f"{HEAD}endpoints:\n{endpoint_text(f'initial_instance_count: {count}')}")
    change = change_of(file, curve=DAY, load="3000")
    found = values(change).get("initial_instance_count")
    assert found == (None if after is None else (float(count), after))


SMALL, LARGE, OTHER = "ml.g4dn.xlarge", "ml.g5.xlarge", "ml.g5.4xlarge"
ROWS = (
    measurement(name="plain", type_=SMALL, rate="100", latency="90", usd="1"),
    measurement(name="batched", type_=SMALL, rate="200", latency="95", usd="1"),
    measurement(name="plain", type_=LARGE, rate="900", latency="60", usd="2"),
    measurement(name="slow", type_=OTHER, rate="9000", latency="500", usd="1"),
)


def environment(folder: Path, *types: str) -> Environment:
    listed = [endpoint_text(name=f"served{number}").replace(SMALL, type_) for number, type_ in enumerate(types)]
    return load_environment(written(folder, f"{HEAD}endpoints:\n{''.join(listed)}"))


def target(table: CapacityTable, environment: Environment, *, endpoint: str | None = None) -> tuple[str, str]:
    found, row = scaling_target(table, environment=environment, file="dev.yaml", endpoint=endpoint)
    return found.name, row.measurement.name


def refusal(table: CapacityTable, environment: Environment, *, endpoint: str | None = None) -> Problem:
    with pytest.raises(InputError) as refused:
        target(table, environment, endpoint=endpoint)
    [problem] = refused.value.problems
    return problem


def test_the_one_endpoint_on_the_recommended_type_is_taken(tmp_path: Path) -> None:
    assert target(table_of(*ROWS), environment(tmp_path, SMALL, LARGE)) == ("served1", f"plain on {LARGE}")


def test_a_named_endpoint_gets_the_best_row_of_its_own_type(tmp_path: Path) -> None:
    assert target(table_of(*ROWS), environment(tmp_path, SMALL, LARGE), endpoint="served0") == (
        "served0",
        f"batched on {SMALL}",
    )


def test_without_prices_none_is_the_cheapest_but_a_named_endpoint_needs_none(tmp_path: Path) -> None:
    rows = (measurement(name="plain", type_=SMALL), measurement(name="batched", type_=SMALL, rate="700"))
    table = capacity_table(
        rows, demand=Demand(invocations_per_minute=Decimal(6000), latency_ms=Decimal(100)), price_of=lambda _: None
    )
    served = environment(tmp_path, SMALL)
    problem = refusal(table, served)
    assert problem.field == "--diff"
    assert problem.found == "no row within 100 ms whose price is known, so that none is the cheapest"
    assert "prices: {<instance type>: <USD an hour>}" in problem.allowed
    assert target(table, served, endpoint="served0") == ("served0", f"batched on {SMALL}")


@cases("types, chosen, found, advice")
def test_what_no_advice_can_be_written_for_is_refused(
    types: tuple[str, ...], chosen: dict[str, str], found: str, advice: str, tmp_path: Path
) -> None:
    problem = refusal(table_of(*ROWS), environment(tmp_path, *types), **chosen)
    assert problem.found == found
    assert advice in problem.advice


def test_a_type_that_misses_the_limit_is_no_wrong_input(tmp_path: Path) -> None:
    with pytest.raises(LimitMissedError) as missed:
        target(table_of(*ROWS), environment(tmp_path, OTHER), endpoint="served0")
    assert missed.value.problem.found == f"nothing within 100 ms on {OTHER}; the fastest is slow, 500 ms"
    assert missed.value.exit_code == 1


def test_a_load_that_two_variants_share_is_no_fleets_and_refused(tmp_path: Path) -> None:
    variants = "variants: [{name: a, model: a, weight: 1}, {name: b, model: b, weight: 1}]"
    text = endpoint_text(name="ab").replace("multi-model", "single-model").replace("models: [a]", variants)
    served = load_environment(written(tmp_path, f"{HEAD}endpoints:\n{text}"))
    assert refusal(table_of(*ROWS), served, endpoint="ab").found == "ab, whose requests 2 variants share"
    assert refusal(table_of(*ROWS), served).found.startswith(f"no endpoint on {LARGE}")
