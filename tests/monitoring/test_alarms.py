"""Alarms: which an endpoint has, what each looks at, and that its runbook is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.cases import cases
from tests.monitoring.settings_of import DIGITS, ENDPOINTS, EVERYTHING, SINGLE, alarms_of, environment
from tritonstack.config import Thresholds
from tritonstack.monitoring.alarms import Alarm, AlarmKind
from tritonstack.monitoring.metric import unit_of

OPERATIONS = Path(__file__).resolve().parents[2] / "docs" / "operations.md"
WAITING = {"undelivered-build-events", "load-test-not-cleaned-up"}
ALWAYS = {"server-errors", "model-errors", "latency", "build-failed"} | WAITING


def anchors(endpoint: dict[str, Any], thresholds: Thresholds | None = None) -> set[str]:
    return {each.kind.anchor for each in alarms_of(environment(endpoint), thresholds=thresholds or Thresholds())}


def one(endpoint: dict[str, Any], anchor: str, **thresholds: Any) -> Alarm:
    """The one alarm of a kind."""
    found = alarms_of(environment(endpoint), thresholds=EVERYTHING.model_copy(update=thresholds))
    [alarm] = [each for each in found if each.kind.anchor == anchor]
    return alarm


@pytest.mark.parametrize(
    ("endpoint", "more"),
    [
        ("multi-model", {"cache-thrashing"}),
        ("multi-model without cache", set()),
        ("single-model, four GPUs", {"disk-nearly-full", "gpu-memory-nearly-full"}),
        ("scaled", {"cache-thrashing", "at-maximum-instances"}),
    ],
)
def test_an_endpoint_has_the_alarms_of_its_mode(endpoint: str, more: set[str]) -> None:
    assert anchors(ENDPOINTS[endpoint]) == ALWAYS | more


def test_an_idle_endpoint_and_its_cost_are_alarms_only_where_settings_ask_for_it() -> None:
    assert anchors(DIGITS, EVERYTHING) - anchors(DIGITS) == {"no-traffic", "cost-over-budget"}


@pytest.mark.parametrize("endpoint", ENDPOINTS.values(), ids=ENDPOINTS.keys())
def test_every_metric_is_documented_with_its_dimensions_and_statistic(endpoint: dict[str, Any]) -> None:
    for alarm in alarms_of(environment(endpoint)):
        for metric in alarm.series.metrics.values():
            unit_of(metric)


def test_every_kind_exists_in_some_environment() -> None:
    found = {alarm.kind for endpoint in ENDPOINTS.values() for alarm in alarms_of(environment(endpoint))}
    assert found == set(AlarmKind)


def test_every_alarm_has_its_paragraph_and_every_paragraph_its_alarm() -> None:
    text = OPERATIONS.read_text()
    part = text.split("\n## Alarms\n")[1].split("\n## ")[0]
    paragraphs = dict(re.findall(r"^### (.+)\n\n(.+)", part, flags=re.MULTILINE))
    assert set(paragraphs) == {kind.heading for kind in AlarmKind}
    for kind in AlarmKind:
        assert paragraphs[kind.heading].startswith(kind.severity.capitalize()), kind.heading


def test_the_defaults_that_the_runbooks_state_are_those_of_the_settings() -> None:
    text, default = OPERATIONS.read_text(), Thresholds()
    assert f"{default.server_error_percent:g} % of a minute's requests, at least {default.server_errors}" in text
    assert f"{default.model_error_percent:g} % of a minute's requests, at least {default.model_errors}" in text
    assert f"`DiskUtilization` of an instance was over {default.disk_percent:g} %" in text
    assert f"over {default.gpu_memory_percent:g} % full" in text
    assert (default.cache_hit_percent, default.loading_wait_ms) == (50, 1000)  # "half", "a second"


def test_an_alarm_states_where_what_and_what_to_do() -> None:
    text = one(DIGITS, "server-errors", server_error_percent=2.5, server_errors=7).description(
        runbooks="https://x/y.md"
    )
    assert text == (
        "dev-digits: 2.5 % or more of a minute's requests end with 5XX (Invocation5XXErrors), at least 7, in 3 of 5 "
        "minutes. "
        "Runbook: https://x/y.md#server-errors"
    )
    for alarm in alarms_of(environment(DIGITS, SINGLE)):
        assert len(alarm.description(runbooks="x" * 300)) <= 1024  # PutMetricAlarm's limit


@cases("endpoint, anchor, changes, expression, threshold")
def test_an_alarm_holds_its_setting_against_its_metric(
    endpoint: str, anchor: str, changes: dict[str, Any], expression: str | None, threshold: float
) -> None:
    alarm = one(ENDPOINTS[endpoint], anchor, **changes)
    assert (alarm.series.expression, alarm.threshold) == (expression, threshold)


def test_silence_is_a_fault_only_where_silence_is_looked_for() -> None:
    treated = {alarm.kind.anchor: alarm.missing for alarm in alarms_of(environment(ENDPOINTS["scaled"], SINGLE))}
    assert {anchor for anchor, missing in treated.items() if missing == "breaching"} == {"no-traffic"}
    kept = {"disk-nearly-full", "gpu-memory-nearly-full", "cost-over-budget"} | WAITING
    assert {anchor for anchor, missing in treated.items() if missing == "ignore"} == kept


def test_no_alarm_looks_at_more_than_cloudwatch_does() -> None:
    most = Thresholds(no_traffic_minutes=24 * 60)
    for alarm in alarms_of(environment(ENDPOINTS["scaled"], SINGLE), thresholds=most):
        assert alarm.period * alarm.periods <= 24 * 3600
        assert 1 <= alarm.needed <= alarm.periods
        assert len(alarm.series.metrics) <= 9


def test_the_fullest_gpu_fires_where_it_is_published_and_the_sum_over_all_would_hide_it() -> None:
    alarm = one(ENDPOINTS["enhanced metrics, four GPUs"], "gpu-memory-nearly-full")
    assert alarm.series.expression == (
        'SELECT MAX(GPUMemoryUtilization) FROM SCHEMA("/aws/sagemaker/Endpoints", EndpointName, VariantName, '
        "InstanceId, AcceleratorId) WHERE EndpointName = 'dev-single' AND VariantName = 'g5-12xlarge'"
    )
    assert "of a GPU" in alarm.condition
    one_gpu = {**SINGLE, "instance_type": "ml.g5.xlarge", "metrics": {"enhanced": True}}
    assert one(one_gpu, "gpu-memory-nearly-full").series.expression is None
