"""Percentiles, intervals, agreement and stop conditions, against values that were computed elsewhere."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tritonstack_capacity.bench.load import Phase, Samples, steps
from tritonstack_capacity.bench.measuring import (
    FiguresPart,
    StabilityRule,
    StopConditions,
    agreement,
    figures,
    mean_interval,
    percentiles,
    t_quantile,
)

SCIPY = {
    (0.975, 1): 12.706204736174694,
    (0.975, 2): 4.302652729749462,
    (0.975, 3): 3.1824463052837078,
    (0.975, 4): 2.776445105197793,
    (0.975, 9): 2.262157162798205,
    (0.975, 30): 2.0422724563012378,
    (0.995, 5): 4.032142983555228,
    (0.995, 10): 3.16927267261695,
    (0.995, 29): 2.7563859036705978,
}
"""``scipy.stats.t.ppf(probability, freedom)`` of SciPy 1.17."""


@pytest.mark.parametrize(("asked", "expected"), SCIPY.items())
def test_quantiles_of_students_t_are_scipys(asked: tuple[float, int], expected: float) -> None:
    assert t_quantile(*asked) == pytest.approx(expected, rel=1e-10)


def test_the_interval_of_a_mean_is_scipys() -> None:
    # scipy.stats.t.interval(0.95, 4, loc=mean(x), scale=sem(x)) of these five: (8.834365521916686, 15.165634478083314)
    found = mean_interval([10.0, 12.0, 9.0, 14.0, 15.0], confidence=0.95)

    assert found.mean == 12.0
    assert found.half_width == pytest.approx(3.165634478083314, rel=1e-10)
    assert mean_interval([3.0], confidence=0.95).half_width is None, "one value says nothing of its mean"


def test_percentiles_are_linear_between_the_nearest() -> None:
    found = percentiles(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), (50.0, 90.0, 95.0, 99.0))

    assert found == pytest.approx({"50": 3.0, "90": 4.6, "95": 4.8, "99": 4.96})


def test_a_rate_counts_what_was_answered_in_its_time() -> None:
    samples = Samples()
    for due, ended, failure in ((0.0, 0.5, None), (0.5, 0.9, "503"), (0.9, 1.4, None)):
        samples.add(due=due, sent=due + 0.1, ended=ended, failure=failure)

    found = figures(samples.part(), begin=0.0, end=1.0)

    assert found.per_minute == 60.0
    assert (found.answered, found.failed) == (2, 1)
    assert found.mean_ms == pytest.approx(500)
    assert found.late_ms == pytest.approx(100)


def test_latencies_are_of_the_calls_that_were_due_in_its_time() -> None:
    samples = Samples()
    for due, ended in ((0.9, 1.5), (1.2, 1.3), (1.9, 4.0), (2.0, 2.1)):
        samples.add(due=due, sent=due, ended=ended, failure=None)

    by_due = figures(samples.part(), begin=1.0, end=2.0)
    by_end = figures(samples.part(), begin=1.0, end=2.0, by="ended")

    assert (by_due.answered, by_end.answered) == (2, 2)
    assert by_due.most_ms == pytest.approx(2100)
    assert by_end.most_ms == pytest.approx(600)
    assert by_due.per_minute == by_end.per_minute == 120


def found_figures(*, per_minute: float = 600.0, p95: float | None = 100.0, failed: int = 0) -> FiguresPart:
    return FiguresPart(
        seconds=10.0,
        answered=100,
        failed=failed,
        per_minute=per_minute,
        mean_ms=p95,
        least_ms=p95,
        most_ms=p95,
        percentiles_ms={} if p95 is None else {"95": p95},
        late_ms=0.0,
    )


RULE = StabilityRule(within=0.1, confidence=0.95, least=3, most=9, percentile=95.0)


@pytest.mark.parametrize(
    ("rates", "latencies", "stable"),
    [
        ((600, 601, 599), (100, 101, 99), True),
        ((600, 601), (100, 100), False),
        ((600, 300, 900), (100, 100, 100), False),
        ((600, 600, 600), (100, 50, 150), False),
        ((600, 600, 600), (100, 100, None), False),
    ],
    ids=["agree", "too few", "rates differ", "latencies differ", "one answered nothing"],
)
def test_rounds_agree_where_rate_and_latency_do(
    rates: tuple[float, ...], latencies: tuple[float | None, ...], stable: bool
) -> None:
    rounds = [found_figures(per_minute=rate, p95=late) for rate, late in zip(rates, latencies, strict=True)]

    assert agreement(rounds, RULE).stable is stable


@pytest.mark.parametrize(
    ("conditions", "found", "reason"),
    [
        (StopConditions(latency_ms=100), found_figures(p95=100), None),
        (StopConditions(latency_ms=100), found_figures(p95=101), "p95 101 ms is above 100 ms"),
        (StopConditions(per_minute=601), found_figures(), None),
        (StopConditions(per_minute=600), found_figures(), "600 a minute reach 600"),
        (StopConditions(), found_figures(failed=11), None),
        (StopConditions(), found_figures(failed=12), "12 of 112 calls failed"),
    ],
)
def test_when_no_more_load_follows(conditions: StopConditions, found: FiguresPart, reason: str | None) -> None:
    assert conditions.reason(found) == reason


def test_the_published_ramp_goes_from_two_users_to_fifty_one() -> None:
    found = steps((Phase(initial_users=2, users_per_minute=2, seconds=1500),))

    assert [step.users for step in found] == list(range(2, 52))
    assert (found[0].begin, found[-1].end) == (0.0, 1500.0)
    assert all(step.end - step.begin == pytest.approx(30) for step in found)


@given(st.floats(min_value=0, max_value=200), st.floats(min_value=1, max_value=3600), st.integers(1, 50))
@example(199.0, 900.0, 1)  # whose steps do not add up to 900 but for rounding
def test_the_steps_of_a_ramp_fill_it_without_a_gap(rate: float, seconds: float, users: int) -> None:
    found = steps((Phase(initial_users=users, users_per_minute=rate, seconds=seconds),) * 2)

    assert found[0].begin == 0
    assert found[-1].end == pytest.approx(2 * seconds)
    assert all(one.end == two.begin for one, two in itertools.pairwise(found))
    assert all(step.end - step.begin > 5e-7 for step in found), "what rounding leaves is no step"
