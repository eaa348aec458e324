"""Load tests in the cloud, on the local AWS: a real deployment, the real command, the state machine run by MiniStack.

What Inference Recommender answers is constructed by the local AWS; what CodeBuild's bench measures is this machine.
"""

from __future__ import annotations

import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import endpoint
from tests.e2e.deployments import advance, eventually
from tests.e2e.project import PROGRAM, Project, environment_yaml
from tritonstack_capacity.bench.document import BenchDocument
from tritonstack_capacity.bench.results_folder import read_results
from tritonstack_capacity.sizing.measurements import read_measurements
from tritonstack_local.aws import LocalAws

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(900)]

PHASE_SECONDS = 600
LOAD_TEST = f"""
load_test:
  recommender:
    phases: [{{initial_users: 2, users_per_minute: 2, seconds: {PHASE_SECONDS}}}]
    duration_seconds: {PHASE_SECONDS}
    poll_seconds: 1
    at_once: 2
  bench: {{users: [1], max_seconds: 60}}
"""


PLAN_GROUP = "plan-of-e2e"
PLAN = f"""
load_test:
  archives_only: true
  recommender:
    job: both
    instance_types: [ml.g4dn.xlarge, ml.g4dn.2xlarge]
    phases: [{{initial_users: 2, users_per_minute: 2, seconds: {PHASE_SECONDS}}}]
    duration_seconds: {PHASE_SECONDS}
    poll_seconds: 1
    at_once: 3
    model_package_group: {PLAN_GROUP}
"""
"""The committed plan's shape (environments/bert-large.yaml), with two configurations on two types."""


