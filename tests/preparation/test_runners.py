"""Where the GPU step runs: CodeBuild and SageMaker Processing."""

from __future__ import annotations

import json
import textwrap
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from tests.preparation.prepare_way import A10G, IMAGE, T4, Clients, Way
from tritonstack.engines.engine_builds import builder_for
from tritonstack.preparation import remote_job
from tritonstack.preparation.build_order import JobNetwork
from tritonstack.preparation.gpu_step import EngineFailedError, EngineRunner, EngineStoppedError, run_name
from tritonstack.preparation.prepare import runner_for
from tritonstack.preparation.remote_job import log_tail

HEAD = """\
import json, os, pathlib, sys, time
here = pathlib.Path(__file__).resolve().parent
job = json.loads((here / "job.json").read_text())
output = here / job["output"]
output.mkdir(parents=True, exist_ok=True)
def result(**fields):
    (output / "result.json").write_text(json.dumps(fields))
"""
BUILT = HEAD + 'result(outcome="built")\n(output / "model.plan").write_text((here / "model.onnx").read_text() * 2)\n'
FAILED = (
    HEAD
    + """\
print("[E] no tactic", flush=True)
result(outcome="failed", phase="build", reason="trtexec ends with status 1", log_tail=["[E] no tactic"])
message = pathlib.Path("/opt/ml/output/message")
if os.environ.get("CODEBUILD_BUILD_ID") is None:
    message.write_text("FAILED in phase build: trtexec ends with status 1")
sys.exit(4)
"""
)
SILENT = HEAD + 'print("something was wrong", flush=True)\nsys.exit(7)\n'
HANGING = (
    HEAD
    + """\
import signal
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # a container's first process ends of no signal without this
print("hanging", flush=True)
while True:
    time.sleep(0.1)
"""
)


@dataclass
class Remote:
    """A runner of one service, and a job for it."""

    way: Way
    kind: str
    stop: threading.Event
    network: JobNetwork | None = None

    @property
    def runner(self) -> EngineRunner:
        """On the A10G of CodeBuild, or the T4 of Processing."""
        builder = builder_for(A10G if self.kind == "codebuild" else T4, "us-east-1", image=IMAGE)
        assert builder.kind == self.kind
        order = self.way.order(network=self.network, tags={"team": "platform"})
        return runner_for(builder, order, session=Clients(self.way.emulator), bucket=self.way.bucket, stop=self.stop)

    def run(self, step: str, *, progress: Callable[[str], None] = lambda _text: None) -> Path:
        """Run a step; the folder of its output."""
        job, output = self.way.root / "job", self.way.root / "output"
        job.mkdir()
        (job / "job.json").write_text(json.dumps({"timeout_seconds": 600, "output": "?", "timing_cache": None}))
        (job / "engine_step.py").write_text(textwrap.dedent(step))
        (job / "model.onnx").write_text("graph")
        name = run_name(environment=self.way.name, model="tiny")
        self.runner.run(name=name, job=job, output=output, report=progress)
        return output

    def described(self) -> dict[str, Any]:
        """The service's description of the only job that there was."""
        if self.kind == "codebuild":
            (build,) = self.way.emulator.client("codebuild").batch_get_builds(ids=list(self.way.builds()))["builds"]
            return dict(build)
        (job,) = self.way.jobs()
        sagemaker = self.way.emulator.client("sagemaker")
        return dict(sagemaker.describe_processing_job(ProcessingJobName=job["ProcessingJobName"]))

    @property
    def status(self) -> str:
        return str(self.described().get("buildStatus") or self.described()["ProcessingJobStatus"])

    def is_hanging(self) -> bool:
        """Whether the step has written its line."""
        where = self.described().get("logs", {})
        group, stream = where.get("groupName", "/aws/sagemaker/ProcessingJobs"), where.get("streamName")
        prefix = f"{self.way.name}-engine-"
        lines = log_tail(self.way.emulator.client("logs"), group=group, stream=stream, prefix=prefix)
        return any("hanging" in line for line in lines)


@pytest.fixture(params=["codebuild", "processing"])
def remote(request: pytest.FixtureRequest, way: Way) -> Remote:
    way.make_builds()
    return Remote(way, request.param, threading.Event())


class WhenHanging:
    """A report that does something once, as soon as the step hangs."""

    def __init__(self, remote: Remote, act: Callable[[], object]) -> None:
        self._remote, self._act, self._done = remote, act, False

    def __call__(self, text: str) -> None:
        """Act once, at the first progress line at which the job runs and hangs."""
        running = text.startswith(("CodeBuild: BUILD", "Processing: InProgress"))
        if running and not self._done and self._remote.is_hanging():
            self._done = True
            self._act()


