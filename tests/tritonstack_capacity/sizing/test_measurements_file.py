"""What a file of measurements must be, and what is said of one that is not."""

from __future__ import annotations

from pathlib import Path

import pytest

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
    [row] = read_measurements(write(tmp_path, HEADER, "plain,ml.g5.xlarge,1200,80"))
    assert (row.configuration, row.instance_type, row.usd_per_hour, row.line) == ("plain", "ml.g5.xlarge", None, 2)


PRICED, RATE = f"{HEADER},implied_hourly_price_usd", "line 2, invocations_per_min_per_instance"
LENGTH = "more or fewer values than columns"
WRONG: dict[str, tuple[tuple[str, ...], list[tuple[str, str]]]] = {
    "missing and repeated columns": (
        ("configuration_name,instance_type,instance_type",),
        [
            ("line 1", "no column invocations_per_min_per_instance"),
            ("line 1", "no column model_latency_as_printed"),
            ("line 1", "column instance_type twice"),
        ],
    ),
    "every wrong value": (
        (HEADER, ",ml.g5.xlarge,0,fast", "plain,ml.g5.xlarge,NaN,-1"),
        [
            ("line 2, configuration_name", "nothing"),
            (RATE, "0"),
            ("line 2, model_latency_as_printed", "fast"),
            ("line 3, invocations_per_min_per_instance", "NaN"),
            ("line 3, model_latency_as_printed", "-1"),
        ],
    ),
    "one configuration measured twice": (
        (HEADER, "plain,ml.g5.xlarge,1200,80", "plain,ml.g5.xlarge,900,80"),
        [("line 3, configuration_name", "plain on ml.g5.xlarge stands on line 2 already")],
    ),
    "two prices of one type": (
        (PRICED, "a,ml.g5.xlarge,1200,80,1.408", "b,ml.g5.xlarge,1200,80,1.006"),
        [("line 3, implied_hourly_price_usd", "1.006 USD an hour for ml.g5.xlarge, 1.408 on line 2")],
    ),
    "more GPUs than the type has": (
        (f"{HEADER},gpus", "a,ml.g5.xlarge,1200,80,4"),
        [("line 2, gpus", "4 on ml.g5.xlarge")],
    ),
    "lines of other lengths hide no problem of the others": (
        (HEADER, "a,t,100,10,9", "b,t,NaN,-3", "c,t", "d,t,1,1", "d,t,2,1"),
        [
            ("line 2", LENGTH),
            ("line 3, invocations_per_min_per_instance", "NaN"),
            ("line 3, model_latency_as_printed", "-3"),
            ("line 4", LENGTH),
            ("line 6, configuration_name", "d on t stands on line 5 already"),
        ],
    ),
    "no row": ((HEADER,), [("", "no row")]),
    **{
        f"the rate {rate}": ((HEADER, f"plain,ml.g5.xlarge,{rate},80"), [(RATE, rate)])
        for rate in ("1_200", "１２００", "٣", "1 200", "0x10", "1e", ".")  # noqa: RUF001
    },
}


@pytest.mark.parametrize(("lines", "expected"), WRONG.values(), ids=WRONG)
def test_every_problem_is_named_with_its_line_and_column(
    lines: tuple[str, ...], expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    assert problems(write(tmp_path, *lines)) == expected
