"""The CloudWatch metrics that SageMaker writes, with its names, units and dimensions."""

from __future__ import annotations

import asyncio
import os
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from tests.tritonstack_local.runtime.fakes import Recorder, Stage, asynchronous, config, stage, until
from tritonstack import aws_names
from tritonstack.loopback.http_server import InvokeError
from tritonstack_local.runtime.errors import ContainerAddress, validation_error
from tritonstack_local.runtime.fleet import InstanceUsage
from tritonstack_local.runtime.metrics import Dimensions, FleetMetrics, Histogram
from tritonstack_local.runtime.publisher import REQUEST_NOTES, LogShipper

ENDPOINT = {"EndpointName": "e", "VariantName": "v"}
FLEET = ENDPOINT | {"EndpointConfigName": "c"}
ADDRESS = ContainerAddress(endpoint="e", log_group="/aws/sagemaker/Endpoints/e", log_stream="s")


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


def recorded(*, instances: int = 1, clock: Clock | None = None) -> FleetMetrics:
    """A fleet's metrics."""
    metrics = FleetMetrics(dimensions=Dimensions("e", "v", "c"), clock=clock or Clock())
    metrics.instance_count = instances
    return metrics


def call(metrics: FleetMetrics, *, error: InvokeError | None = None, hit: bool | None = True, ms: float = 5.0) -> None:
    """One invocation."""
    metrics.invocation(in_model=ms / 1000, total=ms / 1000 + 0.002, error=error, hit=hit, concurrent=1)


def by_name(metrics: FleetMetrics, dimensions: dict[str, str], *, ended: bool = False) -> dict[str, dict[str, Any]]:
    """Metric name → datum, of these dimensions."""
    return {
        datum["MetricName"]: datum | {"Namespace": namespace}
        for namespace, datum in metrics.take(ended=ended)
        if {one["Name"]: one["Value"] for one in datum["Dimensions"]} == dimensions
    }


def sums(data: dict[str, dict[str, Any]]) -> dict[str, float]:
    """Metric name → sum, of those with statistics."""
    return {name: datum["StatisticValues"]["Sum"] for name, datum in data.items() if "StatisticValues" in datum}


@pytest.mark.parametrize("dimensions", [ENDPOINT, FLEET], ids=["endpoint", "fleet"])
def test_invocations_and_errors_are_counted_for_the_endpoint_and_for_the_fleet(dimensions: dict[str, str]) -> None:
    metrics = recorded()
    for error in (None, None, ADDRESS.model_error(status=400, message=""), ADDRESS.model_error(status=500, message="")):
        call(metrics, error=error)
    call(metrics, error=validation_error("wrong"))
    found = by_name(metrics, dimensions)
    assert {name: value for name, value in sums(found).items() if "nvocation" in name} == {
        "Invocations": 5,
        "InvocationsPerInstance": 5,
        "Invocation4XXErrors": 2,
        "Invocation5XXErrors": 1,
        "InvocationModelErrors": 2,
    }
    assert {datum["Namespace"] for datum in found.values()} == {"AWS/SageMaker"}


def test_the_average_of_errors_and_of_cache_hits_is_their_share() -> None:
    metrics = recorded()
    for hit in (True, True, True, False):
        call(metrics, hit=hit, error=None if hit else ADDRESS.timed_out())
    found = by_name(metrics, ENDPOINT)
    for name, share in (("ModelCacheHit", 0.75), ("Invocation5XXErrors", 0.25)):
        statistics = found[name]["StatisticValues"]
        assert statistics["Sum"] / statistics["SampleCount"] == share


def test_latencies_are_microseconds_near_what_was_measured_and_counts_are_by_instance() -> None:
    metrics = recorded(instances=4)
    for ms in (1.0, 2.0, 3.0, 2.0):
        call(metrics, ms=ms, hit=None)
    found = by_name(metrics, ENDPOINT)
    assert found["ModelLatency"]["Unit"] == "Microseconds"
    assert sorted(found["ModelLatency"]["Values"]) == pytest.approx([1000, 2000, 3000], rel=0.011)
    assert sum(found["ModelLatency"]["Counts"]) == 4
    assert found["OverheadLatency"]["Values"] == pytest.approx([2000], rel=0.011), "what the container did not take"
    assert sums(found)["InvocationsPerInstance"] == 1
    assert "ModelCacheHit" not in found, "of a single-model endpoint"


