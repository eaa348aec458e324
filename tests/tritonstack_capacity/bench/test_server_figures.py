"""Figures of a test by Triton and by SageMaker."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError

from tritonstack_capacity.bench.container import between, read_counters
from tritonstack_capacity.bench.one_model import endpoint_figures

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
    """Stands in for CloudWatch."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.asked: list[dict[str, Any]] = []
        self._refuses = refuses

    def get_metric_statistics(self, **asked: Any) -> dict[str, Any]:
        self.asked.append(asked)
        if self._refuses:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "GetMetricStatistics")
        if asked["MetricName"] != "ModelLatency":
            return {"Datapoints": []}
        values = {"p50": 1000.0, "p95": 2000.0, "p99": 3000.0}
        return {"Datapoints": [{"SampleCount": 7.0, "Average": 1500.0, "ExtendedStatistics": values}]}


def test_sagemakers_latencies_are_of_whole_minutes_and_in_milliseconds() -> None:
    cloudwatch = CloudWatch()

    [found] = endpoint_figures(cloudwatch, endpoint="prod-bert", variant="v", begin=BEGIN, end=END)

    assert (found.metric, found.invocations, found.mean_ms, found.p95_ms) == ("ModelLatency", 7, 1.5, 2.0)
    asked = cloudwatch.asked[0]
    assert (asked["StartTime"].second, asked["EndTime"].minute, asked["Period"]) == (0, 3, 180)


def test_a_caller_who_may_not_ask_gets_none() -> None:
    assert endpoint_figures(CloudWatch(refuses=True), endpoint="e", variant="v", begin=BEGIN, end=END) == ()
