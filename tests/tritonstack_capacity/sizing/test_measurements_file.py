"""Files of measurements: valid ones, and the errors of others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases import cases
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


@cases("lines, expected")
def test_every_problem_is_named_with_its_line_and_column(
    lines: tuple[str, ...], expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    assert problems(write(tmp_path, *lines)) == expected
