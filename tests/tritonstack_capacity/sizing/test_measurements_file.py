"""What a file of measurements must be, and what is said of one that is not."""

from __future__ import annotations

import csv
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tritonstack_capacity.sizing.test_capacity import PUBLISHED
from tritonstack.errors import InputError
from tritonstack_capacity.sizing.measurements import NEEDED, read_measurements

HEADER = ",".join(NEEDED)


def write(folder: Path, *lines: str) -> Path:
    file = folder / "measured.csv"
    file.write_text("\n".join(lines) + "\n")
    return file


def problems(file: Path) -> list[tuple[str, str]]:
    with pytest.raises(InputError) as refused:
        read_measurements(file)
    return [(problem.field, problem.found) for problem in refused.value.problems]


def test_the_four_columns_are_enough(tmp_path: Path) -> None:
    [row] = read_measurements(write(tmp_path, HEADER, "plain,ml.g5.xlarge,1200,80")).rows
    assert (row.configuration, row.instance_type, row.usd_per_hour, row.line) == ("plain", "ml.g5.xlarge", None, 2)


def test_cost_by_count_gives_the_price(tmp_path: Path) -> None:
    header = f"{HEADER},cost_per_hour_usd,initial_instance_count"
    [row] = read_measurements(write(tmp_path, header, "plain,ml.g5.xlarge,1200,80,14.08,10")).rows
    assert str(row.usd_per_hour) == "1.408"


def test_missing_and_repeated_columns_are_named_together(tmp_path: Path) -> None:
    file = write(tmp_path, "configuration_name,instance_type,instance_type")
    assert [found for _, found in problems(file)] == [
        "no column invocations_per_min_per_instance",
        "no column model_latency_as_printed",
        "column instance_type twice",
    ]


def test_every_wrong_value_is_named_with_its_line_and_column(tmp_path: Path) -> None:
    file = write(tmp_path, HEADER, ",ml.g5.xlarge,0,fast", "plain,ml.g5.xlarge,NaN,-1")
    assert problems(file) == [
        ("line 2, configuration_name", "nothing"),
        ("line 2, invocations_per_min_per_instance", "0"),
        ("line 2, model_latency_as_printed", "fast"),
        ("line 3, invocations_per_min_per_instance", "NaN"),
        ("line 3, model_latency_as_printed", "-1"),
    ]


def test_one_configuration_measured_twice_contradicts_itself(tmp_path: Path) -> None:
    file = write(tmp_path, HEADER, "plain,ml.g5.xlarge,1200,80", "plain,ml.g5.xlarge,900,80")
    assert problems(file) == [("line 3, configuration_name", "plain on ml.g5.xlarge stands on line 2 already")]


def test_two_prices_of_one_type_contradict_each_other(tmp_path: Path) -> None:
    header = f"{HEADER},implied_hourly_price_usd"
    file = write(tmp_path, header, "a,ml.g5.xlarge,1200,80,1.408", "b,ml.g5.xlarge,1200,80,1.006")
    assert problems(file) == [
        ("line 3, implied_hourly_price_usd", "1.006 USD an hour for ml.g5.xlarge, 1.408 on line 2")
    ]


def test_a_cost_that_is_not_count_by_price_contradicts_itself(tmp_path: Path) -> None:
    header = f"{HEADER},initial_instance_count,cost_per_hour_usd,implied_hourly_price_usd"
    file = write(tmp_path, header, "a,ml.g5.xlarge,1200,80,10,20,1.408")
    assert problems(file) == [
        ("line 2, implied_hourly_price_usd", "1.408 an instance, and 20 for 10 instances (14.08 by the price)")
    ]


COSTS = f"{HEADER},initial_instance_count,cost_per_hour_usd"


def test_costs_in_cents_give_the_price_that_all_of_a_types_rows_allow(tmp_path: Path) -> None:
    rows = ("a,ml.g4dn.xlarge,1,80,62,45.66", "b,ml.g4dn.xlarge,1,80,57,41.97", "c,ml.g4dn.xlarge,1,80,10,7.36")
    found = read_measurements(write(tmp_path, COSTS, *rows)).rows
    assert [str(row.usd_per_hour) for row in found] == ["0.7364"] * 3


def test_the_published_costs_in_cents_give_the_published_counts_and_costs_without_a_column_of_prices(
    tmp_path: Path,
) -> None:
    with PUBLISHED.open(newline="") as stream:
        printed = list(csv.DictReader(stream))
    rows = [
        f"{each['configuration_name']},{each['instance_type']},{each['invocations_per_min_per_instance']},1,"
        f"{each['initial_instance_count']},{Decimal(each['cost_per_hour_usd']):.2f}"
        for each in printed
    ]
    found = read_measurements(write(tmp_path, COSTS, *rows)).rows
    assert [row.usd_per_hour for row in found] == [Decimal(each["implied_hourly_price_usd"]) for each in printed]


