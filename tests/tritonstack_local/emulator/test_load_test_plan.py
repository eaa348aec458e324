"""The committed plan of 24 load tests on the local Inference Recommender: from archives alone, without an endpoint."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from click.testing import CliRunner

from tests.tritonstack_local.emulator.running import ROLE_ARN, Emulator
from tests.tritonstack_local.emulator.test_load_test_steps import Refusing, with_client
from tests.tritonstack_local.emulator.test_recommender import described
from tritonstack.config import load_environment
from tritonstack.errors import InputError
from tritonstack.naming import ArchiveName, archive_key, artifact_parameter, load_test_job_prefix, manifest_key
from tritonstack.paths import REPOSITORY
from tritonstack.served import Served, served_by
from tritonstack_capacity.bench.cloud.bucket_objects import TestObjects
from tritonstack_capacity.bench.cloud.configurations import archived_configurations
from tritonstack_capacity.bench.cloud.settings_file import recommender_test_settings, resumed_settings
from tritonstack_capacity.commands import size
from tritonstack_capacity.sizing.measurements import read_measurements

# `lambda` is a keyword: an import statement cannot name the folder.
steps: Any = importlib.import_module("lambda.load_test.steps")
shared_clients: Any = importlib.import_module("lambda.shared.clients")
load_test_objects: Any = importlib.import_module("lambda.load_test.objects")

NAMES = ["pt-base", "pt-db", "pt-ig", "pt-db-ig", "trt-base", "trt-db", "trt-ig", "trt-db-ig"]
TYPES = ["ml.g4dn.xlarge", "ml.g4dn.2xlarge", "ml.g4dn.12xlarge"]
FILE = REPOSITORY / "environments" / "bert-large.yaml"
PUBLISHED = REPOSITORY / "tritonstack_capacity/sizing/data/bert_large_load_test.csv"
TENSOR = {"name": "token_ids", "datatype": "INT32", "shape": [-1, 4]}
MANIFEST = {
    "model": {
        "name": "bert-large",
        "max_batch_size": 8,
        "inputs": [TENSOR],
        "outputs": [{"name": "logits", "datatype": "FP32", "shape": [-1, 2]}],
    },
    "archive": {"sha256": "0" * 64},
    "configs": {"bert-large": 'backend: "python"'},
    "sample": {
        "file": "request.json",
        "body": {"inputs": [{"name": "token_ids", "datatype": "INT32", "shape": [1, 4], "data": [1, 2, 3, 4]}]},
        "answer": {"outputs": []},
        "tolerance": 0.001,
    },
}


@pytest.fixture(scope="module")
def plan() -> Served:
    return served_by(load_environment(FILE), REPOSITORY / "model_repos", file=FILE)


@pytest.fixture
def published(aws: Emulator, bucket: str, plan: Served) -> str:
    """The bucket, with a tiny archive and a manifest of each configuration, where `prepare` puts them."""
    parameter = artifact_parameter(environment="bert-large", value="bucket-name")
    aws.client("ssm").put_parameter(Name=parameter, Value=bucket, Type="String", Overwrite=True)
    for endpoint in plan.environment.endpoints:
        [(model, digest)] = plan.release_sets[endpoint.name].items()
        place: Any = {
            "endpoint": endpoint.name,
            "platform": endpoint.platform,
            "archive": ArchiveName(model=model, digest=digest),
        }
        aws.client("s3").put_object(Bucket=bucket, Key=manifest_key(**place), Body=json.dumps(MANIFEST).encode())
        aws.client("s3").put_object(Bucket=bucket, Key=archive_key(**place), Body=b"tiny")
    return bucket


class Test:
    """One test by the plan, whose steps are called as its state machine calls them."""

    __test__ = False

    def __init__(self, aws: Emulator, bucket: str, plan: Served, name: str, **changes: Any) -> None:
        assert plan.environment.load_test is not None
        recommender = plan.environment.load_test.recommender.model_copy(
            update={"model_package_group": f"group-{name}", "poll_seconds": 1, **changes}
        )
        configurations = archived_configurations(
            plan.environment.endpoints, served=plan, session=aws, bucket=bucket, test=name
        )
        self.settings = recommender_test_settings(
            name,
            configurations,
            environment="bert-large",
            settings=recommender,
            started=datetime.now(UTC),
            local=True,
        )
        self.aws, self.id = aws, name
        self.objects = TestObjects(aws.client("s3"), bucket=bucket, test=name)
        self.objects.put_payloads(configurations)
        self.objects.put_settings(self.settings)
        self.clients = shared_clients.Aws(aws.client)
        group = self.settings["group"] if self.settings["keep_packages"] else ""
        self.place = load_test_objects.Place(bucket, ROLE_ARN, load_test_job_prefix("bert-large"), group)

    def of_type(self, kind: str) -> list[str]:
        return [job["name"] for job in self.settings["jobs"] if job["job_type"] == kind]

    def step(self, do: str, **event: Any) -> Any:
        given = {"do": do, "id": self.id, "poll_seconds": 1, **event}
        return steps.run(given, self.clients, self.place, seconds=20)

    def start(self, jobs: list[str]) -> set[str]:
        return {self.step("start", job=job)["status"] for job in jobs}

    def end(self, jobs: list[str], seconds: float) -> set[str]:
        """The jobs' statuses once their requests have ended."""
        for _ in range(2):  # from PENDING to IN_PROGRESS; then to their end
            [described(self.aws, job) for job in jobs]
            self.aws.advance(seconds)
        return {str(described(self.aws, job)["Status"]) for job in jobs}