def test_concurrency_is_in_the_ten_seconds_of_its_requests_as_the_alarm_of_its_policy_is() -> None:
    clock = Clock()
    metrics, begun, periods = recorded(clock=clock), clock.now, []
    for sent_at, taken in ((0, 0), (10, 15), (38, 41)):  # seconds; when the last is taken, its minute is over
        clock.now = begun + sent_at
        call(metrics)
        clock.now = begun + taken
        found = by_name(metrics, ENDPOINT)
        periods.append(found["ConcurrentRequestsPerModel"]["Timestamp"].timestamp() - begun)
        assert found["Invocations"]["Timestamp"].timestamp() % 60 == 0
    assert periods == [0, 10, 30]


def test_loading_times_are_written_with_microseconds() -> None:
    metrics = recorded()
    metrics.duration(aws_names.MODEL_DOWNLOADING_TIME, 0.5)
    metrics.duration(aws_names.MODEL_LOADING_TIME, 1.0)
    metrics.duration(aws_names.MODEL_UNLOADING_TIME, 2.0)
    metrics.duration(aws_names.MODEL_LOADING_WAIT_TIME, 1.5)
    found = by_name(metrics, ENDPOINT)
    assert {name: round(datum["Values"][0], -5) for name, datum in found.items()} == {
        "ModelDownloadingTime": 500_000,
        "ModelLoadingTime": 1_000_000,
        "ModelUnloadingTime": 2_000_000,
        "ModelLoadingWaitTime": 1_500_000,
    }
    assert {datum["Unit"] for datum in found.values()} == {"Microseconds"}


@pytest.mark.parametrize("instances", [1, 4])
def test_the_sum_of_loaded_models_over_a_minute_is_what_the_fleet_holds(instances: int) -> None:
    clock = Clock()
    metrics, data = recorded(instances=instances, clock=clock), []
    for second in range(240):
        if second % 5 == 0:
            metrics.gauge("LoadedModelCount", second // 60 + 1)
            data += metrics.take()
        clock.now += 1
    data += metrics.take(ended=True)
    found = [(datum["Timestamp"], datum["StatisticValues"]) for _, datum in data]
    assert len({stamp for stamp, _ in found}) == len(found) == 5  # four minutes, begun amid one
    assert [statistics["Sum"] for _, statistics in found] == [1, 2, 3, 4, 4]
    assert {statistics["SampleCount"] for _, statistics in found} == {instances}
    assert found[3][1]["Maximum"] == found[3][1]["Minimum"] == 4 / instances


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("MemoryUtilization", {"SampleCount": 1, "Sum": 100, "Minimum": 100, "Maximum": 100}),
        # Work is shared: with four instances each does a quarter, or a target would never be met by adding some.
        ("CPUUtilization", {"SampleCount": 4, "Sum": 100, "Minimum": 25, "Maximum": 25}),
    ],
)
def test_a_gauge_is_sent_when_its_minute_is_over_as_one_mean_in_the_instances_namespace(
    name: str, written: dict[str, float]
) -> None:
    clock = Clock()
    metrics = recorded(instances=4, clock=clock)
    for value in (50, 100, 150):
        metrics.gauge(name, value)
        assert metrics.take() == []
    clock.now += 60
    found = by_name(metrics, ENDPOINT)[name]
    assert (found["Namespace"], found["Unit"]) == ("/aws/sagemaker/Endpoints", "Percent")
    assert found["StatisticValues"] == written
    assert metrics.take(ended=True) == []


def test_the_cpu_of_this_machine_is_reported_in_the_vcpus_of_the_instance_type(tmp_path: Path) -> None:
    """A process that keeps one core of this machine busy has that share of an instance with four times its cores."""
    cores = len(os.sched_getaffinity(0))
    usages = [InstanceUsage(tmp_path), InstanceUsage(tmp_path, vcpus=4 * cores)]
    for usage in usages:
        usage.sample(os.getpid())
    until = time.process_time() + 0.3
    while time.process_time() < until:
        pass
    here, there = (usage.sample(os.getpid())["CPUUtilization"] for usage in usages)
    assert here > 0
    assert there == pytest.approx(4 * here, rel=0.2)


