"""A load test followed from here: what is told, what is fetched, what Ctrl-C does; and what the build runs."""

from __future__ import annotations

import io
import json
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.bench.test_cloud_gate import document, point
from tests.stacks.environments import DIGITS, SINGLE, environment
from tritonstack.bench import cloud_build
from tritonstack.bench.cloud import CloudTests, chosen_endpoints
from tritonstack.commands.bench_cloud import terminated_as_interrupted
from tritonstack.errors import InputError, WorkFailedError

BUCKET, PROJECT = "archives", "bench-project"


class S3:
    """Objects in memory."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def put_object(self, *, Key: str, Body: bytes, **_: Any) -> None:  # noqa: N803 - as boto3 spells it
        self.objects[Key] = Body

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803
        assert Bucket == BUCKET
        if Key not in self.objects:
            raise ClientError({"Error": {"Code": "NoSuchKey", "Message": Key}}, "GetObject")
        return {"Body": io.BytesIO(self.objects[Key])}


class Cloud:
    """S3, SSM and CodeBuild: the build is at each of ``statuses``, one after the other."""

    def __init__(self, *statuses: str, deployed: bool = True, results: bool = True) -> None:
        self.s3 = S3()
        self.stopped = False
        self._statuses: Iterator[str] = iter(statuses)
        self._deployed, self._results = deployed, results

    def client(self, _service: str) -> Any:
        return self

    def put_object(self, **given: Any) -> None:
        self.s3.put_object(**given)

    def get_object(self, **given: Any) -> dict[str, Any]:
        return self.s3.get_object(**given)

    def get_parameter(self, *, Name: str) -> dict[str, Any]:  # noqa: N803
        values = {
            "/tritonstack/dev/_artifacts/bucket-name": BUCKET,
            "/tritonstack/dev/_load-test/project-name": PROJECT,
        }
        if Name not in values or not self._deployed:
            raise ClientError({"Error": {"Code": "ParameterNotFound", "Message": Name}}, "GetParameter")
        return {"Parameter": {"Value": values[Name]}}

    def start_build(self, *, projectName: str, idempotencyToken: str, **_: Any) -> dict[str, Any]:  # noqa: N803
        assert projectName == PROJECT
        if self._results:
            body = json.dumps(document(point(600, p95=40)).model_dump(mode="json")).encode()
            self.s3.objects[f"load-tests/{idempotencyToken}/results.json"] = body
        return {"build": {"id": "build:1"}}

    def stop_build(self, *, id: str) -> None:  # noqa: A002 - as boto3 spells it
        assert id == "build:1"
        self.stopped = True

    def batch_get_builds(self, *, ids: list[str]) -> dict[str, Any]:
        assert ids == ["build:1"]
        status = "STOPPED" if self.stopped else next(self._statuses)
        return {"builds": [{"buildStatus": status, "currentPhase": "BUILD"}]}


def followed(
    cloud: Cloud, told: list[str], *, wait: Callable[[float], None] = lambda _: None, local: bool = False
) -> CloudTests:
    return CloudTests(
        environment(DIGITS, SINGLE, load_test={}), session=cloud, local=local, progress=told.append, wait=wait
    )


def test_a_build_is_started_followed_and_its_results_fetched(tmp_path: Path) -> None:
    cloud, told = Cloud("IN_PROGRESS", "IN_PROGRESS", "SUCCEEDED"), list[str]()
    [fetched] = followed(cloud, told).run([DIGITS["name"]], tmp_path)
    assert (fetched.kind, fetched.failed) == ("bench", "")
    assert [line for line in told if line.startswith("CodeBuild")] == ["CodeBuild: BUILD", "CodeBuild: SUCCEEDED"]
    assert json.loads((fetched.folder / "results.json").read_text())["environment"] == "local"
    plan = json.loads(cloud.s3.objects[f"load-tests/{fetched.test}/plan.json"])
    assert plan["options"][0].startswith(f"{DIGITS['name']}/")


def test_a_test_that_takes_long_says_every_five_minutes_where_it_is(tmp_path: Path) -> None:
    cloud, told = Cloud(*["IN_PROGRESS"] * 45, "SUCCEEDED"), list[str]()
    followed(cloud, told).run([DIGITS["name"]], tmp_path)
    assert [line for line in told if " min: " in line] == ["5 min: CodeBuild: BUILD", "10 min: CodeBuild: BUILD"]


def test_a_build_that_fails_is_told_with_what_it_left(tmp_path: Path) -> None:
    [fetched] = followed(Cloud("FAILED"), []).run([DIGITS["name"]], tmp_path)
    assert "build:1 ended as FAILED" in fetched.failed
    with pytest.raises(WorkFailedError, match="left no results"):
        followed(Cloud("FAILED", results=False), []).run([DIGITS["name"]], tmp_path)


def test_ctrl_c_stops_the_build_and_fetches_what_there_is(tmp_path: Path) -> None:
    cloud, told = Cloud("IN_PROGRESS", "IN_PROGRESS"), list[str]()

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        followed(cloud, told, wait=interrupted).run([DIGITS["name"]], tmp_path)
    assert cloud.stopped
    assert "nothing is left of it" in told[-2]
    assert told[-1] == f"what was measured so far: {tmp_path / 'bench'}"
    assert (tmp_path / "bench" / "results.json").is_file()


def test_ctrl_c_before_anything_was_measured_promises_no_results(tmp_path: Path) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    cloud, told = Cloud("IN_PROGRESS", "IN_PROGRESS", results=False), list[str]()
    with pytest.raises(KeyboardInterrupt):
        followed(cloud, told, wait=interrupted).run([DIGITS["name"]], tmp_path)
    assert "nothing is left of it" in told[-1]


def test_who_loses_sight_of_a_test_is_told_that_it_goes_on_and_where_its_results_will_be(tmp_path: Path) -> None:
    class Expired(Cloud):
        """Its credentials end once the build runs."""

        def batch_get_builds(self, *, ids: list[str]) -> dict[str, Any]:
            raise ClientError({"Error": {"Code": "ExpiredToken", "Message": str(ids)}}, "BatchGetBuilds")

    cloud = Expired()
    with pytest.raises(WorkFailedError, match="followed no longer") as raised:
        followed(cloud, []).run([DIGITS["name"]], tmp_path)
    [plan] = [key for key in cloud.s3.objects if key.endswith("plan.json")]
    assert f"s3://{BUCKET}/{plan.removesuffix('plan.json')}" in str(raised.value)
    assert "it goes on" in str(raised.value)
    assert not cloud.stopped


def test_a_process_that_is_terminated_is_interrupted_for_as_long_as_it_follows_a_test() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt, match="SIGTERM"), terminated_as_interrupted():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


def test_what_is_not_deployed_is_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(WorkFailedError, match="do: deploy dev/"):
        followed(Cloud(deployed=False), []).run([DIGITS["name"]], tmp_path)


def test_an_environment_without_load_tests_and_an_unknown_endpoint_are_wrong_input() -> None:
    with pytest.raises(InputError, match="load_test"):
        CloudTests(environment(DIGITS), session=Cloud(), local=False, progress=print)
    of = environment(DIGITS, SINGLE, load_test={"endpoints": [SINGLE["name"]]})
    with pytest.raises(InputError, match=DIGITS["name"]):
        chosen_endpoints(of, [DIGITS["name"]])
    assert [each.name for each in chosen_endpoints(of, [])] == [SINGLE["name"]]


BENCH = """
import pathlib, sys, time
folder = pathlib.Path(sys.argv[sys.argv.index("--to") + 1])
folder.mkdir()
(folder / "results.json").write_text("first")
(folder / ".hidden").write_text("no")
if "--slow" in sys.argv:
    (folder / "waiting").write_text("")
    while not pathlib.Path("go").exists():
        time.sleep(0.01)
