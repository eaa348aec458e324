"""Claims held against figures, and the table of scenarios that holds them."""

from __future__ import annotations

import pytest

from benchmarks.scenarios.claims import Claim, Figure, Interval, Tried, Verdict, median_interval, tried
from benchmarks.scenarios.table import SCENARIOS
from tests.benchmarks.measured import measured, way
from tests.cases import cases


def claim(*, by: Figure = Figure.RATE, times: float = 1.0) -> Claim:
    """That `new` is better than `old`."""
    return Claim(said="new is better", better="new", than="old", by=by, times=times)


@cases("times, low, high, verdict")
def test_the_verdict_is_where_the_interval_lies(
    times: float, low: float | None, high: float | None, verdict: Verdict
) -> None:
    ratio = Interval(median=2.0, low=low, high=high)
    assert Tried(claim=claim(times=times), better=1.0, than=1.0, ratio=ratio).verdict is verdict


def test_turns_are_compared_with_the_turn_next_to_them() -> None:
    """The machine slows to a tenth meanwhile; every pair still has the ratio two."""
    old = [100.0, 100.0, 50.0, 50.0, 10.0, 10.0]
    found = tried(claim(), {"old": way("old", rates=old), "new": way("new", rates=[2 * rate for rate in old])})
    assert (found.ratio.median, found.ratio.low, found.ratio.high) == (2.0, 2.0, 2.0)
    assert (found.better, found.than) == (100.0, 50.0)


def test_of_times_less_is_better() -> None:
    found = {"old": way("old", loads=[3.7] * 6), "new": way("new", loads=[1.7] * 6)}
    assert tried(claim(by=Figure.COLD_START), found).ratio.median == pytest.approx(4.0 / 2.0)
    assert tried(claim(by=Figure.UNPACK), found).verdict is Verdict.NO_DIFFERENCE
    assert tried(claim(by=Figure.FIRST_CALL), found).better == pytest.approx(50.0)


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_claim_is_about_what_its_scenario_measures(name: str) -> None:
    scenario = SCENARIOS[name]
    assert len({way.name for way in scenario.ways}) == len(scenario.ways)
    found = {one.way: one for one in measured(scenario)}
    for one in scenario.claims:
        assert one.better != one.than
        assert tried(one, found).ratio.low is not None, "too few turns for an interval"


@pytest.mark.parametrize(
    ("count", "low", "high"),
    [(6, 1, 6), (8, 1, 8), (9, 2, 8), (12, 3, 10), (20, 6, 15)],  # Conover, Practical Nonparametric Statistics, A3
)
def test_the_interval_lies_between_the_values_that_the_binomial_distribution_names(
    count: int, low: int, high: int
) -> None:
    found = median_interval([float(value) for value in range(count, 0, -1)])
    assert (found.low, found.high) == (low, high)
