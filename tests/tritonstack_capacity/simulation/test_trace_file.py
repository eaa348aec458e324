"""Traces: whatever is written into one is read back, and whatever is none is refused in words."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tritonstack.errors import InputError
from tritonstack_capacity.simulation.trace import LATEST, read_trace

NAMES = ("small-0", "small-1", "large")
HEADER = "time_seconds,model\n"
IN_ONE_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
"""Each example writes the same file anew."""


def refusal(folder: Path, content: bytes) -> InputError:
    file = folder / "t.csv"
    file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_trace(file, names=NAMES)
    return caught.value


@given(
    calls=st.lists(st.tuples(st.floats(0, LATEST), st.sampled_from(NAMES)), min_size=1, max_size=50),
    packed=st.booleans(),
    end=st.sampled_from(["\n", "\r\n"]),
    mark=st.booleans(),
)
@IN_ONE_FOLDER
def test_what_is_written_is_read(
    tmp_path: Path, calls: list[tuple[float, str]], *, packed: bool, end: str, mark: bool
) -> None:
    calls.sort()
    text = io.StringIO()
    csv.writer(text, lineterminator=end).writerows([HEADER.strip().split(","), *calls])
    content = text.getvalue().encode("utf-8-sig" if mark else "utf-8")
    file = tmp_path / "t.csv"
    file.write_bytes(gzip.compress(content) if packed else content)
    found = read_trace(file, names=NAMES)
    assert list(found.times) == [moment for moment, _ in calls]
    assert [NAMES[model] for model in found.models] == [name for _, name in calls]
    assert found.seconds > calls[-1][0]


@given(content=st.binary(max_size=300), headed=st.booleans(), packed=st.booleans())
@example(content=b"\x00\x01", headed=True, packed=False)
@example(content=b'1,"small-0', headed=True, packed=False)
@example(content=b"\x1f\x8b\x08", headed=False, packed=False)
@IN_ONE_FOLDER
def test_bytes_are_a_trace_or_an_error_with_the_reason(
    tmp_path: Path, content: bytes, *, headed: bool, packed: bool
) -> None:
    whole = (HEADER.encode() if headed else b"") + content
    file = tmp_path / "t.csv"
    file.write_bytes(gzip.compress(whole) if packed else whole)
    try:
        found = read_trace(file, names=NAMES)
    except InputError as error:
        assert error.exit_code == 2
        assert all(each.found and each.allowed for each in error.problems)
        assert all(line.isprintable() for line in str(error).splitlines())
    else:
        assert headed
        assert all(0 <= moment <= LATEST for moment in found.times)


@pytest.mark.parametrize("moment", ["1_0", "٣", " 1", "1 ", "1.", ".5", "0x1", "1e", "infinity", "1__0", ""])
def test_a_time_is_a_number_as_csv_files_have_them(tmp_path: Path, moment: str) -> None:
    assert "line 2, time_seconds" in str(refusal(tmp_path, f"{HEADER}{moment},large\n".encode()))


def test_each_wrong_line_is_reported_by_its_number_and_of_many_the_first(tmp_path: Path) -> None:
    lines = "5,large\n4,large\n6,tiny\n7,large,3\n\nx,large\n8,small-0\n"
    problems = refusal(tmp_path, (HEADER + lines).encode()).problems
    assert [each.field for each in problems] == [
        "line 3, time_seconds",
        "line 4, model",
        "line 5",
        "line 7, time_seconds",
    ]
    assert "80 more such problems" in str(refusal(tmp_path, (HEADER + "x,y\n" * 50).encode()))
