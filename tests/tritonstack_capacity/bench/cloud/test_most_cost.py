"""What a test with Inference Recommender takes at most."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tritonstack_capacity.bench.cloud.test_settings_file import configuration, settings_of
from tritonstack_capacity.bench.cloud.most_cost import MostCost, most_cost

PRICES = {"ml.g4dn.xlarge": 1.0, "ml.g4dn.2xlarge": 2.0}
BOTH = list(PRICES)


def most(*, at_once: int = 1, kept: tuple[str, ...] = (), **settings: Any) -> MostCost:
    made = settings_of(configuration("a"), configuration("b"), **settings)
    return most_cost(made, kept=kept, at_once=at_once, usd_per_hour=PRICES.get)


@pytest.mark.parametrize(
    ("settings", "counts", "hours", "usd"),
    [
        # 7,200 s and 1,800 s of endpoints, on one instance of each type
        ({"instance_types": BOTH}, (0, 4), 10.0, 15.0),
        ({"instance_types": BOTH, "duration_seconds": 1800}, (0, 4), 4.0, 6.0),
        # a default job: 45 minutes and 1,800 s, on each type that its package supports
        ({"instance_types": BOTH, "job": "default"}, (2, 0), 2.5, 7.5),
        ({"instance_types": BOTH, "job": "both"}, (2, 4), 12.5, 22.5),
        ({"environment_parameters": {"A": ["1", "2", "3"]}}, (0, 2), 5.0, 15.0),
    ],
)
def test_jobs_hours_and_dollars_follow_from_the_settings(
    settings: dict[str, Any], counts: tuple[int, int], hours: float, usd: float
) -> None:
    found = most(**settings)
    assert (found.default_jobs, found.load_tests) == counts
    assert found.seconds / 3600 == pytest.approx(hours)
    assert found.usd == pytest.approx(usd)
    assert found.unpriced == ()


def test_jobs_at_once_take_less_time_and_the_same_money() -> None:
    one, two = most(instance_types=BOTH), most(instance_types=BOTH, at_once=2)
    assert (two.seconds, two.usd) == (one.seconds / 2, one.usd)


def test_completed_jobs_and_types_without_a_price_are_not_counted_and_the_types_are_named() -> None:
    first = settings_of(configuration("a"), configuration("b"))["jobs"][0]["name"]
    assert most(kept=(first,)).load_tests == 1
    found = most(instance_types=["ml.g4dn.xlarge", "ml.g4dn.12xlarge"])
    assert (found.usd, found.unpriced) == (5.0, ("ml.g4dn.12xlarge",))
    [sentence] = found.sentences
    assert sentence.startswith("Inference Recommender: 4 load tests, 10.0 hours at most, 5.00 USD")
    assert sentence.endswith("without a price, and not in it: ml.g4dn.12xlarge")