def test_the_output_comes_back_nothing_stays_staged_and_the_job_is_what_was_planned(
    remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEBUILD_BUILD_ID", "builds:1")
    output = remote.run(BUILT)
    assert (output / "model.plan").read_text() == "graphgraph"
    assert sorted(path.name for path in output.iterdir()) == ["model.plan", "result.json"]
    assert remote.way.keys("staging/") == []
    job, variables = remote.described(), {"TRITONSTACK_STARTED_BY": "builds:1"}
    if remote.kind == "codebuild":
        environment = job["environment"]
        assert {each["name"]: each["value"] for each in environment["environmentVariables"]} == variables
        assert (environment["image"], environment["computeType"]) == (IMAGE, "BUILD_GENERAL1_SMALL")
        assert (environment["type"], environment["imagePullCredentialsType"]) == ("LINUX_GPU_CONTAINER", "SERVICE_ROLE")
        assert job["timeoutInMinutes"] == 10 + 20
        return
    assert job["Environment"] == variables
    assert job["NetworkConfig"] == {"EnableNetworkIsolation": True}, "the step needs none"
    cluster = job["ProcessingResources"]["ClusterConfig"]
    assert (cluster["InstanceType"], cluster["InstanceCount"]) == ("ml.g4dn.xlarge", 1)
    assert "VolumeKmsKeyId" not in cluster, "g4dn has local NVMe, and refuses a key"
    assert job["ProcessingOutputConfig"]["KmsKeyId"].startswith("arn:aws:kms:")
    assert job["StoppingCondition"] == {"MaxRuntimeInSeconds": 600 + 1200}
    assert job["AppSpecification"]["ImageUri"] == IMAGE
    tags = remote.way.emulator.client("sagemaker").list_tags(ResourceArn=job["ProcessingJobArn"])["Tags"]
    assert tags == [{"Key": "team", "Value": "platform"}]


def test_the_step_s_reason_of_a_failure_comes_before_the_service_s(remote: Remote) -> None:
    with pytest.raises(EngineFailedError) as failed:
        remote.run(FAILED)
    assert failed.value.reason == "trtexec ends with status 1 (phase build of the engine step)"
    assert (failed.value.phase, failed.value.link.startswith("https://")) == ("engine", True)
    assert any("[E] no tactic" in line for line in failed.value.log_tail)
    assert remote.way.keys("staging/") == []


def test_a_silent_step_fails_with_the_services_reason_and_the_logs_last_lines(remote: Remote) -> None:
    with pytest.raises(EngineFailedError) as failed:
        remote.run(SILENT)
    assert ("ended as FAILED in BUILD" if remote.kind == "codebuild" else "ended as Failed") in failed.value.reason
    assert any("something was wrong" in line for line in failed.value.log_tail)


def test_a_job_that_ends_well_without_a_plan_is_a_failure(remote: Remote) -> None:
    with pytest.raises(EngineFailedError, match=r"left no result\.json of a plan"):
        remote.run(HEAD + '(output / "other").write_text("?")\n')


def test_a_job_that_is_given_up_is_stopped_and_its_staging_removed(remote: Remote) -> None:
    with pytest.raises(EngineStoppedError):
        remote.run(HANGING, progress=WhenHanging(remote, remote.stop.set))
    assert remote.status.upper() == "STOPPED"
    assert remote.way.keys("staging/") == []


def test_a_job_that_is_stopped_by_hand_is_reported_as_such_a_failure(remote: Remote) -> None:
    def by_hand() -> None:
        if remote.kind == "codebuild":
            remote.way.emulator.client("codebuild").stop_build(id=remote.way.builds()[0])
        else:
            name = remote.way.jobs()[0]["ProcessingJobName"]
            remote.way.emulator.client("sagemaker").stop_processing_job(ProcessingJobName=name)

    with pytest.raises(EngineFailedError, match=r"ended as (STOPPED|Stopped)") as failed:
        remote.run(HANGING, progress=WhenHanging(remote, by_hand))
    assert not isinstance(failed.value, EngineStoppedError)


def test_a_job_is_not_uploaded_to_its_end_once_it_is_given_up(remote: Remote) -> None:
    remote.stop.set()
    with pytest.raises(EngineStoppedError):
        remote.run(BUILT)
    assert remote.way.keys("staging/") == []
    assert (list(remote.way.builds()), list(remote.way.jobs())) == ([], [])


def test_a_service_that_no_longer_responds_fails_the_engine_after_its_retries(
    remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_job, "LOST_LOOKS", 3)

    def lose(**_: object) -> None:
        raise EndpointConnectionError(endpoint_url=remote.way.emulator.url)

    class Losing(Clients):
        """Its clients lose the service once a job has begun."""

        def client(self, service_name: str, *, config: Any = None) -> Any:
            made = super().client(service_name)
            for call in ("codebuild.BatchGetBuilds", "sagemaker.DescribeProcessingJob"):
                made.meta.events.register(f"before-call.{call}", lose)
            return made

    monkeypatch.setattr("tests.preparation.test_runners.Clients", Losing)
    with pytest.raises(EngineFailedError, match=r"does not describe .*Could not connect") as failed:
        remote.run(HANGING)
    assert remote.way.emulator.url in str(failed.value)
    assert remote.way.keys("staging/") == []
    assert remote.status.upper() in ("STOPPING", "STOPPED", "FAILED"), "FAILED: its job was gone before it began"


def test_processing_joins_the_network_of_its_order(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CODEBUILD_BUILD_ID", raising=False)
    way.make_builds()
    network = JobNetwork(subnet_ids=("subnet-0a",), security_group_ids=("sg-0b",))
    remote = Remote(way, "processing", threading.Event(), network)
    remote.run(BUILT)
    assert remote.described()["NetworkConfig"] == {
        "EnableNetworkIsolation": True,
        "VpcConfig": {"Subnets": ["subnet-0a"], "SecurityGroupIds": ["sg-0b"]},
    }
    assert not remote.described().get("Environment"), "no build of CodeBuild started it"
