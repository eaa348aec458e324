"""What is proposed as scaling, and the daily curve that it reads."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tritonstack_capacity.sizing.rows import measurement, table_of
from tritonstack.config import Scaling
from tritonstack.errors import InputError
from tritonstack_capacity.sizing.capacity import DailyCurve, instances_for, read_daily_curve
from tritonstack_capacity.sizing.scaling_advice import scaling_advice


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


@given(rate=st.decimals(min_value="0.01", max_value="100000", places=2), load=st.integers(1, 10**6))
def test_the_written_seconds_give_the_printed_target_and_need_no_more_instances(rate: Decimal, load: int) -> None:
    [row] = table_of(measurement(rate=str(rate)), load=str(load)).rows
    advice = scaling_advice(row, least=1)
    written = advice.requests_per_second * 60 * advice.safety_factor
    assert float(written) == pytest.approx(float(advice.invocations_per_instance), rel=1e-6)
    assert advice.maximum == instances_for(Decimal(load), rate=rate / 2)
    assert instances_for(Decimal(load), rate=written) <= advice.maximum


def test_a_day_gives_the_least_and_the_greatest_count_and_what_following_it_saves() -> None:
    loads = (Decimal(300),) * 12 + (Decimal(3000),) * 12
    [row] = table_of(measurement(rate="600", usd="2"), load="3000").rows
    advice = scaling_advice(row, curve=DailyCurve(loads=loads), least=1)
    assert (advice.minimum, advice.maximum) == (1, 10)
    assert advice.hourly == (1,) * 12 + (10,) * 12
    assert advice.usd_per_day == (Decimal(2 * 12 * 11), Decimal(2 * 24 * 10))


def test_the_least_count_holds_in_every_hour() -> None:
    [row] = table_of(measurement(rate="600", usd="2"), load="1").rows
    advice = scaling_advice(row, curve=DailyCurve(loads=(Decimal(1),) * 24))
    assert (advice.minimum, advice.maximum, set(advice.hourly)) == (2, 2, {2})


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([f"{hour},5" for hour in range(24) if hour not in (1, 2)], "nothing for 1, 2"),
        ([f"{hour},0" for hour in range(24)], "zero all day"),
    ],
)
def test_a_curve_needs_each_hour_and_some_load(lines: list[str], said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        read_daily_curve(curve_file(tmp_path, *lines))


def test_every_fault_of_a_curve_is_named(tmp_path: Path) -> None:
    file = curve_file(tmp_path, "0,10", "0,20", "24,5", "x,5", "3,-1", "4,1e400", "5,NaN", "6,5,5", "7")
    with pytest.raises(InputError) as refused:
        read_daily_curve(file)
    fields = [problem.field.removeprefix("line ") for problem in refused.value.problems]
    assert fields[:3] == ["3, hour", "4, hour", "5, hour"]
    assert fields[3:] == [*(f"{line}, invocations_per_min" for line in (6, 7, 8)), "9", "10"]