def test_a_stated_price_is_the_one_where_a_cost_in_cents_allows_it(tmp_path: Path) -> None:
    header = f"{COSTS},implied_hourly_price_usd"
    rows = ("a,ml.g4dn.xlarge,1,80,62,45.66,0.7364", "b,ml.g4dn.xlarge,1,80,57,41.97,NA", "c,ml.g4dn.xlarge,1,80,,,")
    found = read_measurements(write(tmp_path, header, *rows)).rows
    assert {str(row.usd_per_hour) for row in found} == {"0.7364"}


def test_costs_that_no_price_fits_are_told_in_short_digits_by_a_column_that_is_there(tmp_path: Path) -> None:
    file = write(tmp_path, COSTS, "a,ml.g5.xlarge,1,80,7,1.00", "b,ml.g5.xlarge,1,80,3,0.44", "c,ml.g5.xlarge,1,80,3,9")
    assert problems(file) == [
        (
            "line 3, cost_per_hour_usd",
            "0.145 to 0.148333 USD an hour for ml.g5.xlarge, 0.142143 to 0.143571 on line 2",
        ),
        (
            "line 4, cost_per_hour_usd",
            "2.83333 to 3.16667 USD an hour for ml.g5.xlarge, 0.142143 to 0.143571 on line 2",
        ),
    ]


@pytest.mark.parametrize("costs", [("28.199999999999996", "52.64"), ("28.2", "52.640000000000001")])
def test_what_programs_write_for_a_number_is_no_contradiction(costs: tuple[str, str], tmp_path: Path) -> None:
    file = write(tmp_path, COSTS, f"a,ml.g5.xlarge,1,80,30,{costs[0]}", f"b,ml.g5.xlarge,1,80,56,{costs[1]}")
    assert {row.usd_per_hour for row in read_measurements(file).rows} == {Decimal("0.94")}


@given(
    price=st.decimals(min_value="0.01", max_value="99", places=4),
    counts=st.lists(st.integers(1, 500), min_size=1, max_size=8),
    places=st.integers(0, 6),
)
def test_costs_of_one_price_never_contradict_each_other_however_they_are_rounded(
    tmp_path_factory: pytest.TempPathFactory, price: Decimal, counts: list[int], places: int
) -> None:
    rounded = [(count, round(price * count, places)) for count in counts]
    rows = [f"m{at},t,1,80,{count},{cost}" for at, (count, cost) in enumerate(rounded) if cost]
    if not rows:
        return
    found = read_measurements(write(tmp_path_factory.mktemp("costs"), COSTS, *rows)).rows
    [used] = {row.usd_per_hour for row in found}
    assert used is not None
    half = Decimal(5).scaleb(-places - 1)
    assert all(abs(used * count - cost) <= max(half, cost / 10**8) for count, cost in rounded if cost)


def test_a_line_of_another_length_hides_no_problem_of_the_others(tmp_path: Path) -> None:
    file = write(tmp_path, HEADER, "a,t,100,10,9", "b,t,NaN,-3", "c,t", "d,t,1,1", "d,t,2,1")
    assert problems(file) == [
        ("line 2", "more or fewer values than columns"),
        ("line 3, invocations_per_min_per_instance", "NaN"),
        ("line 3, model_latency_as_printed", "-3"),
        ("line 4", "more or fewer values than columns"),
        ("line 6, configuration_name", "d on t stands on line 5 already"),
    ]


@pytest.mark.parametrize("rate", ["1_200", "１２００", "٣", "1 200", "0x10", "1e", "."])  # noqa: RUF001
def test_a_number_is_written_in_digits_with_a_point_and_nothing_else(rate: str, tmp_path: Path) -> None:
    file = write(tmp_path, HEADER, f"plain,ml.g5.xlarge,{rate},80")
    assert problems(file) == [("line 2, invocations_per_min_per_instance", rate)]


def test_a_number_of_gpus_that_the_type_has_not_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path, f"{HEADER},gpus", "a,ml.g5.xlarge,1200,80,4")
    assert problems(file) == [("line 2, gpus", "4 on ml.g5.xlarge")]


@pytest.mark.parametrize("lines", [(HEADER,), (HEADER, "a,ml.g5.xlarge"), (HEADER, "a,ml.g5.xlarge,1,2,3")])
def test_no_row_and_rows_of_other_lengths_are_refused(tmp_path: Path, lines: tuple[str, ...]) -> None:
    assert problems(write(tmp_path, *lines))


def test_a_folder_and_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    assert problems(tmp_path)
    binary = tmp_path / "model.plan"
    binary.write_bytes(b"\xff\xfe\x00ftrt")
    assert problems(binary)


@given(text=st.text(max_size=300))
def test_no_text_ends_in_anything_but_rows_or_problems(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    file = tmp_path_factory.mktemp("measured") / "any.csv"
    file.write_text(f"{HEADER}\n{text}", newline="")
    try:
        assert read_measurements(file).rows
    except InputError as refused:
        assert refused.problems
