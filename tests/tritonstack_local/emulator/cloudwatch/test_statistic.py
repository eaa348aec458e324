"""Statistics of samples: values with counts and statistic sets."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonstack_local.emulator.cloudwatch.expression_syntax import ExpressionError
from tritonstack_local.emulator.cloudwatch.statistic import Sample, percentile_share, statistic

many = st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 5)), min_size=1, max_size=20)


def sample(value: float, count: float = 1) -> Sample:
    """A value, written so often."""
    return Sample(time=0, unit="None", count=count, total=value * count, low=value, high=value)


SET = Sample(time=0, unit="None", count=10, total=50, low=1, high=9)


def test_values_and_sets_add_up() -> None:
    found = {n: statistic(n)([sample(20, 2), SET]) for n in ("SampleCount", "Sum", "Average", "Minimum", "Maximum")}
    assert found == {"SampleCount": 12, "Sum": 90, "Average": 7.5, "Minimum": 1, "Maximum": 20}


@given(many, st.integers(1, 99))
def test_a_percentile_is_that_of_every_value_written_out(values: list[tuple[int, int]], percent: int) -> None:
    written = sorted(float(value) for value, count in values for _ in range(count))
    found = statistic(f"p{percent}")([sample(value, count) for value, count in values])
    wanted = statistics.quantiles(written, n=100, method="inclusive")[percent - 1] if len(written) > 1 else written[0]
    assert found is not None
    assert math.isclose(found, wanted, abs_tol=1e-9)


def test_the_ends_are_the_extremes() -> None:
    values = [sample(3), sample(1), sample(2)]
    assert (statistic("p0")(values), statistic("p100")(values), statistic("p50")(values)) == (1, 3, 2)


@pytest.mark.parametrize("samples", [[SET], [sample(1), SET], [sample(-1)]])
def test_sets_and_negative_values_have_no_percentile(samples: list[Sample]) -> None:
    assert statistic("p99")(samples) is None


def test_a_set_of_equal_values_has_one() -> None:
    assert statistic("p99")([Sample(time=0, unit="None", count=3, total=12, low=4, high=4)]) == 4


def test_names_of_percentiles() -> None:
    shares = [percentile_share(name) for name in ("p99.9", "p5", "p101", "P99", "Sum")]
    assert shares == [pytest.approx(0.999), pytest.approx(0.05), None, None, None]


@pytest.mark.parametrize(
    ("name", "words"), [("Median", "no statistic"), ("TM(10%:90%)", "not in the local AWS"), ("tm99", "not in")]
)
def test_other_statistics_are_refused_by_name(name: str, words: str) -> None:
    with pytest.raises(ExpressionError, match=words):
        statistic(name)