@dataclass(frozen=True)
class LoadTests:
    """An environment with load tests, deployed, and the command on it."""

    project: Project
    aws: LocalAws
    name: str = "loads"

    def start(self, folder: Path, *endpoints: str) -> subprocess.Popen[str]:
        """``bench --cloud`` in the background."""
        return subprocess.Popen(
            [str(PROGRAM), "capacity", "bench", "--cloud", "-e", self.name, "--local", "--to", str(folder), *endpoints],
            cwd=self.project.root,
            env=self.project.variables,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def executions(self) -> list[dict[str, Any]]:
        parameter = self.aws.client("ssm").get_parameter(Name=f"/tritonstack/{self.name}/_load-test/state-machine-arn")
        machine = parameter["Parameter"]["Value"]
        found: list[dict[str, Any]] = self.aws.client("stepfunctions").list_executions(stateMachineArn=machine)[
            "executions"
        ]
        return sorted(found, key=lambda each: each["startDate"], reverse=True)

    def jobs(self, test: str) -> dict[str, str]:
        """Name → status of the test's jobs that were started."""
        sagemaker = self.aws.client("sagemaker")
        found = {}
        for number in range(1, 10):
            try:
                name = f"{self.name}-lt-{test}-{number}"
                found[name] = str(sagemaker.describe_inference_recommendations_job(JobName=name)["Status"])
            except sagemaker.exceptions.ClientError:
                break
        return found

    def leftovers(self) -> list[str]:
        """Models that jobs made, and groups of packages."""
        sagemaker = self.aws.client("sagemaker")
        names = [one["ModelName"] for one in sagemaker.list_models(NameContains=f"{self.name}-lt-")["Models"]]
        for execution in self.executions():
            try:
                sagemaker.describe_model_package_group(ModelPackageGroupName=f"{self.name}-lt-{execution['name']}")
                names.append(execution["name"])
            except sagemaker.exceptions.ClientError:
                pass
        return names

    def objects(self, test: str) -> set[str]:
        ssm, s3 = self.aws.client("ssm"), self.aws.client("s3")
        bucket = ssm.get_parameter(Name=f"/tritonstack/{self.name}/_artifacts/bucket-name")["Parameter"]["Value"]
        prefix = f"load-tests/{test}/"
        listed = s3.list_objects_v2(Bucket=bucket, Prefix=prefix)
        return {one["Key"].removeprefix(prefix) for one in listed.get("Contents", [])}


@pytest.fixture(scope="module")
def loads(project: Project, local_aws: LocalAws) -> LoadTests:
    text = environment_yaml(
        name="loads",
        endpoints=[
            endpoint("several", ["adds-00"]),
            endpoint("one", ["fits"], mode="single-model"),
        ],
    )
    file = project.write("environments/loads.yaml", text)
    file.write_text(file.read_text() + LOAD_TEST)
    project.run("local", "deploy", "-e", "loads", timeout=600)
    return LoadTests(project, local_aws)


@pytest.fixture(scope="module")
def plan(project: Project, local_aws: LocalAws) -> LoadTests:
    text = environment_yaml(
        name="plan",
        endpoints=[
            endpoint("base", ["fits"], mode="single-model"),
            endpoint("db", ["adds-00"], mode="single-model"),
        ],
    )
    file = project.write("environments/plan.yaml", text)
    file.write_text(file.read_text() + PLAN)
    project.run("local", "deploy", "-e", "plan", timeout=600)
    return LoadTests(project, local_aws, "plan")


def ended(process: subprocess.Popen[str], *, expect: int) -> str:
    printed, told = process.communicate(timeout=300)
    assert process.returncode == expect, f"{process.returncode}\n{printed}\n{told}"
    return printed + told


def running_test(loads: LoadTests, before: int) -> str:
    """The id of the test that was started, once its job is under way."""
    test = eventually(lambda: len(loads.executions()) > before and str(loads.executions()[0]["name"]))
    eventually(lambda: "IN_PROGRESS" in loads.jobs(test).values())
    return str(test)


def test_a_single_model_endpoint_is_tested_by_the_state_machine_gated_and_nothing_is_left(
    loads: LoadTests, tmp_path: Path
) -> None:
    process = loads.start(tmp_path, "one")
    test = running_test(loads, 0)
    assert loads.leftovers(), "a test that found nothing to leave would prove nothing"
    advance(loads.aws, PHASE_SECONDS)
    told = ended(process, expect=0)
    assert "Constructed responses of the local AWS" in told
    assert loads.executions()[0]["status"] == "SUCCEEDED"
    assert loads.leftovers() == []
    document = read_results(tmp_path / "recommender" / "results.json")
    assert document.complete
    [result] = document.results
    assert (result.configuration, result.instance_type, result.ended_by) == ("fits", "ml.g4dn.xlarge", "COMPLETED")
    assert result.endpoint_figures[0].metric == "ModelLatency"
    [row] = read_measurements(tmp_path / "recommender" / "measurements.csv")
    assert row.configuration == "fits (constructed)"
    assert row.invocations_per_minute == round(result.points[0].per_minute.mean)
    assert row.usd_per_hour is not None
    assert {"settings.json", "payloads/fits.tar.gz", "results.json", "measurements.csv"} <= loads.objects(test)
    file = loads.project.root / "environments/loads.yaml"
    text = file.read_text()
    for p95, code in ((1000, 0), (1, 1)):
        file.write_text(text + f"  gate: {{p95_ms: {p95}, usd_per_million: 1000}}\n")
        loads.project.run("capacity", "bench", "--gate", str(tmp_path / "recommender"), expect=code)
    file.write_text(text)


def test_ctrl_c_stops_what_runs_and_the_event_of_it_has_it_cleaned_up(loads: LoadTests, tmp_path: Path) -> None:
    process = loads.start(tmp_path, "one")
    test = running_test(loads, len(loads.executions()))
    process.send_signal(signal.SIGINT)
    told = ended(process, expect=130)
    assert "nothing is left of it" in told
    assert loads.executions()[0]["status"] == "ABORTED"
    assert set(loads.jobs(test).values()) == {"STOPPED"}
    assert loads.leftovers() == []
    document: BenchDocument = read_results(tmp_path / "recommender" / "results.json")
    assert not document.complete
    assert document.results[0].ended_by == "STOPPED"


def test_a_multi_model_endpoint_is_called_by_bench_in_codebuild(loads: LoadTests, tmp_path: Path) -> None:
    ended(loads.start(tmp_path, "several"), expect=0)
    document = read_results(tmp_path / "bench" / "results.json")
    assert document.local
    assert [point.users for point in document.results[0].points] == [1]
    assert {each.instance_type for each in document.results} == {"this-machine"}
    assert read_measurements(tmp_path / "bench" / "measurements.csv")[0].instance_type == "this-machine"


def test_a_plan_of_archives_runs_default_jobs_then_load_tests_by_the_deployed_machine(
    plan: LoadTests, tmp_path: Path
) -> None:
    sagemaker, states = plan.aws.client("sagemaker"), plan.aws.client("stepfunctions")
    process = plan.start(tmp_path)
    test = running_test(plan, 0)
    assert sagemaker.list_endpoints(NameContains="plan-")["Endpoints"] == [], "no endpoint has to stand"

    def another_job_or_the_end() -> bool:
        """Let the jobs that run end, until the command has."""
        if process.poll() is None and "IN_PROGRESS" in plan.jobs(test).values():
            advance(plan.aws, 2700)
        return process.poll() is not None

    eventually(another_job_or_the_end)
    told = ended(process, expect=0)
    assert "6 of 6 jobs have ended" in told
    [execution] = plan.executions()
    history = states.get_execution_history(executionArn=execution["executionArn"], maxResults=1000)["events"]
    entered = [each["stateEnteredEventDetails"]["name"] for each in history if "stateEnteredEventDetails" in each]
    order = ["Register", "Measure", "Gather", "CleanUp"]
    assert [name for name in dict.fromkeys(entered) if name in order] == order
    described = [
        sagemaker.describe_inference_recommendations_job(JobName=f"plan-lt-{test}-{number}") for number in range(1, 7)
    ]
    assert [each["JobType"] for each in described] == ["Default"] * 2 + ["Advanced"] * 4
    for each in described[2:]:
        [tested] = each["InputConfig"]["EndpointConfigurations"]
        assert tested["EnvironmentParameterRanges"]["CategoricalParameterRanges"], "what its default job recommends"
    assert {each["Status"] for each in described} == {"COMPLETED"}
    packages = sagemaker.list_model_packages(ModelPackageGroupName=PLAN_GROUP)["ModelPackageSummaryList"]
    assert len(packages) == 2, "the versions stay"
    assert plan.leftovers() == []
    rows = read_measurements(tmp_path / "recommender" / "measurements.csv")
    assert {(row.configuration, row.instance_type) for row in rows} == {
        (f"{name} (constructed)", f"ml.g4dn.{size}") for name in ("base", "db") for size in ("xlarge", "2xlarge")
    }
    measured = str(tmp_path / "recommender" / "measurements.csv")
    plan.project.run(
        "capacity", "size", "-e", "plan", "--measurements", measured, "--load", "600", "--latency-ms", "9000"
    )
