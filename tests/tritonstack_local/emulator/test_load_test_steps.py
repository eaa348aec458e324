"""The load test's function, run against Inference Recommender on the local AWS."""

from __future__ import annotations

import contextlib
import importlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.tritonstack_capacity.bench.cloud.test_settings_file import configuration
from tests.tritonstack_local.emulator.running import IMAGE, ROLE_ARN, Emulator
from tests.tritonstack_local.emulator.test_recommender import described, status
from tritonstack.config.load_test import RecommenderSettings
from tritonstack.naming import load_test_job_prefix
from tritonstack_capacity.bench.cloud.settings_file import recommender_test_settings
from tritonstack_capacity.bench.document import BenchDocument

# `lambda` is a keyword: an import statement cannot name the folder.
steps: Any = importlib.import_module("lambda.load_test.steps")
shared_clients: Any = importlib.import_module("lambda.shared.clients")
handler: Any = importlib.import_module("lambda.load_test.handler")
load_test_objects: Any = importlib.import_module("lambda.load_test.objects")


def with_client(clients: Any, **changed: Any) -> Any:
    """The clients, with others in place of some."""
    made = shared_clients.Aws(clients._connect)
    vars(made).update(changed)  # as a cached property keeps a client
    return made


@pytest.fixture
def clients(aws: Emulator, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(steps, "LOOK_SECONDS", 0)
    return shared_clients.Aws(aws.client)


@pytest.fixture
def place(bucket: str, name: str) -> Any:
    return load_test_objects.Place(bucket, ROLE_ARN, load_test_job_prefix(name))


@pytest.fixture
def written(aws: Emulator, bucket: str, name: str) -> str:
    """The settings that ``bench --cloud`` writes for two jobs, with archive and payload; the id of the test."""
    for key in ("model.tar.gz", "payload.tar.gz"):
        aws.client("s3").put_object(Bucket=bucket, Key=key, Body=b"bytes")
    container = {"Image": IMAGE, "ModelDataUrl": f"s3://{bucket}/model.tar.gz", "Environment": {}}
    fast = configuration("fast", container=container, payload_url=f"s3://{bucket}/payload.tar.gz")
    settings = recommender_test_settings(
        name,
        [fast],
        environment=name,
        settings=RecommenderSettings(job="both", instance_types=("ml.g4dn.xlarge",), poll_seconds=1),
        started=datetime(2026, 1, 1, tzinfo=UTC),
        local=True,
    )
    settings["jobs"].reverse()  # the advanced one first: the tests look at that
    del settings["jobs"][0]["after"]  # and it waits for none: test_load_test_plan.py has that
    aws.client("s3").put_object(
        Bucket=bucket, Key=f"load-tests/{name}/settings.json", Body=json.dumps(settings).encode()
    )
    return name


def read(aws: Emulator, bucket: str, test: str, name: str) -> Any:
    content = aws.client("s3").get_object(Bucket=bucket, Key=f"load-tests/{test}/{name}")["Body"].read()
    return json.loads(content) if name.endswith(".json") else content.decode()


def started(written: str, clients: Any, place: Any) -> list[str]:
    """Both jobs started; each step twice, for the state machine may repeat one."""
    for _ in range(2):
        registered = steps.register({"id": written}, clients, place)
        for job in registered["jobs"]:
            steps.start({"id": written, "job": job, "poll_seconds": 1}, clients, place)
    jobs: list[str] = registered["jobs"]
    return jobs


def test_the_steps_register_start_look_gather_and_clean_up_and_may_be_repeated(
    aws: Emulator, bucket: str, written: str, clients: Any, place: Any
) -> None:
    jobs = started(written, clients, place)
    look = {"id": written, "job": jobs[0], "poll_seconds": 1}
    assert steps.look(look, clients, place)["status"] == "running"
    for job in jobs:
        status(aws, job, "IN_PROGRESS")
    aws.advance(2700)
    for job in jobs:
        status(aws, job, "COMPLETED")
    assert steps.look(look, clients, place)["status"] == "ended"
    assert steps.gather({"id": written}, clients, place)["failed"] == 0
    first = steps.clean_up({"id": written, "why": "ended"}, clients, place, seconds=5)
    assert [one.split()[0] for one in first["removed"]].count("Model") == 2
    assert first["stopped"] == []
    assert steps.clean_up({"id": written, "why": "again"}, clients, place, seconds=5)["removed"] == []
    assert read(aws, bucket, written, "cleaned.json")["why"] == "ended"
    document = BenchDocument.model_validate(read(aws, bucket, written, "results.json"))
    assert document.complete
    assert [each.configuration for each in document.results] == ["fast", "fast (default job)"]
    assert document.results[0].endpoint_figures[0].p95_ms == pytest.approx(118, abs=3)
    assert document.results[1].container_parameters == {"OMP_NUM_THREADS": "4"}
    rows = read(aws, bucket, written, "measurements.csv").splitlines()[1:]
    assert [row.split(",")[0] for row in rows] == ["fast"], "the default job's type was load-tested"
    used = document.results[0].points[0].utilization
    assert used is not None
    assert (used.cpu_percent, used.gpu_percent) == (50, 80), "Inference Recommender's, and CloudWatch's"


def test_a_test_without_a_plan_has_nothing_to_clean_up_and_no_id_leads_out_of_its_folder(
    written: str, clients: Any, place: Any
) -> None:
    assert steps.clean_up({"id": f"{written}-x"}, clients, place, seconds=1)["removed"] == []
    with pytest.raises(ValueError, match="no load test's id"):
        steps.clean_up({"id": "../other"}, clients, place, seconds=1)


def test_a_plan_with_names_of_another_environment_is_refused(written: str, clients: Any, bucket: str) -> None:
    place = load_test_objects.Place(bucket, ROLE_ARN, "prod-lt-")
    with pytest.raises(ValueError, match="begin with prod-lt-"):
        steps.register({"id": written}, clients, place)


def left(aws: Emulator, test: str) -> list[str]:
    """What a test has left but its objects: models that its jobs made, jobs that run, its group of packages."""
    sagemaker = aws.client("sagemaker")
    names = [one["ModelName"] for one in sagemaker.list_models(NameContains=test)["Models"]]
    for number in (1, 2):
        job = f"{load_test_job_prefix(test)}{test}-{number}"
        with contextlib.suppress(ClientError):
            names += [job] if described(aws, job)["Status"] not in ("STOPPED", "COMPLETED", "FAILED") else []
    group = f"{load_test_job_prefix(test)}{test}"
    with contextlib.suppress(ClientError):
        sagemaker.describe_model_package_group(ModelPackageGroupName=group)
        names.append(group)
    return names


def running_test(aws: Emulator, written: str, clients: Any, place: Any) -> list[str]:
    """Its jobs, under way."""
    jobs = started(written, clients, place)
    for job in jobs:
        status(aws, job, "IN_PROGRESS")
    assert left(aws, written), "a test that found nothing to leave would prove nothing"
    return jobs


class Refusing:
    """A client that refuses some calls, and does the others."""

    def __init__(self, client: Any, refuses: Callable[[str, dict[str, Any]], bool]) -> None:
        self._client, self._refuses = client, refuses

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)

        def call(**given: Any) -> Any:
            if self._refuses(name, given):
                raise ClientError({"Error": {"Code": "InternalError", "Message": name}}, name)
            return found(**given)

        return call if name.islower() and name not in ("exceptions", "meta", "get_paginator") else found


