"""What a load test's jobs are made into: a document and a table that the readers of bench's own take."""

from __future__ import annotations

import csv
import importlib
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.fake_aws import FakeAws
from tests.tritonstack_capacity.bench.cloud.test_settings_file import configuration, settings_of
from tritonstack_capacity.bench.document import BenchDocument
from tritonstack_capacity.sizing.measurements import read_measurements

# `lambda` is a keyword: an import statement cannot name the folder.
results: Any = importlib.import_module("lambda.load_test.results")
clients: Any = importlib.import_module("lambda.shared.clients")

BEGAN = datetime(2026, 1, 1, 12, 0, 30, tzinfo=UTC)


def recommendation(*, instance_type: str = "ml.g4dn.xlarge", count: int = 1, **metrics: Any) -> dict[str, Any]:
    given = {"MaxInvocations": 1200, "ModelLatency": 90, "CostPerHour": 0.7364 * count, **metrics}
    return {
        "Metrics": {name: value for name, value in given.items() if value is not None},
        "EndpointConfiguration": {
            "EndpointName": "dev-lt-1-a",
            "VariantName": "dev-lt-1-a",
            "InstanceType": instance_type,
            "InitialInstanceCount": count,
        },
        "InvocationStartTime": BEGAN,
        "InvocationEndTime": BEGAN + timedelta(seconds=1500),
    }


def gathered(
    *descriptions: dict[str, Any] | None, metric_statistics: Any = None, **settings: Any
) -> tuple[BenchDocument, list[str], str, FakeAws]:
    """Document, failures and table for one configuration's jobs with these descriptions of SageMaker."""
    made = settings_of(configuration("fast"), **settings)
    described = dict(zip([job["name"] for job in made["jobs"]], descriptions, strict=True))
    aws = FakeAws(responses={"cloudwatch.GetMetricStatistics": metric_statistics or {"Datapoints": []}})
    document, failed = results.gathered(made, described, clients.Aws(aws.client), complete=True, not_started={})
    return BenchDocument.model_validate(document), failed, results.table(made, described, document), aws


def completed(*found: dict[str, Any]) -> dict[str, Any]:
    return {"Status": "COMPLETED", "InferenceRecommendations": list(found)}


def rows(table: str, folder: Path) -> Any:
    file = folder / "measurements.csv"
    file.write_text(table)
    return read_measurements(file)


def test_a_job_becomes_a_result_and_a_row_a_rate_is_of_one_instance(tmp_path: Path) -> None:
    document, failed, table, _ = gathered(completed(recommendation(count=2)))
    [result] = document.results
    assert failed == []
    assert (result.ended_by, result.failed, result.instance_count) == ("COMPLETED", False, 2)
    [point] = result.points
    assert (point.per_minute.mean, point.latency_ms and point.latency_ms.mean) == (1200, 90)
    assert (point.all.percentiles_ms, point.all.mean_ms) == ({}, None), "it does not say of which calls that is"
    [row] = rows(table, tmp_path)
    assert (row.invocations_per_minute, row.latency_ms, row.usd_per_hour) == (600, 90, Decimal("0.7364"))


def test_a_job_that_failed_has_a_result_with_the_reason_and_no_row(tmp_path: Path) -> None:
    descriptions = completed(recommendation()), {"Status": "FAILED", "FailureReason": "no capacity"}
    document, failed, table, _ = gathered(*descriptions, instance_types=["ml.g4dn.xlarge", "ml.g4dn.2xlarge"])
    assert [(each.instance_type, each.ended_by, each.failed) for each in document.results] == [
        ("ml.g4dn.xlarge", "COMPLETED", False),
        ("ml.g4dn.2xlarge", "FAILED: no capacity", True),
    ]
    assert failed == ["dev-lt-260101-000000-abcd-2 (fast on ml.g4dn.2xlarge): FAILED: no capacity"]
    assert [row.instance_type for row in rows(table, tmp_path)] == ["ml.g4dn.xlarge"]


def test_a_job_that_was_stopped_or_not_begun_on_request_is_no_failure() -> None:
    document, _, _, _ = gathered({"Status": "STOPPED"}, None, instance_types=["ml.g4dn.xlarge", "ml.g4dn.2xlarge"])
    assert [(each.ended_by, each.failed) for each in document.results] == [
        ("STOPPED", False),
        ("never started", False),
    ]


def test_an_unknown_price_is_left_out_and_never_zero(tmp_path: Path) -> None:
    for cost in (None, 0.0):
        *_, table, _ = gathered(completed(recommendation(CostPerHour=cost)))
        [row] = rows(table, tmp_path)
        assert row.usd_per_hour is None


def test_what_was_not_measured_is_no_row_and_what_was_measured_twice_is_one(tmp_path: Path) -> None:
    slower = recommendation(ModelLatency=95)
    unmeasured = recommendation(instance_type="ml.g5.xlarge", MaxInvocations=None)
    document, _, table, _ = gathered(completed(recommendation(), slower, unmeasured), job="default")
    assert len(document.results) == 3
    [row] = rows(table, tmp_path)
    assert (row.configuration, row.latency_ms) == ("fast (default job)", 90)


def test_metrics_are_requested_for_the_whole_minutes_around_a_test() -> None:
    *_, aws = gathered(completed(recommendation()))
    requests = aws.requests("GetMetricStatistics")
    assert {(each["StartTime"].second, each["EndTime"].second) for each in requests} == {(0, 0)}
    assert {each["StartTime"] for each in requests} == {BEGAN.replace(second=0)}
    assert all(each["EndTime"] > BEGAN + timedelta(seconds=1500) for each in requests)
    assert {each["Period"] % 60 for each in requests} == {0}


def gpu_minutes(request: dict[str, Any]) -> dict[str, Any]:
    """Two minutes of every metric of the instances; none of latency."""
    values = {"GPUUtilization": (40.0, 97.0), "GPUMemoryUtilization": (30.0, 31.0), "CPUUtilization": (90.0, 180.0)}
    found = values.get(request["MetricName"], ())
    return {"Datapoints": [{"Timestamp": BEGAN, "Maximum": value} for value in found]}


@pytest.mark.parametrize(
    ("cpu", "expected"),
    [
        (55.5, (55.5, 97.0, "SageMaker Inference Recommender, CloudWatch's highest minute")),
        (float("nan"), (180.0, 97.0, "CloudWatch's highest minute")),
    ],
)
def test_utilization_is_the_recommenders_where_it_has_one_and_a_gpus_is_cloudwatchs(
    cpu: float, expected: tuple[float, float, str]
) -> None:
    found = completed(recommendation(CpuUtilization=cpu))
    document, _, table, _ = gathered(found, metric_statistics=gpu_minutes)
    [result] = document.results
    used = result.points[0].utilization
    assert used is not None
    assert (used.cpu_percent, used.gpu_percent, used.source) == expected
    assert result.utilization is not None
    assert (result.utilization.cpu_percent, result.utilization.gpu_memory_percent) == (180, 31)
    [row] = csv.DictReader(table.splitlines())
    assert [row[name] for name in ("cpu_utilization", "memory_utilization", "gpu_utilization")] == [
        str(expected[0]),
        "",
        "97.0",
    ]


def test_without_figures_of_a_gpu_there_is_none_in_results_and_table() -> None:
    document, _, table, _ = gathered(completed(recommendation()))
    assert [(each.utilization, each.points[0].utilization) for each in document.results] == [(None, None)]
    assert [row["gpu_utilization"] for row in csv.DictReader(table.splitlines())] == [""]
