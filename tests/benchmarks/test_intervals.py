"""Medians and their intervals."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.scenarios.intervals import median_interval


@pytest.mark.parametrize(
    ("count", "low", "high"),
    [(6, 1, 6), (8, 1, 8), (9, 2, 8), (12, 3, 10), (20, 6, 15)],  # Conover, Practical Nonparametric Statistics, A3
)
def test_the_interval_lies_between_the_values_that_the_binomial_distribution_names(
    count: int, low: int, high: int
) -> None:
    found = median_interval([float(value) for value in range(count, 0, -1)])
    assert (found.low, found.high) == (low, high)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_five_values_are_too_few_to_say_how_sure_the_median_is(count: int) -> None:
    found = median_interval([3.0] * count)
    assert (found.median, found.low, found.high, found.share) == (3.0, None, None, None)


def test_no_value_has_no_median() -> None:
    with pytest.raises(ValueError, match="no values"):
        median_interval([])


def test_six_values_miss_the_true_median_once_in_32() -> None:
    """Of all ways in which six values lie below (0) or above (2) a true median of 1."""
    sides = itertools.product((0.0, 2.0), repeat=6)
    intervals = [median_interval(values) for values in sides]
    missed = [one for one in intervals if one.low is not None and one.high is not None and not one.low < 1 < one.high]
    assert len(missed) / 2**6 == 1 / 32


def test_one_turn_that_something_else_disturbed_moves_neither_median_nor_interval_far() -> None:
    calm = [1.0 + number / 100 for number in range(12)]
    disturbed = median_interval([*calm[:-1], 50.0])
    assert disturbed == median_interval(calm)


def test_half_the_width_is_a_share_of_the_median() -> None:
    assert median_interval([8.0, 9.0, 10.0, 10.0, 11.0, 12.0]).share == pytest.approx(0.2)


@given(st.lists(st.floats(0.001, 1000), min_size=6, max_size=40))
def test_the_median_lies_in_its_interval(values: list[float]) -> None:
    found = median_interval(values)
    assert found.low is not None
    assert found.high is not None
    assert min(values) <= found.low <= found.median <= found.high <= max(values)