def test_no_datum_has_more_values_than_cloudwatch_takes() -> None:
    metrics = recorded()
    order = random.Random(1)
    for _ in range(3000):
        call(metrics, ms=10 ** order.uniform(-2, 5))
    data = [datum for _, datum in metrics.take() if "Values" in datum and len(datum["Dimensions"]) == 2]
    assert all(len(datum["Values"]) <= 150 for datum in data)
    assert sum(sum(datum["Counts"]) for datum in data if datum["MetricName"] == "ModelLatency") == 3000


@given(st.lists(st.floats(min_value=1.0, max_value=1e9), min_size=1, max_size=200), st.floats(0.01, 1.0))
def test_a_percentile_is_within_a_hundredth_of_the_exact_one(values: list[float], share: float) -> None:
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    found = histogram.percentile(share)
    assert found is not None
    low, high = (np.quantile(values, share, method=side) for side in ("lower", "higher"))
    assert low * 0.985 <= found <= high * 1.015


def sent(at: Stage) -> list[dict[str, Any]]:
    """Every datum that CloudWatch was given."""
    given = [arguments for name, arguments in at.cloudwatch.calls if name == "put_metric_data"]
    return [datum for arguments in given for datum in arguments["MetricData"]]


@asynchronous
async def test_metrics_and_log_of_calls_reach_cloudwatch(tmp_path: Path) -> None:
    async with stage(tmp_path, config(instance_count=2), flush_seconds=0.05, log_seconds=0.05) as at:
        for target in ("a.tar.gz", "a.tar.gz", "b.tar.gz"):
            await at.call(target)

        def total(name: str) -> float:
            of_the_endpoint = [one for one in sent(at) if one["MetricName"] == name and len(one["Dimensions"]) == 2]
            return float(sum(one["StatisticValues"]["Sum"] for one in of_the_endpoint))

        names = ("Invocations", "InvocationsPerInstance", "ModelCacheHit")
        await until(lambda: [total(name) for name in names] == [3, 1.5, 1])
        await until(lambda: any(name == "put_log_events" for name, _ in at.logs.calls))
        logged = next(given for name, given in at.logs.calls if name == "put_log_events")
        assert logged["logGroupName"] == "/aws/sagemaker/Endpoints/e"
        assert logged["logStreamName"] == at.fleet().address.log_stream
        assert logged["logEvents"][0]["message"] == "the fake Triton says hello"


@asynchronous
async def test_the_last_metrics_and_log_lines_of_a_stopped_fleet_are_sent(tmp_path: Path) -> None:
    async with stage(tmp_path, config(), flush_seconds=30, log_seconds=30) as at:
        await at.call("a.tar.gz")
        await asyncio.sleep(0)
    assert any(name == "put_log_events" for name, _ in at.logs.calls)
    assert "Invocations" in {datum["MetricName"] for datum in sent(at)}


class Logs(Recorder):
    """CloudWatch Logs that records messages, and may be out of order."""

    def __init__(self) -> None:
        """It works."""
        super().__init__()
        self.messages: list[str] = []
        self.broken = False
        self.exists = False

    def create_log_group(self, **_given: Any) -> dict[str, Any]:
        """Respond as CloudWatch Logs."""
        if self.exists:
            raise ClientError({"Error": {"Code": "ResourceAlreadyExistsException"}}, "CreateLogGroup")
        return {}

    def put_log_events(self, **given: Any) -> dict[str, Any]:
        """Record the events, or fail."""
        if self.broken:
            raise ClientError({"Error": {"Code": "ServiceUnavailableException"}}, "PutLogEvents")
        self.messages += [event["message"] for event in given["logEvents"]]
        return {}


def shipper(logs: Logs, path: Path, seen: list[str] | None = None) -> LogShipper:
    """A shipper of ``path``."""
    found = seen if seen is not None else []
    return LogShipper(client=lambda: logs, path=path, group="g", stream="s", seen=found.append)


def test_each_line_is_sent_once_and_a_half_written_one_later(tmp_path: Path) -> None:
    path, logs = tmp_path / "log", Logs()
    one = shipper(logs, path)
    assert one.ship() == 0
    path.write_text("first\nsecond\nhal")
    one.ship()
    assert logs.messages == ["first", "second"]
    with path.open("a") as file:
        file.write("f\n")
    one.ship()
    one.ship()
    assert logs.messages == ["first", "second", "half"]


