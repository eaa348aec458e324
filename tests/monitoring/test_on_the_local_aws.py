"""The definition's queries on the local AWS, with metrics in the form that the local runtime writes."""

from __future__ import annotations

import socket
import threading
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from http.server import ThreadingHTTPServer

import boto3
import pytest
from botocore.config import Config

from tests.monitoring.settings_of import ENDPOINTS, environment
from tests.tritonstack_local.emulator.building import buildspec, make_project, run
from tests.tritonstack_local.emulator.running import Emulator
from tritonstack.cli.dashboard import _serve
from tritonstack.errors import InputError, WorkFailedError
from tritonstack.monitoring.dashboard import BUILDS, dashboard_of
from tritonstack.monitoring.graphs import BuildProjects, Dashboard
from tritonstack.monitoring.page import Figures, Lines, Span, make_server, page, read_samples

GPU_GRAPHS = {"gpu", "gpu_memory"}
Samples = dict[tuple[str, str], Lines]


@pytest.fixture(scope="module")
def samples(recorded_aws: Emulator) -> Samples:
    """What the local AWS has of the last hour and a half."""
    dashboard = dashboard_of(environment(ENDPOINTS["scaled"], ENDPOINTS["single-model, four GPUs"]), projects=None)
    return read_samples(recorded_aws.client("cloudwatch"), dashboard, Span.last(1.5, now=datetime.now(tz=UTC)))


def last(samples: Samples, section: str, graph: str, line: str) -> float:
    return samples[section, graph][line][-1][1]


def test_every_line_has_data_but_those_of_gpus_that_are_not_there(samples: Samples) -> None:
    empty = {key for key, lines in samples.items() for points in lines.values() if not points}
    assert empty == {("digits", graph) for graph in GPU_GRAPHS}


def test_expressions_have_the_computed_values(samples: Samples) -> None:
    count = last(samples, "digits", "instances", "instances")
    assert count == pytest.approx(2)
    assert last(samples, "digits", "cost_per_hour", "cost") == pytest.approx(2 * 0.7364)
    calls_a_second = last(samples, "digits", "traffic", "calls")
    assert last(samples, "digits", "cost_per_million", "cost") == pytest.approx(
        2 * 0.7364 / 3600 / calls_a_second * 1e6
    )
    assert 70 <= last(samples, "digits", "hits", "hits") <= 100
    ordered = [last(samples, "digits", "latency", each) for each in ("p50", "p90", "p99")]
    assert ordered == sorted(ordered)
    assert 5 <= ordered[0] <= 60  # milliseconds, of a log-normal distribution around 15


def test_the_sum_over_four_gpus_is_shown_as_their_share(samples: Samples) -> None:
    assert last(samples, "single", "gpu", "average") == pytest.approx(62 / 4, rel=0.16)


def test_builds_that_ended_are_counted_and_timed(recorded_aws: Emulator) -> None:
    make_project(recorded_aws, "drawn", buildspec("test -z $FAILS"))
    assert run(recorded_aws, "drawn")["buildStatus"] == "SUCCEEDED"
    for _ in range(2):
        variables = [{"name": "FAILS", "value": "yes"}]
        assert run(recorded_aws, "drawn", environmentVariablesOverride=variables)["buildStatus"] == "FAILED"
    dashboard = dashboard_of(environment(), projects=BuildProjects(build="drawn"))
    span = Span.last(1, now=datetime.now(tz=UTC) + timedelta(minutes=1))  # with the minute that is under way
    read = read_samples(recorded_aws.client("cloudwatch"), dashboard, span)
    ends = read[BUILDS, "archives_ends"]
    totals = {line: sum(value for _, value in points) for line, points in ends.items()}
    assert totals == {"succeeded": 1, "failed": 2}
    assert all(0 < value < 1 for _, value in read[BUILDS, "archives_minutes"]["minutes"])


def test_a_cloudwatch_that_is_gone_is_a_message(recorded_dashboard: Dashboard) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        cloudwatch = boto3.client(
            "cloudwatch",
            endpoint_url=f"http://127.0.0.1:{unused.getsockname()[1]}",
            region_name="us-east-1",
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
            config=Config(retries={"total_max_attempts": 1}),
        )
        with pytest.raises(WorkFailedError, match="could not read the metrics"):
            read_samples(cloudwatch, recorded_dashboard, Span.last(1, now=datetime.now(tz=UTC)))


# The server.


@pytest.fixture
def server(recorded_aws: Emulator, recorded_dashboard: Dashboard) -> Iterator[ThreadingHTTPServer]:
    """The page of the recorded metrics, served."""
    cloudwatch = recorded_aws.client("cloudwatch")

    def draw() -> str:
        span = Span.last(1.5, now=datetime.now(tz=UTC))
        read = read_samples(cloudwatch, recorded_dashboard, span)
        return page(recorded_dashboard, Figures(samples=read, span=span, local=True), refresh_seconds=60)

    yield from serving(draw)


def serving(draw: object) -> Iterator[ThreadingHTTPServer]:
    made = make_server(draw, port=0)  # type: ignore[arg-type]  # a test passes what fails, too
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def fetch(server: ThreadingHTTPServer, path: str, *, host: str = "127.0.0.1") -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    connection.request("GET", path, headers={"Host": host})
    response = connection.getresponse()
    return response.status, response.read().decode()


def test_the_page_is_served_with_its_data(server: ThreadingHTTPServer) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/", timeout=30) as response:
        text = response.read().decode()
        assert response.headers["Content-Type"] == "text/html; charset=utf-8"
        assert response.headers["Cache-Control"] == "no-store"
    assert text.count("<polyline") > 30
    assert 'http-equiv="refresh"' in text


def test_only_the_page_is_served_and_only_to_this_machine_s_names(server: ThreadingHTTPServer) -> None:
    assert fetch(server, "/etc/passwd")[0] == 404
    assert fetch(server, "/", host="evil.example.com")[0] == 403
    assert server.server_address[0] == "127.0.0.1"


def test_metrics_that_cannot_be_read_are_a_message_in_the_browser() -> None:
    def fail() -> str:
        raise WorkFailedError("CloudWatch is away")

    for made in serving(fail):
        assert fetch(made, "/") == (502, "CloudWatch is away\n")


def test_a_taken_port_is_wrong_input() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(InputError, match="a free port"):
            _serve(str, port=taken.getsockname()[1])
