"""Utilization during a test: CloudWatch's minutes of an endpoint, and a local container's processes."""

from __future__ import annotations

import csv
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.fake_aws import FakeAws
from tests.tritonstack_capacity.bench.documents import document, point, result
from tritonstack_capacity.bench.document import measurements_csv, notes
from tritonstack_capacity.bench.measuring import UtilizationPart
from tritonstack_capacity.bench.page import results_table
from tritonstack_capacity.bench.utilization import ContainerUtilization, EndpointUtilization, highest_of

BEGIN = datetime(2026, 1, 1, 12, 0, 20, tzinfo=UTC)
END = datetime(2026, 1, 1, 12, 3, 10, tzinfo=UTC)


def minutes(request: dict[str, Any]) -> dict[str, Any]:
    """Four minutes of CPU and GPU; no figure of memory."""
    values = {"CPUUtilization": (100, 200, 300, 400), "GPUUtilization": (10, 50, 90, 20)}
    found = values.get(request["MetricName"], ())
    first = BEGIN.replace(second=0)
    return {
        "Datapoints": [
            {"Timestamp": first + timedelta(minutes=number), "Average": float(value), "Maximum": value + 5.0}
            for number, value in enumerate(found)
        ]
    }


def read(aws: FakeAws) -> EndpointUtilization:
    return EndpointUtilization(aws.client("cloudwatch"), endpoint="prod-bert", variant="v", begin=BEGIN, end=END)


def test_an_endpoints_utilization_is_that_of_the_instance_metrics_whole_minutes() -> None:
    aws = FakeAws(responses={"cloudwatch.GetMetricStatistics": minutes})
    highest = read(aws).highest()
    assert highest is not None
    assert (highest.cpu_percent, highest.gpu_percent, highest.memory_percent) == (405, 95, None)
    sent = aws.requests("GetMetricStatistics")[0]
    assert (sent["Namespace"], sent["Period"]) == ("/aws/sagemaker/Endpoints", 60)
    assert (sent["StartTime"].second, sent["EndTime"]) == (0, END.replace(minute=4, second=0))


@pytest.mark.parametrize(
    ("begin", "end", "gpu"),
    [
        ((0, 20), (2, 10), 30),  # most of the first minute, all of the second, a little of the third
        ((1, 0), (3, 0), 70),
        ((1, 40), (2, 20), None),  # fills no minute by half
    ],
)
def test_a_load_has_the_mean_of_the_minutes_that_it_fills_by_half(
    begin: tuple[int, int], end: tuple[int, int], gpu: float | None
) -> None:
    found = read(FakeAws(responses={"cloudwatch.GetMetricStatistics": minutes}))
    first = BEGIN.replace(second=0)
    moments = [first + timedelta(minutes=minute, seconds=second) for minute, second in (begin, end)]
    used = found.during(*moments)
    assert (used and used.gpu_percent) == gpu


def test_without_the_permission_there_is_no_utilization() -> None:
    found = read(FakeAws(refused={"GetMetricStatistics": "AccessDenied"}))
    assert (found.highest(), found.during(BEGIN, END)) == (None, None)


def test_a_local_containers_utilization_is_of_its_processes_and_it_has_no_gpu() -> None:
    busy = "end = time.monotonic() + 0.3\nwhile time.monotonic() < end: pass"
    program = f"import time\n{busy}\nprint(1, flush=True)\ntime.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        usage = ContainerUtilization(process.pid)
        assert process.stdout is not None
        process.stdout.readline()
        used = usage.since()
        process.kill()
    assert used is not None
    assert used.cpu_percent is not None
    assert used.cpu_percent > 0
    assert used.memory_percent is not None
    assert 0 < used.memory_percent < 100
    assert (used.gpu_percent, used.gpu_memory_percent) == (None, None)


@pytest.mark.parametrize("pid", [None, 0x7FFFFFFF])
def test_a_container_that_is_not_here_has_no_utilization(pid: int | None) -> None:
    assert ContainerUtilization(pid).since() is None


USED = UtilizationPart(source="CloudWatch", cpu_percent=150.0, gpu_percent=97.5)
MORE = UtilizationPart(source="CloudWatch", cpu_percent=120.0, memory_percent=20.0)


def test_the_highest_of_several_loads_is_the_highest_of_each_metric() -> None:
    found = highest_of([USED, None, MORE])
    assert found is not None
    assert (found.cpu_percent, found.memory_percent, found.gpu_percent) == (150, 20, 97.5)
    assert highest_of([None]) is None


def test_the_table_and_the_csv_have_utilization_beside_latency_and_rate() -> None:
    loads = ({**point(per_minute=100, p95=5), "utilization": USED.model_dump()}, point(per_minute=90, p95=6))
    found = document(result("both", *loads, utilization=MORE.model_dump()))
    table = results_table(found)
    places = [table.columns.index(name) for name in ("CPU %", "memory %", "GPU %")]
    assert [[row[place] for place in places] for row in table.groups[0]] == [["150", "", "97.5"], ["120", "20", ""]]
    assert "GPU memory %" not in table.columns, "no load has it"
    [row] = csv.DictReader(measurements_csv(found).splitlines())
    names = ("cpu_utilization", "memory_utilization", "gpu_utilization", "gpu_memory_utilization")
    assert [row[name] for name in names] == ["150.0", "NA", "97.5", "NA"]
    said = "both (binary): highest utilization: CPU 120 %, memory 20 % (100 % is one vCPU or GPU; CloudWatch)"
    assert said in notes(found)
