"""Alarms, prices and the dashboard in an environment's file: what holds by default, and what is refused and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.environment_file import write_environment
from tritonstack.config import Environment, Thresholds, load_environment
from tritonstack.errors import InputError

SINGLE = "mode: single-model\ninstance_type: ml.g5.xlarge\n"
UNKNOWN_PRICE = "instance_type: ml.g6.xlarge\naccept_unlisted_instance_type: true\n"


def loaded(folder: Path, header: str, endpoint: str = "") -> Environment:
    return load_environment(write_environment(folder, header=header, endpoint=endpoint))


def test_an_environment_has_neither_dashboard_nor_alarms_unless_it_says_so(tmp_path: Path) -> None:
    made = loaded(tmp_path, "")
    assert (made.dashboard, made.alarms, made.prices) == (False, None, {})


def test_prices_may_be_of_instances_and_of_what_stands_beside_them(tmp_path: Path) -> None:
    prices = {"ml.g5.xlarge": 1.2, "nat-gateway": 0.05, "kms-key": 1}
    assert loaded(tmp_path, f"prices: {prices}").prices == prices


def test_empty_alarms_are_the_defaults(tmp_path: Path) -> None:
    alarms = loaded(tmp_path, "alarms: {}").alarms
    assert alarms is not None
    assert alarms.thresholds == Thresholds()
    assert (alarms.email, alarms.runbooks) == ((), "docs/operations.md")
    assert alarms.thresholds.no_traffic_minutes is None
    assert alarms.thresholds.budget_usd_per_hour is None


def test_an_endpoint_has_thresholds_of_its_own(tmp_path: Path) -> None:
    made = loaded(tmp_path, "alarms: {}", "alarms: {p99_latency_ms: 120, cache_hit_percent: 90}")
    [endpoint] = made.endpoints
    assert endpoint.alarms is not None
    assert (endpoint.alarms.p99_latency_ms, endpoint.alarms.cache_hit_percent) == (120, 90)
    assert endpoint.alarms.server_errors == Thresholds().server_errors


@pytest.mark.parametrize(
    ("header", "endpoint", "field", "words"),
    [
        ("alarms: {email: [nobody]}", "", "alarms.email[0]", ("nobody", "an email address")),
        ('alarms: {runbooks: " "}', "", "alarms.runbooks", ("not blank",)),
        ("alarms: {thresholds: {p99_latency_ms: 0}}", "", "alarms.thresholds.p99_latency_ms", ("more than 0",)),
        (
            "alarms: {thresholds: {server_error_percent: 101}}",
            "",
            "alarms.thresholds.server_error_percent",
            ("101", "100 or less"),
        ),
        (
            "alarms: {thresholds: {no_traffic_minutes: 1441}}",
            "",
            "alarms.thresholds.no_traffic_minutes",
            ("1441", "1440 or less"),
        ),
        ("alarms: {latency: 5}", "", "alarms.latency", ("Remove it",)),
        ("", "alarms: {p99_latency_ms: 5}", "endpoints[0].alarms", ("the environment has no alarms", "alarms: {}")),
        (
            "alarms: {}",
            "alarms: {disk_percent: 5}",
            "endpoints[0].alarms.disk_percent",
            ("mode: multi-model", "fill by design"),
        ),
        (
            "alarms: {}",
            SINGLE + "alarms: {loading_wait_ms: 5}",
            "endpoints[0].alarms.loading_wait_ms",
            ("mode: single-model", "has no cache"),
        ),
        (
            "alarms: {thresholds: {budget_usd_per_hour: 3}}",
            UNKNOWN_PRICE,
            "alarms.thresholds.budget_usd_per_hour",
            ("no source gives the price of ml.g6.xlarge in us-east-1", "prices: {ml.g6.xlarge"),
        ),
        (
            "alarms: {}",
            UNKNOWN_PRICE + "alarms: {budget_usd_per_hour: 3}",
            "endpoints[0].alarms.budget_usd_per_hour",
            ("endpoint digits",),
        ),
        (
            "prices: {ml.t2.medium: 0.1}",
            "",
            "prices.ml.t2.medium",
            ("GPU instance types of the catalogue, nat-gateway, ",),
        ),
        ("prices: {ml.g5.xlarge: 0}", "", "prices.ml.g5.xlarge", ("more than 0 USD",)),
    ],
)
def test_what_cannot_be_is_refused_by_its_field_and_says_why(
    tmp_path: Path, header: str, endpoint: str, field: str, words: tuple[str, ...]
) -> None:
    with pytest.raises(InputError) as caught:
        loaded(tmp_path, header, endpoint)
    [problem] = caught.value.problems
    assert problem.field == field
    for word in words:
        assert word in str(problem)


def test_a_price_of_one_s_own_makes_a_budget_possible(tmp_path: Path) -> None:
    header = "prices: {ml.g6.xlarge: 1.2}\nalarms: {thresholds: {budget_usd_per_hour: 3}}"
    assert loaded(tmp_path, header, UNKNOWN_PRICE).prices == {"ml.g6.xlarge": 1.2}


def test_every_problem_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        loaded(
            tmp_path,
            "prices: {nothing: -1}\nalarms: {email: [x], thresholds: {p99_latency_ms: 0, budget_usd_per_hour: 3}}",
            UNKNOWN_PRICE,
        )
    assert [each.field for each in caught.value.problems] == [
        "prices.nothing",
        "prices.nothing",
        "alarms.email[0]",
        "alarms.thresholds.budget_usd_per_hour",
        "alarms.thresholds.p99_latency_ms",
    ]