def test_what_cannot_be_sent_is_sent_later_and_stand_ins_are_noticed(tmp_path: Path) -> None:
    path, logs, seen = tmp_path / "log", Logs(), list[str]()
    path.write_text("I1 tritonstack stand-in: onnxruntime on the CPU\n")
    one = shipper(logs, path, seen)
    logs.exists = logs.broken = True
    assert one.ship() == 0
    logs.broken = False
    assert one.ship() == 1
    assert logs.messages == ["I1 tritonstack stand-in: onnxruntime on the CPU"]
    assert set(seen) == {"tritonstack stand-in: onnxruntime on the CPU"}


NOTE = 'I1120 19:53:19.326678 1 sagemaker_server.cc:241] "Invoking SageMaker TargetModel: a.tar.gz"'


def test_of_the_notes_of_requests_few_are_sent_and_every_other_line(tmp_path: Path) -> None:
    path, logs = tmp_path / "log", Logs()
    lines = [NOTE] * 3000
    lines[1500:1500] = ["E1 an error in between"]
    path.write_text("\n".join([*lines, "the end"]) + "\n")
    shipper(logs, path).ship()
    assert logs.messages.count(NOTE) == REQUEST_NOTES
    others = [message for message in logs.messages if message != NOTE]
    assert others[:2] == ["E1 an error in between", "the end"]
    assert others[2].startswith("tritonstack: 2900 of Triton's lines")
    assert str(path) in others[2]


def enhanced(seconds: int, clock: Clock, *, instance: str | None = "i-1") -> FleetMetrics:
    """Metrics of a fleet whose config has this interval."""
    return FleetMetrics(dimensions=Dimensions("e", "v", "c", instance=instance), seconds=seconds, clock=clock)


def test_enhanced_metrics_are_by_instance_too_without_what_aws_documents_for_models_alone() -> None:
    metrics = enhanced(60, Clock())
    call(metrics)
    metrics.gauge(aws_names.CPU_UTILIZATION, 40.0)
    metrics.gauge(aws_names.LOADED_MODEL_COUNT, 3)
    found = by_name(metrics, {**ENDPOINT, "InstanceId": "i-1"}, ended=True)
    assert set(found) == {*aws_names.OF_INSTANCES, "CPUUtilization"}
    assert found["Invocations"]["StatisticValues"]["Sum"] == 1
    assert by_name(recorded(), {**ENDPOINT, "InstanceId": "i-1"}) == {}


@pytest.mark.parametrize(
    ("seconds", "instance", "starts"),
    [(10, "i-1", [0, 10, 60]), (10, None, [0, 60]), (60, "i-1", [0, 60]), (300, None, [0, 60])],
    ids=[
        "as often as instances",
        "a minute without enhanced metrics",
        "a minute",
        "a minute where instances are slower",
    ],
)
def test_requests_are_published_in_the_interval_of_enhanced_metrics_and_else_by_minutes(
    seconds: int, instance: str | None, starts: list[int]
) -> None:
    clock = Clock()
    clock.now -= clock.now % 300
    begun, metrics = clock.now, enhanced(seconds, clock, instance=instance)
    for at in (0, 12, 61):
        clock.now = begun + at
        call(metrics)
    found = [datum for _, datum in metrics.take() if datum["MetricName"] == "Invocations"]
    of_endpoint = [each for each in found if len(each["Dimensions"]) == 2]
    assert [each["Timestamp"].timestamp() - begun for each in of_endpoint] == starts


@pytest.mark.parametrize(("seconds", "count"), [(10, 6), (60, 1), (300, 0)])
def test_instances_publish_their_use_at_the_configs_interval(seconds: int, count: int) -> None:
    clock = Clock()
    clock.now -= clock.now % 300
    begun, metrics = clock.now, enhanced(seconds, clock, instance=None)
    for at in range(0, 61, 5):
        clock.now = begun + at
        metrics.gauge(aws_names.MEMORY_UTILIZATION, 50.0)
    assert len([datum for _, datum in metrics.take() if datum["MetricName"] == "MemoryUtilization"]) == count
