"""Marks of axes: round, few, and around every value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonstack.monitoring.page.axis import time_marks, time_text, value_marks, value_text


@given(st.floats(min_value=1e-9, max_value=1e12))
def test_marks_begin_at_zero_reach_the_largest_value_and_are_few(largest: float) -> None:
    marks = value_marks(largest)
    assert marks[0] == 0
    assert marks[-1] >= largest * (1 - 1e-6)
    assert 2 <= len(marks) <= 6
    assert len({value_text(mark) for mark in marks}) == len(marks)


@pytest.mark.parametrize(
    ("largest", "marks"),
    [(8.4, [0, 2, 4, 6, 8, 10]), (100, [0, 20, 40, 60, 80, 100]), (1, [0, 0.2, 0.4, 0.6, 0.8, 1]), (0, [0, 1])],
)
def test_marks_are_round(largest: float, marks: list[float]) -> None:
    assert value_marks(largest) == pytest.approx(marks)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (0.00002, "2e-05"), (0.7364, "0.736"), (12.34, "12.3"), (123.4, "123"), (8.0, "8"),
        (12345.6, "12\u202f346"),
    ],
)  # fmt: skip
def test_values_are_short(value: float, text: str) -> None:
    assert value_text(value) == text


@given(st.floats(min_value=360, max_value=1_296_000), st.integers(1_600_000_000, 2_000_000_000))
def test_marks_of_time_are_round_minutes_within_the_plot(seconds: float, start: int) -> None:
    marks = time_marks(start, start + seconds)
    assert len(marks) <= 6
    assert all(start <= mark <= start + seconds and mark % 60 == 0 for mark in marks)


def test_a_time_has_its_day_where_a_plot_covers_several() -> None:
    assert time_text(1_700_000_040, days=False) == "22:14"
    assert time_text(1_700_000_040, days=True) == "14 Nov 22:14"


def test_counts_have_whole_marks() -> None:
    assert value_marks(2.1, whole=True) == [0, 1, 2, 3]
    assert value_marks(0.4, whole=True) == [0, 1]
    assert value_marks(21, whole=True) == value_marks(21)
