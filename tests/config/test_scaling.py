"""The scaling of an endpoint: its limits, targets, cooldowns and schedules."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.config.environment_file import problems_of, write_environment
from tritonstack.config import EndpointSettings, Scaling, load_environment
from tritonstack.config.fields import Site
from tritonstack.config.scaling import check_scaling

GOOD = "minimum: 2, maximum: 6, gpu_utilization: 60"


def endpoint_of(folder: Path, scaling: str, *, more: str = "", header: str = "") -> EndpointSettings:
    """The endpoint as it was read."""
    return load_environment(write_environment(folder, endpoint=lines(scaling, more), header=header)).endpoints[0]


def lines(scaling: str, more: str = "") -> str:
    """The endpoint's lines with this scaling."""
    return f"scaling: {{{scaling}}}\n{more}"


def scaling_of(folder: Path, scaling: str) -> Scaling:
    """The scaling as it was read."""
    found = endpoint_of(folder, scaling).scaling
    assert found is not None
    return found


def test_what_was_measured_becomes_a_target_by_the_minute(tmp_path: Path) -> None:
    assert scaling_of(tmp_path, "minimum: 1, maximum: 2, requests_per_second: 20").invocations_target == 20 * 60 * 0.5
    with_factor = "minimum: 1, maximum: 2, requests_per_second: 20, safety_factor: 0.8"
    assert scaling_of(tmp_path, with_factor).targets == {"invocations_per_instance": pytest.approx(960)}


def test_an_endpoint_starts_with_the_minimum_unless_initial_is_set(tmp_path: Path) -> None:
    assert endpoint_of(tmp_path, GOOD).initial_instance_count == 2
    assert endpoint_of(tmp_path, GOOD, more="initial_instance_count: 5").initial_instance_count == 5
    production = endpoint_of(tmp_path, GOOD.replace("2", "3"), header="production: true")
    assert production.initial_instance_count == 3


@pytest.mark.parametrize(
    "when", ["cron(0/5 7-19 L * ? 2026-2030)", "cron(0 0 1,15 JAN-MAR ? *)", "cron(30 6 ? * 2#1 *)"]
)
def test_times_of_application_auto_scaling_are_taken(when: str, tmp_path: Path) -> None:
    scaling = f"minimum: 2, maximum: 6, schedules: [{{name: day, when: '{when}', minimum: 4}}]"
    assert scaling_of(tmp_path, scaling).schedules[0].when == when


def test_schedules_are_read_with_their_time_zones(tmp_path: Path) -> None:
    schedules = (
        "[{name: day, when: 'cron(0 7 ? * MON-FRI *)', time_zone: Europe/Berlin, minimum: 4}, "
        "{name: sale, when: 'at(2026-12-24T18:00:00)', maximum: 12}]"
    )
    day, sale = scaling_of(tmp_path, f"minimum: 2, maximum: 6, schedules: {schedules}").schedules
    assert (day.time_zone, day.minimum, day.maximum) == ("Europe/Berlin", 4, None)
    assert (sale.time_zone, sale.maximum) == ("UTC", 12)


def test_a_production_multi_model_endpoint_keeps_two_instances_by_night_too(tmp_path: Path) -> None:
    schedule = "{name: day, when: 'cron(0 7 ? * MON-FRI *)', minimum: 1}"
    endpoint = lines(f"minimum: 1, maximum: 6, schedules: [{schedule}]")
    found = {problem.field for problem in problems_of(tmp_path, endpoint=endpoint, header="production: true")}
    assert found == {"endpoints[0].scaling.minimum", "endpoints[0].scaling.schedules[0].minimum"}


def test_a_canary_must_fit_the_smallest_and_the_largest_fleet(tmp_path: Path) -> None:
    rollout = "rollout: {kind: linear, size_instances: 1, wait_seconds: 120, accept_multi_model: true}"
    endpoint = lines("minimum: 1, maximum: 20, gpu_utilization: 60", rollout)
    found = "\n".join(map(str, problems_of(tmp_path, endpoint=endpoint)))
    assert "a step of a fleet of 1 instance" in found
    assert "1 of 20 instances, which is 5 % of the fleet" in found


@given(
    minimum=st.integers(1, 20),
    maximum=st.integers(1, 20),
    initial=st.integers(1, 20),
    production=st.booleans(),
    multi_model=st.booleans(),
)
def test_accepted_counts_are_in_order_and_two_in_production(
    minimum: int, maximum: int, initial: int, production: bool, multi_model: bool
) -> None:
    endpoint = EndpointSettings.model_validate(
        {
            "name": "e",
            "mode": "multi-model" if multi_model else "single-model",
            "release": "24.09",
            "instance_type": "ml.g5.xlarge",
            "initial_instance_count": initial,
            "models": ["m"],
            "scaling": {"minimum": minimum, "maximum": maximum, "gpu_utilization": 50},
        }
    )
    site = Site(environment="e", region=None, production=production)
    refused = list(check_scaling(endpoint=endpoint, location=(), site=site))
    possible = minimum <= initial <= maximum and (minimum >= 2 or not (production and multi_model))
    assert bool(refused) != possible
