"""``capacity bench`` on the local AWS: through InvokeEndpoint, straight at the container, and what stops it."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.project import PROGRAM, Project
from tritonstack.errors import WorkFailedError
from tritonstack_capacity.bench.perf_analyzer import find_program
from tritonstack_capacity.sizing.measurements import read_measurements
from tritonstack_local.aws import LocalAws

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(700)]
SHORT = ("--seconds", "0.3", "--warm-up", "0.1", "--rounds", "2", "--max-rounds", "2")


def results(folder: Path) -> Any:
    return json.loads((folder / "results.json").read_text())


@pytest.mark.long
def test_fifty_calls_to_an_endpoint_and_to_its_container(project: Project, deployed: LocalAws, tmp_path: Path) -> None:
    bounded = ("--users", "2", "--max-calls", "50")
    project.run("capacity", "bench", "digits/digits-onnx", *bounded, *SHORT, "--to", str(tmp_path / "endpoint"))
    straight = ("--rate", "40", "--container", "--format", "both")
    project.run("capacity", "bench", "digits/digits-onnx", *straight, *SHORT, "--to", str(tmp_path / "container"))

    [endpoint] = results(tmp_path / "endpoint")["results"]
    both = results(tmp_path / "container")["results"]
    assert endpoint["ended_by"] == "all 50 requests were sent (--max-calls)"
    assert [one["payload_format"] for one in both] == ["binary", "json"]
    assert {one["way"] for one in both} == {"container"}
    assert all(point["all"]["failed"] == 0 and point["all"]["answered"] > 5 for one in both for point in one["points"])
    assert [row.instance_type for row in read_measurements(tmp_path / "container" / "measurements.csv")] == [
        "this-machine",
        "this-machine",
    ]


@pytest.mark.long
def test_perf_analyzer_goes_through_the_proxy(project: Project, deployed: LocalAws, tmp_path: Path) -> None:
    try:
        find_program()
    except WorkFailedError as error:
        pytest.skip(str(error))
    options = ("--generator", "perf-analyzer", "--users", "2", "--seconds", "1", "--to", str(tmp_path))
    project.run("capacity", "bench", "digits/digits-onnx", *options)

    [found] = results(tmp_path)["results"]
    assert found["generator"].startswith("perf_analyzer ")
    assert found["points"][0]["all"]["answered"] >= 20
    assert found["points"][0]["all"]["failed"] == 0


@pytest.mark.long
def test_ctrl_c_leaves_what_was_measured_so_far(project: Project, deployed: LocalAws, tmp_path: Path) -> None:
    ramp = ("--phase", "1:1", "--phase", "2:600", "--warm-up", "0", "--to", str(tmp_path))
    slow = [str(PROGRAM), "capacity", "bench", "digits/digits-onnx", *ramp]
    with subprocess.Popen(
        slow, cwd=project.root, env=project.variables, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        first = next(line for line in process.stderr if "1 user:" in line)
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=60)

    assert first
    assert process.returncode == 130
    assert "Traceback" not in rest
    found = results(tmp_path)
    assert found["complete"] is False
    assert [point["load"] for point in found["results"][0]["points"]] == ["1 user"]


@pytest.mark.long
def test_cold_starts_are_apart_and_leave_no_copy(project: Project, deployed: LocalAws, tmp_path: Path) -> None:
    def archives() -> set[str]:
        bucket = deployed.client("ssm").get_parameter(Name="/tritonstack/local/_artifacts/bucket-name")
        name = bucket["Parameter"]["Value"]
        listed = deployed.client("s3").list_objects_v2(Bucket=name, Prefix="endpoints/digits/")
        return {each["Key"] for each in listed["Contents"]}

    before = archives()
    project.run(
        "capacity", "bench", "digits/digits-onnx", "--users", "1", "--cold-starts", "2", *SHORT, "--to", str(tmp_path)
    )

    [found] = results(tmp_path)["results"]
    assert len(found["cold"]["milliseconds"]) == 2
    assert min(found["cold"]["milliseconds"]) > found["points"][0]["all"]["percentiles_ms"]["50"]
    assert archives() == before
