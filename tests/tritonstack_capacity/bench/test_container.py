"""The container of a local endpoint: which one serves, requests to it, its metrics; figures of SageMaker."""

from __future__ import annotations

import os
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.fake_aws import FakeAws
from tests.tritonstack_capacity.bench.world import RecordedProgress, subject
from tests.tritonstack_local.runtime.fakes import archive, asynchronous, config, stage
from tritonstack.client.body import Body
from tritonstack.errors import WorkFailedError
from tritonstack_capacity.bench.container import (
    ADVICE,
    LocalContainer,
    ServerCounters,
    local_container,
    name_hash_of,
    serving_fleet,
)
from tritonstack_capacity.bench.one_model import endpoint_figures
from tritonstack_local.runtime.app import runtime_status

BODY = Body(content=b"{}", content_type="application/json")


def fleet(pid: int | None, *, serving: bool = True, share: float = 1.0) -> dict[str, Any]:
    models = [{"target_model": "bert.0123456789abcdef.tar.gz", "hash": "f" * 32}]
    reported = {"isolation": "open port", "server_version": "2.51.0", "models": models}
    return {"pid": pid, "serving": serving, "share": share, **reported}


def status(*fleets: dict[str, Any]) -> dict[str, Any]:
    return {
        "endpoints": [{"name": "local-other", "fleets": [fleet(1)]}, {"name": "local-bert", "fleets": list(fleets)}]
    }


def test_the_fleet_with_most_of_the_traffic_is_the_one() -> None:
    fleets = (fleet(2, share=0.1), fleet(3, share=0.9), fleet(4, serving=False, share=1.0), fleet(None))

    assert serving_fleet(status(*fleets), "local-bert")["pid"] == 3


@pytest.mark.parametrize("fleets", [(), (fleet(4, serving=False),), (fleet(None),)])
def test_where_no_container_serves_it_is_reported(fleets: tuple[dict[str, Any], ...]) -> None:
    with pytest.raises(WorkFailedError, match="no container serves endpoint local-bert"):
        serving_fleet(status(*fleets), "local-bert")


def test_an_archive_has_the_name_that_the_container_gave_it() -> None:
    assert name_hash_of(fleet(1), "bert.0123456789abcdef.tar.gz") == "f" * 32
    with pytest.raises(WorkFailedError, match="has not loaded"):
        name_hash_of(fleet(1), "bert.ffffffffffffffff.tar.gz")


@asynchronous
async def test_status_of_the_local_runtime_has_what_is_read_of_it(tmp_path: Path) -> None:
    async with stage(tmp_path, config()) as at:
        at.objects.contents["bert.0123456789abcdef.tar.gz"] = archive()
        await at.call("bert.0123456789abcdef.tar.gz")
        found = serving_fleet(runtime_status(at.runtime.reconciler), "e")
        assert found.keys() >= fleet(1).keys()
        [loaded] = at.fleet().models.models.values()
        assert name_hash_of(found, "bert.0123456789abcdef.tar.gz") == loaded.hash


def test_ports_are_the_servers_defaults_unless_its_command_sets_others() -> None:
    with local_container(status(fleet(os.getpid())), "local-bert") as found:
        assert (found.port, found.metrics_port, found.server_version) == (8080, 8002, "2.51.0")


@pytest.mark.parametrize(
    ("name_hash", "path"), [("f" * 32, f"/models/{'f' * 32}/invoke"), (None, "/invocations")], ids=["multi", "single"]
)
def test_a_request_to_the_container_is_the_one_that_sagemaker_sends(name_hash: str | None, path: str) -> None:
    with local_container(status(fleet(os.getpid())), "local-bert") as found:
        request = found.request(subject().target, BODY, name_hash=name_hash)

    assert request.url == f"http://127.0.0.1:8080{path}"
    assert request.headers["X-Amzn-SageMaker-Target-Model"] == "bert.0123456789abcdef.tar.gz"
    assert request.body == b"{}"


def container(port: int) -> LocalContainer:
    return LocalContainer(
        open_socket=lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM),
        port=8080,
        metrics_port=port,
        server_version=None,
    )


METRICS = """# HELP nv_inference_request_success Number of successful inference requests
nv_inference_request_success{{model="m",version="1"}} {requests}
nv_inference_count{{model="m",version="1"}} {requests}
nv_inference_exec_count{{model="m",version="1"}} {runs}
nv_inference_request_duration_us{{model="m",version="1"}} {us}
nv_inference_request_success{{model="idle",version="1"}} 5
nv_cpu_utilization 0.5
"""


class Counting(LocalContainer):
    """Returns a test's texts in order, then none."""

    def metrics(self) -> str:
        if not texts:
            raise WorkFailedError("port 8002 does not answer")
        return texts.pop(0)


texts: list[str] = []


def test_each_load_has_the_counts_since_the_one_before_and_unreadable_ones_are_one_note() -> None:
    read = ((10, 5, 1000), (30, 10, 41_000), (40, 20, 51_000))
    texts.extend(METRICS.format(requests=requests, runs=runs, us=us) for requests, runs, us in read)
    counting = Counting(**vars(container(8002)))
    counters = ServerCounters(counting, progress=RecordedProgress())
    assert [(one.model, one.requests, one.request_ms, one.mean_batch) for one in counters.since()] == [("m", 20, 2, 4)]
    assert [(one.model, one.requests, one.request_ms, one.mean_batch) for one in counters.since()] == [("m", 10, 1, 1)]

    reported = RecordedProgress()
    counters = ServerCounters(counting, progress=reported)
    assert [counters.since(), counters.since()] == [[], []]
    assert reported.notes == [f"without Triton's own figures: port 8002 does not answer\n  do: {ADVICE}"]


BEGIN = datetime(2026, 1, 1, 12, 0, 30, tzinfo=UTC)
END = datetime(2026, 1, 1, 12, 2, 10, tzinfo=UTC)


def latencies(request: dict[str, Any]) -> dict[str, Any]:
    """SageMaker's model latency; it has no other."""
    if request["MetricName"] != "ModelLatency":
        return {"Datapoints": []}
    values = {"p50": 1000.0, "p95": 2000.0, "p99": 3000.0}
    return {"Datapoints": [{"SampleCount": 7.0, "Average": 1500.0, "ExtendedStatistics": values}]}


def test_sagemakers_latencies_are_of_whole_minutes_and_in_milliseconds() -> None:
    aws = FakeAws(responses={"cloudwatch.GetMetricStatistics": latencies})

    [found] = endpoint_figures(aws.client("cloudwatch"), endpoint="prod-bert", variant="v", begin=BEGIN, end=END)

    assert (found.metric, found.invocations, found.mean_ms, found.p95_ms) == ("ModelLatency", 7, 1.5, 2.0)
    sent = aws.requests("GetMetricStatistics")[0]
    assert (sent["StartTime"].second, sent["EndTime"].minute, sent["Period"]) == (0, 3, 180)


def test_without_the_permission_there_are_no_figures() -> None:
    refused = FakeAws(refused={"GetMetricStatistics": "AccessDenied"}).client("cloudwatch")
    assert endpoint_figures(refused, endpoint="e", variant="v", begin=BEGIN, end=END) == []
