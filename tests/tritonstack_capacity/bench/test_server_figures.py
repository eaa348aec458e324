"""What Triton and SageMaker say of a test, and what CloudWatch is told."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from botocore.exceptions import ClientError

from tritonstack.errors import WorkFailedError
from tritonstack_capacity.bench.container import between, read_counters
from tritonstack_capacity.bench.one_model import CUSTOM_NAMESPACE, endpoint_figures, publish_latencies

METRICS = """# HELP nv_inference_request_success Number of successful inference requests
nv_inference_request_success{{model="m",version="1"}} {requests}
nv_inference_count{{model="m",version="1"}} {requests}
nv_inference_exec_count{{model="m",version="1"}} {runs}
nv_inference_request_duration_us{{model="m",version="1"}} {us}
nv_inference_queue_duration_us{{model="m",version="1"}} 1000
nv_inference_compute_infer_duration_us{{model="m",version="1"}} {us}
nv_inference_request_success{{model="idle",version="1"}} 5
nv_cpu_utilization 0.5
"""
BEGIN = datetime(2026, 1, 1, 12, 0, 30, tzinfo=UTC)
END = datetime(2026, 1, 1, 12, 2, 10, tzinfo=UTC)


def test_figures_are_of_the_time_between_two_readings() -> None:
    before = read_counters(METRICS.format(requests=100, runs=100, us=500_000))
    after = read_counters(METRICS.format(requests=500, runs=200, us=2_500_000))

    [found] = between(before, after)

    assert (found.model, found.requests, found.mean_batch) == ("m", 400, 4.0)
    assert (found.request_ms, found.compute_ms, found.queue_ms) == (5.0, 5.0, 0.0)


def test_a_model_that_was_loaded_meanwhile_counts_from_zero() -> None:
    [found] = [
        one for one in between({}, read_counters(METRICS.format(requests=10, runs=10, us=100))) if one.model == "m"
    ]

    assert found.requests == 10


class CloudWatch:
    """Stands in for CloudWatch: keeps what it is told."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.asked: list[dict[str, Any]] = []
        self.told: list[dict[str, Any]] = []
        self._refuses = refuses

    def get_metric_statistics(self, **asked: Any) -> dict[str, Any]:
        self.asked.append(asked)
        if self._refuses:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "GetMetricStatistics")
        if asked["MetricName"] != "ModelLatency":
            return {"Datapoints": []}
        values = {"p50": 1000.0, "p95": 2000.0, "p99": 3000.0}
        return {"Datapoints": [{"SampleCount": 7.0, "Average": 1500.0, "ExtendedStatistics": values}]}

    def put_metric_data(self, **told: Any) -> None:
        if self._refuses:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "PutMetricData")
        self.told.append(told)


def test_sagemakers_latencies_are_of_whole_minutes_and_in_milliseconds() -> None:
    cloudwatch = CloudWatch()

    [found] = endpoint_figures(cloudwatch, endpoint="prod-bert", variant="v", begin=BEGIN, end=END)

    assert (found.metric, found.invocations, found.mean_ms, found.p95_ms) == ("ModelLatency", 7, 1.5, 2.0)
    asked = cloudwatch.asked[0]
    assert (asked["StartTime"].second, asked["EndTime"].minute, asked["Period"]) == (0, 3, 180)


def test_a_caller_who_may_not_ask_gets_none() -> None:
    assert endpoint_figures(CloudWatch(refuses=True), endpoint="e", variant="v", begin=BEGIN, end=END) == ()


def test_every_latency_is_told_to_cloudwatch_in_data_that_it_takes() -> None:
    cloudwatch = CloudWatch()
    latencies = np.linspace(1.0, 999.0, 5000)

    told = publish_latencies(cloudwatch, latencies, endpoint="prod-bert", variant="v", model="bert", at=BEGIN)

    data = [datum for call in cloudwatch.told for datum in call["MetricData"]]
    assert told == 5000
    assert sum(sum(datum["Counts"]) for datum in data) == 5000
    assert max(len(datum["Values"]) for datum in data) <= 150
    assert {call["Namespace"] for call in cloudwatch.told} == {CUSTOM_NAMESPACE}
    mean = sum(np.dot(datum["Values"], datum["Counts"]) for datum in data) / 5000
    assert mean == pytest.approx(latencies.mean(), rel=0.005)


def test_a_metric_that_cannot_be_published_fails_the_work() -> None:
    with pytest.raises(WorkFailedError, match="AccessDenied"):
        publish_latencies(CloudWatch(refuses=True), np.ones(3), endpoint="e", variant="v", model="m", at=BEGIN)