(folder / "results.json").write_text(" ".join(sys.argv[1:]))
sys.exit(3)
"""


def test_the_build_runs_bench_as_its_plan_says_and_exits_as_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3 = S3()
    s3.objects["load-tests/1/plan.json"] = json.dumps({"options": ["one/fast", "--users", "1"]}).encode()
    monkeypatch.chdir(tmp_path)
    assert cloud_build.main(BUCKET, "1", s3=s3, command=(sys.executable, "-c", BENCH)) == 3
    assert s3.objects["load-tests/1/results.json"] == b"one/fast --users 1 --to load-test-results"
    assert set(s3.objects) == {"load-tests/1/plan.json", "load-tests/1/results.json"}


def test_results_are_in_the_bucket_while_the_build_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Releasing(S3):
        """Lets the bench go on once its first results are there."""

        def put_object(self, **given: Any) -> None:
            super().put_object(**given)
            seen.append(given["Body"])
            Path("go").touch()

    seen: list[bytes] = []
    s3 = Releasing()
    s3.objects["load-tests/1/plan.json"] = json.dumps({"options": ["--slow"]}).encode()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cloud_build, "LOOK_SECONDS", 0.2)
    cloud_build.main(BUCKET, "1", s3=s3, command=(sys.executable, "-c", BENCH))
    assert seen[0] == b"first"
    assert seen[-1].startswith(b"--slow")
