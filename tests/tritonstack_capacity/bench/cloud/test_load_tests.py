"""Following a load test from this machine: output, downloads and Ctrl-C; and what the build runs."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError
from click.testing import CliRunner

from tests.config.environment_file import write_environment
from tests.fake_aws import ARTIFACTS, AwsError, FakeAws
from tests.stacks.environments import DIGITS, SINGLE, environment
from tests.tritonstack_capacity.bench.documents import document, point, result
from tritonstack.errors import WorkFailedError
from tritonstack_capacity.bench import cloud_build
from tritonstack_capacity.bench.cloud.load_tests import CloudTests
from tritonstack_capacity.bench.cloud.runs import ExecutionRun
from tritonstack_capacity.commands.bench import command
from tritonstack_capacity.commands.bench_cloud import terminated_as_interrupted

BUCKET, PROJECT = ARTIFACTS, "bench-project"
MEASURED = document(result("plain", point(users=1, per_minute=600, p95=40)))


@dataclass
class Cloud(FakeAws):
    """An account with a build project; its one build is at each of ``statuses``, one after the other.

    Attributes:
        statuses: of the build, as BatchGetBuilds responds with them.
        deployed: whether the environment's stacks are.
        results: whether the build leaves results.
        stopped: whether the build was stopped.
    """

    statuses: Iterable[str] = ()
    deployed: bool = True
    results: bool = True
    stopped: bool = False

    def __post_init__(self) -> None:
        self._left: Iterator[str] = iter(self.statuses)
        if self.deployed:
            self.parameters["/tritonstack/dev/_artifacts/bucket-name"] = BUCKET
            self.parameters["/tritonstack/dev/_load-test/project-name"] = PROJECT

    def _StartBuild(self, projectName: str, idempotencyToken: str, **_: Any) -> dict[str, Any]:
        assert projectName == PROJECT
        if self.results:
            self.artifacts[f"load-tests/{idempotencyToken}/results.json"] = MEASURED.model_dump_json().encode()
        return {"build": {"id": "build:1"}}

    def _StopBuild(self, id: str) -> dict[str, Any]:  # noqa: A002 - as the API spells it
        assert id == "build:1"
        self.stopped = True
        return {}

    def _BatchGetBuilds(self, ids: list[str]) -> dict[str, Any]:
        assert ids == ["build:1"]
        status = "STOPPED" if self.stopped else next(self._left)
        return {"builds": [{"buildStatus": status, "currentPhase": "BUILD"}]}


def followed(
    cloud: Cloud, lines: list[str], *, wait: Callable[[float], None] = lambda _: None, local: bool = False
) -> CloudTests:
    return CloudTests(
        environment(DIGITS, SINGLE, load_test={}), session=cloud, local=local, progress=lines.append, wait=wait
    )


def interrupted(_: float) -> None:
    raise KeyboardInterrupt


def test_a_build_is_started_followed_and_its_results_fetched(tmp_path: Path) -> None:
    cloud, lines = Cloud(statuses=("IN_PROGRESS", "IN_PROGRESS", "SUCCEEDED")), list[str]()
    [fetched] = followed(cloud, lines).run([DIGITS["name"]], tmp_path)
    assert (fetched.kind, fetched.failed) == ("bench", "")
    assert [line for line in lines if line.startswith("CodeBuild")] == ["CodeBuild: BUILD", "CodeBuild: SUCCEEDED"]
    assert json.loads((fetched.folder / "results.json").read_text())["environment"] == "prod"
    [settings] = [json.loads(body) for key, body in cloud.artifacts.items() if key.endswith("settings.json")]
    assert settings["options"][0].startswith(f"{DIGITS['name']}/")


def test_a_build_that_fails_is_reported_with_what_it_left(tmp_path: Path) -> None:
    [fetched] = followed(Cloud(statuses=("FAILED",)), []).run([DIGITS["name"]], tmp_path)
    assert "build:1 ended as FAILED" in fetched.failed
    with pytest.raises(WorkFailedError, match="left no results"):
        followed(Cloud(statuses=("FAILED",), results=False), []).run([DIGITS["name"]], tmp_path)


def test_ctrl_c_stops_the_build_and_fetches_what_there_is(tmp_path: Path) -> None:
    cloud, lines = Cloud(statuses=("IN_PROGRESS", "IN_PROGRESS")), list[str]()

    with pytest.raises(KeyboardInterrupt):
        followed(cloud, lines, wait=interrupted).run([DIGITS["name"]], tmp_path)
    assert cloud.stopped
    assert "nothing is left of it" in lines[-2]
    assert lines[-1] == f"what was measured so far: {tmp_path / 'bench'}"
    assert (tmp_path / "bench" / "results.json").is_file()


EXPIRED = AwsError("ExpiredToken", "it is expired")


class InterruptedStart(Cloud):
    """CodeBuild starts the build, and Ctrl-C comes before its response."""

    def _StartBuild(self, projectName: str, idempotencyToken: str, **_: Any) -> dict[str, Any]:
        response = super()._StartBuild(projectName, idempotencyToken)
        if len(self.tokens) == 1:
            signal.raise_signal(signal.SIGTERM)
        return response

    @property
    def tokens(self) -> list[str]:
        """The idempotency tokens of the requests."""
        return [request["idempotencyToken"] for request in self.requests("StartBuild")]


def test_a_test_that_is_interrupted_while_it_starts_is_stopped_and_its_id_printed(tmp_path: Path) -> None:
    cloud, lines = InterruptedStart(statuses=("IN_PROGRESS",)), list[str]()
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), terminated_as_interrupted():
        followed(cloud, lines).run([DIGITS["name"]], tmp_path)
    assert signal.getsignal(signal.SIGTERM) is before
    assert cloud.stopped
    [test] = set(cloud.tokens)
    assert lines[0].startswith(f"stopping load test {test};")


def names_folder(cloud: Cloud, message: str) -> bool:
    """Whether a message names the S3 folder of the test."""
    [settings] = [key for key in cloud.artifacts if key.endswith("settings.json")]
    return f"s3://{BUCKET}/{settings.removesuffix('settings.json')}" in message


@pytest.mark.parametrize(
    ("call", "error", "statuses", "message"),
    [
        ("StartBuild", ReadTimeoutError(endpoint_url="https://x"), (), "(?s)followed no longer: .*started at all"),
        ("BatchGetBuilds", EXPIRED, (), "followed no longer: (?s:.*)goes on with it"),
        (
            "StopBuild",
            EXPIRED,
            ("IN_PROGRESS", "IN_PROGRESS"),
            "could not be stopped: .*it is expired(?s:.*)goes on with it, and cleans up: build:1",
        ),
        ("GetObject", EXPIRED, ("SUCCEEDED",), "cannot be fetched: .*it is expired"),
    ],
    ids=["started, or not", "lost sight of", "not stopped", "not fetched"],
)
def test_a_lost_test_is_reported_with_what_goes_on_and_where_its_results_will_be(
    tmp_path: Path,
    *,
    call: str,
    error: Exception,
    statuses: tuple[str, ...],
    message: str,
) -> None:
    cloud = Cloud(statuses=statuses, refused={call: error})
    with pytest.raises(WorkFailedError, match=message) as raised:
        followed(cloud, [], wait=interrupted).run([DIGITS["name"]], tmp_path)
    assert names_folder(cloud, str(raised.value))
    assert not cloud.stopped


def test_a_refused_start_and_what_is_not_deployed_are_reported(tmp_path: Path) -> None:
    with pytest.raises(WorkFailedError, match=r"cannot be started: .*it is expired"):
        followed(Cloud(refused={"StartBuild": EXPIRED}), []).run([DIGITS["name"]], tmp_path)
    with pytest.raises(WorkFailedError, match="do: deploy dev/"):
        followed(Cloud(deployed=False), []).run([DIGITS["name"]], tmp_path)


@dataclass
class StepFunctions(FakeAws):
    """Starts an execution once; its name is not taken again where it has ``ended``."""

    ended: bool = False

    def _StartExecution(self, stateMachineArn: str, name: str, input: str) -> dict[str, Any]:  # noqa: A002
        assert json.loads(input) == {"id": name}
        if len(self.requests("StartExecution")) > 1 and self.ended:
            raise AwsError("ExecutionAlreadyExists", name)
        arn = f"{stateMachineArn.replace('stateMachine', 'execution')}:{name}"
        return {"executionArn": arn, "startDate": 0}


@pytest.mark.parametrize("ended", [False, True])
def test_an_execution_that_is_started_once_more_is_the_same(ended: bool) -> None:
    machine = "arn:aws:states:us-east-1:123456789012:stateMachine:loads"
    run = ExecutionRun(
        StepFunctions(ended=ended).client("stepfunctions"), None, machine=machine, settings={"id": "one", "jobs": []}
    )
    assert run.identity == ""
    for _ in range(2):
        run.start()
        assert run.identity == "arn:aws:states:us-east-1:123456789012:execution:loads:one"


@pytest.mark.parametrize(
    ("header", "arguments", "message"),
    [
        ("", (), "load_test: {}"),
        ("load_test: {}", ("none",), "endpoints of local that load_test names"),
        ("load_test: {}", ("--to", "file/folder"), "Not a directory"),
    ],
)
def test_mistakes_in_files_are_reported_before_any_request_to_aws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, header: str, arguments: tuple[str, ...], message: str
) -> None:
    def unreachable(*_: object, **__: object) -> None:
        raise AssertionError("AWS was asked")

    (tmp_path / "environments").mkdir()
    (tmp_path / "file").touch()
    write_environment(tmp_path / "environments", header=header)
    monkeypatch.setenv("TRITONSTACK_PROJECT", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tritonstack.cli.session.session_of", unreachable)
    ran = CliRunner().invoke(command, ["--cloud", "-e", "local", *arguments], standalone_mode=False)
    assert getattr(ran.exception, "exit_code", None) == 2, ran.exception
    assert message in str(ran.exception)


BENCH = """
import pathlib, sys, time
folder = pathlib.Path(sys.argv[sys.argv.index("--to") + 1])
folder.mkdir()
(folder / "results.json").write_text("first")
(folder / ".hidden").write_text("no")
while not pathlib.Path("go").exists():
    time.sleep(0.01)
(folder / "results.json").write_text(" ".join(sys.argv[1:]))
sys.exit(3)
"""


def test_the_build_runs_bench_by_its_settings_uploads_each_result_and_exits_with_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Releasing(FakeAws):
        """Lets the bench go on once its first results are there."""

        def _PutObject(
            self, Bucket: str, Key: str, Body: Any = b"", IfNoneMatch: str = "", Metadata: Any = None, **_: Any
        ) -> dict[str, Any]:
            response = super()._PutObject(Bucket, Key, Body, IfNoneMatch, Metadata)
            seen.append(self.artifacts[Key])
            Path("go").touch()
            return response

    seen: list[bytes] = []
    aws = Releasing()
    aws.artifacts["load-tests/1/settings.json"] = json.dumps({"options": ["one/fast", "--users", "1"]}).encode()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cloud_build, "LOOK_SECONDS", 0.2)
    assert cloud_build.main(BUCKET, "1", s3=aws.client("s3"), command=(sys.executable, "-c", BENCH)) == 3
    assert seen == [b"first", b"one/fast --users 1 --to load-test-results"]
    assert set(aws.artifacts) == {"load-tests/1/settings.json", "load-tests/1/results.json"}