@pytest.fixture
def begin(aws: Emulator, published: str, plan: Served, name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(steps, "LOOK_SECONDS", 0)

    def made(**changes: Any) -> Test:
        return Test(aws, published, plan, name, **changes)

    yield made


def test_the_plan_is_eight_published_names_by_three_instance_types_as_published(plan: Served) -> None:
    environment = plan.environment
    assert [each.name for each in environment.endpoints] == NAMES
    assert environment.hosted_endpoints == ()
    assert environment.load_test is not None
    recommender = environment.load_test.recommender
    assert list(recommender.instance_types) == TYPES
    [phase] = recommender.phases
    assert (phase.initial_users, phase.users_per_minute, phase.seconds) == (2, 2, 1500)
    assert (recommender.max_invocations, recommender.latency.milliseconds) == (30_000, 500)
    assert (recommender.framework, recommender.framework_version) == ("PYTORCH", "1.6.0")
    assert (recommender.task, recommender.nearest_model) == ("CLASSIFICATION", "bert-large-uncased")


def test_the_plan_runs_from_archives_alone_default_jobs_first_and_size_takes_its_24_rows(
    aws: Emulator, begin: Callable[..., Test], tmp_path: Path
) -> None:
    test = begin()
    defaults, load_tests = test.of_type("Default"), test.of_type("Advanced")
    assert (len(defaults), len(load_tests)) == (8, 24)
    assert test.step("register")["jobs"] == [*defaults, *load_tests]
    assert test.start(load_tests[:1]) == {"waiting"}, "its default job is not even started"
    assert test.start(defaults) == {"running"}
    assert test.start(load_tests[:1]) == {"waiting"}
    assert test.end(defaults, 2700) == {"COMPLETED"}
    assert test.start(load_tests) == {"running"}
    assert test.start(load_tests) == {"running"}, "a repeated step starts nothing twice"
    assert test.end(load_tests, 1500) == {"COMPLETED"}
    for job, (name, instance_type) in zip(load_tests, [(n, t) for n in NAMES for t in TYPES], strict=True):
        [tested] = described(aws, job)["InputConfig"]["EndpointConfigurations"]
        assert tested["InstanceType"] == instance_type, name
        cpus = {"ml.g4dn.xlarge": "4", "ml.g4dn.2xlarge": "8", "ml.g4dn.12xlarge": "48"}[instance_type]
        ranges = tested["EnvironmentParameterRanges"]["CategoricalParameterRanges"]
        assert ranges == [{"Name": "OMP_NUM_THREADS", "Value": [cpus]}], "what the default job recommends for the type"
    assert test.step("gather")["failed"] == 0
    removed = test.step("clean_up", why="ended")["removed"]
    assert not [one for one in removed if "model-package" in one]
    listed = aws.client("sagemaker").list_model_packages(ModelPackageGroupName=test.settings["group"])
    assert len(listed["ModelPackageSummaryList"]) == 8, "the versions stay registered"

    assert test.objects.fetch(tmp_path, local=True)
    rows = read_measurements(tmp_path / "measurements.csv")
    assert {(row.configuration.removesuffix(" (constructed)"), row.instance_type) for row in rows} == {
        (name, each) for name in NAMES for each in TYPES
    }
    arguments = ["--measurements", str(tmp_path / "measurements.csv"), "--load", "30000", "--latency-ms", "500"]
    printed = CliRunner().invoke(size.command, [*arguments, "--beside", str(PUBLISHED), "--json"])
    assert printed.exit_code == 0, printed.output
    found = json.loads(printed.stdout)["rows"]
    assert {row["instances"] for row in found} == {50}, "30,000 of 600 a minute each"
    beside = {(row["configuration"], row["instance_type"]): row["beside"] for row in found}
    assert len(beside) == 24
    assert all(beside.values()), "each has its published row, pt-db-ig that of pt-ig-db"
    assert beside["trt-db (constructed)", "ml.g4dn.2xlarge"]["instances"] == 23


def test_a_job_that_cannot_be_started_is_named_and_loses_no_other(begin: Callable[..., Test], tmp_path: Path) -> None:
    test = begin(job="advanced", instance_types=("ml.g4dn.xlarge",))
    jobs = test.of_type("Advanced")
    test.step("register")

    def no_capacity(name: str, given: dict[str, Any]) -> bool:
        return name == "create_inference_recommendations_job" and given["JobName"] == jobs[0]

    clients = test.clients
    test.clients = with_client(clients, sagemaker=Refusing(clients.sagemaker, no_capacity))
    with pytest.raises(ClientError):
        test.start(jobs[:1])
    # as Step Functions gives the cause of a function's failure
    test.step("not_started", job=jobs[0], why=json.dumps({"errorMessage": "no instances", "errorType": "ClientError"}))
    test.clients = clients
    test.start(jobs[1:])
    assert test.end(jobs[1:], 1500) == {"COMPLETED"}
    gathered = test.step("gather")
    assert (gathered["failed"], "could not be started: no instances" in gathered["reason"]) == (1, True)
    test.objects.fetch(tmp_path, local=True)
    assert len(read_measurements(tmp_path / "measurements.csv")) == 7


def test_a_test_that_goes_on_keeps_completed_jobs_and_runs_the_others(
    aws: Emulator, begin: Callable[..., Test], tmp_path: Path
) -> None:
    test = begin(job="advanced", instance_types=("ml.g4dn.xlarge",), model_package_group=None)
    jobs = test.of_type("Advanced")
    test.step("register")
    test.start(jobs[:3])
    assert test.end(jobs[:3], 1500) == {"COMPLETED"}
    test.start(jobs[3:5])
    stopped = test.step("clean_up", why="interrupted")["stopped"]
    assert stopped == jobs[3:5]

    again = resumed_settings(test.settings, test=f"{test.id}-2", kept=set(jobs[:3]))
    names = [job["name"] for job in again["jobs"]]
    assert names[:3] == jobs[:3]
    assert not set(names[3:]) & set(jobs)
    assert set(again["packages"]) == set(NAMES[3:])
    test.settings, test.id = again, again["id"]
    test.objects = TestObjects(aws.client("s3"), bucket=test.objects.bucket, test=test.id)
    test.objects.put_settings(again)
    test.step("register")
    assert test.start(names) == {"running"}
    assert test.end(names[3:], 1500) == {"COMPLETED"}
    assert test.step("gather")["failed"] == 0
    assert test.objects.fetch(tmp_path, local=True)
    assert len(read_measurements(tmp_path / "measurements.csv")) == 8


def test_without_types_the_recommended_ones_are_tested_in_one_job_and_combinations_are_rows(
    aws: Emulator, begin: Callable[..., Test], tmp_path: Path
) -> None:
    test = begin(instance_types=(), environment_parameters={"TRITON_SETTING": ("1", "2")})
    defaults, load_tests = test.of_type("Default"), test.of_type("Advanced")
    assert (len(defaults), len(load_tests)) == (8, 8)
    test.step("register")
    test.start(defaults[:1])
    test.end(defaults[:1], 2700)
    recommended = [
        one["EndpointConfiguration"]["InstanceType"] for one in described(aws, defaults[0])["InferenceRecommendations"]
    ]
    assert len(recommended) > 1
    test.start(load_tests[:1])
    given = described(aws, load_tests[0])["InputConfig"]
    assert [one["InstanceType"] for one in given["EndpointConfigurations"]] == recommended
    assert given["ResourceLimit"] == {"MaxNumberOfTests": 2 * len(recommended), "MaxParallelOfTests": 5}
    assert test.end(load_tests[:1], 7200) == {"COMPLETED"}
    test.step("clean_up", why="the others are not needed")
    test.objects.fetch(tmp_path, local=True)
    rows = {row.configuration for row in read_measurements(tmp_path / "measurements.csv")}
    assert {"pt-base TRITON_SETTING=1 (constructed)", "pt-base TRITON_SETTING=2 (constructed)"} <= rows


def test_a_missing_archive_is_named_with_the_command_that_makes_it(aws: Emulator, published: str, plan: Served) -> None:
    endpoint = plan.environment.endpoints[0]
    [(model, digest)] = plan.release_sets[endpoint.name].items()
    key = archive_key(
        endpoint=endpoint.name, platform=endpoint.platform, archive=ArchiveName(model=model, digest=digest)
    )
    aws.client("s3").delete_object(Bucket=published, Key=key)
    session: Any = SimpleNamespace(client=aws.client)
    with pytest.raises(InputError) as raised:
        archived_configurations(plan.environment.endpoints, served=plan, session=session, bucket=published, test="t")
    [problem] = raised.value.problems
    assert problem.field == "pt-base"
    assert problem.advice == "tritonstack prepare -e bert-large --local"