@pytest.mark.parametrize("refused", ["closed.json", "results.json"])
def test_what_a_test_made_is_removed_although_the_bucket_refuses(
    aws: Emulator, written: str, clients: Any, place: Any, refused: str
) -> None:
    running_test(aws, written, clients, place)
    refusing = Refusing(clients.s3, lambda name, given: name == "put_object" and given["Key"].endswith(refused))
    with pytest.raises(ClientError, match="put_object"):
        steps.clean_up({"id": written}, with_client(clients, s3=refusing), place, seconds=20)
    assert left(aws, written) == []
    again = steps.clean_up({"id": written}, clients, place, seconds=20)
    assert again["removed"] == [], "and what could not be written is, by the next try"


def test_figures_that_cloudwatch_refuses_are_reported_missing_and_the_others_kept(
    aws: Emulator, bucket: str, written: str, clients: Any, place: Any
) -> None:
    jobs = running_test(aws, written, clients, place)
    aws.advance(2700)
    for job in jobs:
        status(aws, job, "COMPLETED")
    refusing = Refusing(clients.cloudwatch, lambda *_: True)
    registered = steps.gather({"id": written}, with_client(clients, cloudwatch=refusing), place)
    assert registered["failed"] == 0
    document = BenchDocument.model_validate(read(aws, bucket, written, "results.json"))
    [first, *_] = document.results
    assert (first.failed, first.endpoint_figures, len(first.points)) == (False, [], 1)
    assert first.ended_by.startswith("COMPLETED; CloudWatch returned no figures: An error occurred (InternalError)")


def test_nothing_is_made_for_a_test_that_was_cleaned_up(aws: Emulator, written: str, clients: Any, place: Any) -> None:
    """A step that was called before the execution was cancelled, and begins after its clean-up."""
    jobs = started(written, clients, place)
    steps.clean_up({"id": written}, clients, place, seconds=20)
    for step in ({"do": "register"}, {"do": "start", "job": jobs[0], "poll_seconds": 1}):
        with pytest.raises(load_test_objects.ClosedError, match="nothing more is made"):
            steps.run({"id": written, **step}, clients, place, seconds=20)
    assert left(aws, written) == []


class Overtaken:
    """SageMaker, whose clean-up is done by another run of the function right before a call of this one."""

    def __init__(self, sagemaker: Any, before: str, clean_up: Callable[[], object]) -> None:
        self._sagemaker, self._before, self._clean_up = sagemaker, before, clean_up
        self.overtaken = False

    def __getattr__(self, name: str) -> Any:
        if name == self._before and not self.overtaken:
            self.overtaken = True
            self._clean_up()
        return getattr(self._sagemaker, name)


@pytest.mark.parametrize(
    ("step", "before"),
    [
        ("register", "create_model_package_group"),
        ("register", "create_model_package"),
        ("start", "describe_model_package"),
        ("start", "create_inference_recommendations_job"),
    ],
)
def test_what_a_step_makes_while_the_test_is_cleaned_up_is_removed_by_the_step(
    aws: Emulator, written: str, clients: Any, place: Any, *, step: str, before: str
) -> None:
    """The clean-up sees nothing of it, and does not call it again."""
    event: dict[str, Any] = {"do": step, "id": written}
    if step == "start":
        job = steps.register({"id": written}, clients, place)["jobs"][0]
        event |= {"job": job, "poll_seconds": 1}

    def clean_up() -> None:
        steps.clean_up({"id": written}, clients, place, seconds=20)

    overtaken = Overtaken(clients.sagemaker, before, clean_up)
    with pytest.raises(load_test_objects.MadeTooLateError):
        steps.run(event, with_client(clients, sagemaker=overtaken), place, seconds=20)
    assert overtaken.overtaken
    assert left(aws, written) == []
