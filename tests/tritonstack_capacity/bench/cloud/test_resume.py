"""Going on with a test of Inference Recommender: followed again, or its unfinished jobs in another test."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.fake_aws import ARTIFACTS, AwsError, FakeAws
from tests.stacks.environments import SINGLE, environment
from tests.tritonstack_capacity.bench.cloud.test_settings_file import configuration, settings_of
from tests.tritonstack_capacity.bench.documents import document, point, result
from tritonstack.errors import InputError
from tritonstack_capacity.bench.cloud.load_tests import CloudTests
from tritonstack_capacity.bench.cloud.most_cost import MostCost

TEST = "260101-000000-abcd"
MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:loads"
MEASURED = document(result("plain", point(users=1, per_minute=600, p95=40))).model_dump_json().encode()
TYPES = ["ml.g4dn.xlarge", "ml.g4dn.2xlarge", "ml.g4dn.12xlarge"]
SETTINGS = settings_of(configuration("fast"), instance_types=TYPES)
FIRST, SECOND, THIRD = (job["name"] for job in SETTINGS["jobs"])


@dataclass
class Cloud(FakeAws):
    """An account with the state machine, and what became of the jobs of a test.

    Attributes:
        jobs: name → status; a job that is not in it was never started.
        executions: test → its statuses, the last one for ever.
    """

    jobs: dict[str, str] = field(default_factory=dict)
    executions: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.parameters["/tritonstack/dev/_artifacts/bucket-name"] = ARTIFACTS
        self.parameters["/tritonstack/dev/_load-test/state-machine-arn"] = MACHINE
        self.artifacts[f"load-tests/{TEST}/settings.json"] = json.dumps(SETTINGS).encode()
        self.artifacts[f"load-tests/{TEST}/results.json"] = MEASURED

    def _DescribeExecution(self, executionArn: str) -> dict[str, Any]:
        test = executionArn.rpartition(":")[2]
        if test not in self.executions:
            raise AwsError("ExecutionDoesNotExist", test)
        left = self.executions[test]
        return {"status": left.pop(0) if len(left) > 1 else left[0]}

    def _StartExecution(self, name: str, **_: Any) -> dict[str, Any]:
        self.executions[name] = ["SUCCEEDED"]
        self.artifacts[f"load-tests/{name}/results.json"] = MEASURED
        return {"executionArn": f"{MACHINE.replace('stateMachine', 'execution', 1)}:{name}", "startDate": 0}

    def _DescribeInferenceRecommendationsJob(self, JobName: str) -> dict[str, Any]:
        if JobName not in self.jobs:
            raise AwsError("ResourceNotFound", JobName)
        return {"Status": self.jobs[JobName]}


def resumed(cloud: Cloud, folder: Path, *, test: str = TEST, lines: list[str], asked: list[MostCost]) -> None:
    tests = CloudTests(
        environment(SINGLE, load_test={"recommender": {"instance_types": TYPES}}),
        session=cloud,
        local=False,
        progress=lines.append,
        wait=lambda _: None,
        ask=asked.append,
    )
    tests.resume(test, folder)


def test_a_test_that_still_runs_is_followed_with_each_job_s_progress_and_nothing_is_asked(tmp_path: Path) -> None:
    cloud = Cloud(
        jobs={FIRST: "COMPLETED", SECOND: "IN_PROGRESS"}, executions={TEST: ["RUNNING", "RUNNING", "SUCCEEDED"]}
    )
    lines, asked = list[str](), list[MostCost]()
    resumed(cloud, tmp_path, lines=lines, asked=asked)
    assert (cloud.requests("StartExecution"), asked) == ([], [])
    assert "fast on ml.g4dn.xlarge: COMPLETED" in lines
    assert "fast on ml.g4dn.12xlarge: not started" in lines
    assert "1 of 3 jobs have ended" in lines
    assert (tmp_path / "recommender" / "results.json").is_file()
    described = [each["JobName"] for each in cloud.requests("DescribeInferenceRecommendationsJob")]
    assert described.count(FIRST) == 1, "a job that has ended is not asked for again"


def test_completed_jobs_are_kept_and_the_others_run_in_a_test_of_their_own(tmp_path: Path) -> None:
    cloud = Cloud(jobs={FIRST: "COMPLETED", SECOND: "STOPPED"}, executions={TEST: ["ABORTED"]})
    lines, asked = list[str](), list[MostCost]()
    resumed(cloud, tmp_path, lines=lines, asked=asked)
    [started] = cloud.requests("StartExecution")
    written = json.loads(cloud.artifacts[f"load-tests/{started['name']}/settings.json"])
    names = [job["name"] for job in written["jobs"]]
    assert names[0] == FIRST
    assert not {SECOND, THIRD} & set(names), "names of jobs are never given twice"
    assert [cost.load_tests for cost in asked] == [2]
    assert f"load test {TEST}: 1 of 3 jobs are completed, and kept" in lines


def test_a_refused_question_writes_nothing(tmp_path: Path) -> None:
    cloud = Cloud(executions={TEST: ["FAILED"]})

    class NoError(Exception):
        pass

    class Refuses(list[MostCost]):
        def append(self, _: MostCost) -> None:
            raise NoError

    with pytest.raises(NoError):
        resumed(cloud, tmp_path, lines=[], asked=Refuses())
    assert (cloud.requests("PutObject"), cloud.requests("StartExecution")) == ([], [])


def test_a_test_whose_jobs_are_all_completed_is_only_fetched(tmp_path: Path) -> None:
    cloud = Cloud(jobs=dict.fromkeys((FIRST, SECOND, THIRD), "COMPLETED"), executions={TEST: ["SUCCEEDED"]})
    resumed(cloud, tmp_path, lines=[], asked=[])
    assert cloud.requests("StartExecution") == []
    assert (tmp_path / "recommender" / "results.json").is_file()


def test_a_test_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        resumed(Cloud(), tmp_path, test="260101-000000-0000", lines=[], asked=[])
    [problem] = raised.value.problems
    assert problem.field == "--resume"
    assert "260101-000000-0000" in problem.found
