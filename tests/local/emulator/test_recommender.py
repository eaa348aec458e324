"""Inference Recommender on the local AWS: a life cycle, documented limits, answers in the service's own shape.

The figures are constructed; that is what their ids say. The load test's function is run against it, too.
"""

from __future__ import annotations

import importlib
import json
from datetime import UTC, datetime
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import ClientError
from botocore.validate import ParamValidator

from tests.bench.test_cloud_plan import configuration
from tests.local.emulator.running import IMAGE, ROLE_ARN, Emulator, wait_until
from tritonstack.bench.cloud_machine import job_prefix
from tritonstack.bench.cloud_plan import recommender_plan
from tritonstack.bench.document import BenchDocument
from tritonstack.settings.load_test import RecommenderSettings

# `lambda` is a word of the language, so the folder of that name cannot stand in an import statement.
steps: Any = importlib.import_module("lambda.load_test.steps")
services: Any = importlib.import_module("lambda.load_test.services")

PHASES = [{"InitialNumberOfUsers": 2, "SpawnRate": 2, "DurationInSeconds": 1500}]
ADVANCED: dict[str, Any] = {
    "InputConfig": {
        "JobDurationInSeconds": 7200,
        "TrafficPattern": {"TrafficType": "PHASES", "Phases": PHASES},
        "ResourceLimit": {"MaxNumberOfTests": 1, "MaxParallelOfTests": 1},
        "EndpointConfigurations": [{"InstanceType": "ml.g4dn.xlarge"}],
    },
    "StoppingConditions": {"MaxInvocations": 30000, "FlatInvocations": "Stop"},
    "JobType": "Advanced",
}


def package_request(bucket: str) -> dict[str, Any]:
    container = {"Image": IMAGE, "ModelDataUrl": f"s3://{bucket}/model.tar.gz"}
    return {
        "InferenceSpecification": {
            "Containers": [container],
            "SupportedContentTypes": ["application/json"],
            "SupportedResponseMIMETypes": ["application/json"],
        },
        "Domain": "MACHINE_LEARNING",
        "Task": "OTHER",
        "SamplePayloadUrl": f"s3://{bucket}/payload.tar.gz",
    }


@pytest.fixture
def package(aws: Emulator, bucket: str, name: str) -> str:
    """A model package whose archive and payload are there."""
    for key in ("model.tar.gz", "payload.tar.gz"):
        aws.client("s3").put_object(Bucket=bucket, Key=key, Body=b"bytes")
    sagemaker = aws.client("sagemaker")
    sagemaker.create_model_package_group(ModelPackageGroupName=name)
    made = sagemaker.create_model_package(ModelPackageGroupName=name, **package_request(bucket))
    return str(made["ModelPackageArn"])


def start(aws: Emulator, name: str, package: str, **more: Any) -> None:
    request = json.loads(json.dumps(ADVANCED))
    request["InputConfig"]["ModelPackageVersionArn"] = package
    request["InputConfig"] |= more
    aws.client("sagemaker").create_inference_recommendations_job(JobName=name, RoleArn=ROLE_ARN, **request)


def described(aws: Emulator, name: str) -> dict[str, Any]:
    found = aws.client("sagemaker").describe_inference_recommendations_job(JobName=name)
    return {key: value for key, value in found.items() if key != "ResponseMetadata"}


def status(aws: Emulator, name: str, wanted: str) -> dict[str, Any]:
    found: dict[str, Any] = wait_until(lambda: described(aws, name), lambda one: one["Status"] == wanted)
    return found


def check_shape(operation: str, answer: dict[str, Any]) -> None:
    """The answer has the members, types and required members of botocore's output shape."""
    shape = botocore.session.get_session().get_service_model("sagemaker").operation_model(operation).output_shape
    assert shape is not None
    report = ParamValidator().validate(answer, shape)
    assert not report.has_errors(), report.generate_report()


def test_a_job_is_pending_then_in_progress_then_completed_in_the_service_s_shape(
    aws: Emulator, name: str, package: str
) -> None:
    start(aws, name, package)
    check_shape("DescribeInferenceRecommendationsJob", described(aws, name))
    assert described(aws, name)["Status"] in ("PENDING", "IN_PROGRESS")
    status(aws, name, "IN_PROGRESS")
    aws.advance(1499)
    assert described(aws, name)["Status"] == "IN_PROGRESS"
    aws.advance(1)
    answer = status(aws, name, "COMPLETED")
    check_shape("DescribeInferenceRecommendationsJob", answer)
    [found] = answer["InferenceRecommendations"]
    assert found["RecommendationId"].startswith("constructed-by-the-local-aws")
    assert found["EndpointConfiguration"]["InstanceType"] == "ml.g4dn.xlarge"
    assert (found["InvocationEndTime"] - found["InvocationStartTime"]).total_seconds() >= 1500


def test_a_stopped_job_is_stopped_and_has_no_recommendation(aws: Emulator, name: str, package: str) -> None:
    start(aws, name, package)
    status(aws, name, "IN_PROGRESS")
    aws.client("sagemaker").stop_inference_recommendations_job(JobName=name)
    answer = status(aws, name, "STOPPED")
    check_shape("DescribeInferenceRecommendationsJob", answer)
    assert "InferenceRecommendations" not in answer
    with pytest.raises(ClientError, match="is in status STOPPED"):
        aws.client("sagemaker").stop_inference_recommendations_job(JobName=name)


def test_a_job_without_its_archive_fails_and_names_it(aws: Emulator, name: str, bucket: str, package: str) -> None:
    aws.client("s3").delete_object(Bucket=bucket, Key="model.tar.gz")
    start(aws, name, package)
    answer = status(aws, name, "FAILED")
    check_shape("DescribeInferenceRecommendationsJob", answer)
    assert "model.tar.gz" in answer["FailureReason"]


@pytest.mark.parametrize(
    "phase",
    [
        {"InitialNumberOfUsers": 4, "SpawnRate": 0, "DurationInSeconds": 120},
        {"InitialNumberOfUsers": 1, "SpawnRate": 4, "DurationInSeconds": 120},
        {"InitialNumberOfUsers": 1, "SpawnRate": 0, "DurationInSeconds": 119},
        {"InitialNumberOfUsers": 1, "SpawnRate": 0, "DurationInSeconds": 3601},
    ],
)
def test_a_phase_outside_the_documented_limits_is_refused(
    aws: Emulator, name: str, package: str, phase: dict[str, int]
) -> None:
    with pytest.raises(ClientError, match="is not between"):
        start(aws, name, package, TrafficPattern={"TrafficType": "PHASES", "Phases": [phase]})


def test_a_job_needs_a_package_that_is_there_and_a_name_of_its_own(aws: Emulator, name: str, package: str) -> None:
    with pytest.raises(ClientError, match="does not exist"):
        start(aws, name, f"{package}0")
    start(aws, name, package)
    with pytest.raises(ClientError, match="already existing"):
        start(aws, name, package)


def test_a_group_with_packages_is_not_deleted_and_versions_are_never_used_again(
    aws: Emulator, name: str, bucket: str, package: str
) -> None:
    sagemaker = aws.client("sagemaker")
    with pytest.raises(ClientError, match="still contains"):
        sagemaker.delete_model_package_group(ModelPackageGroupName=name)
    check_shape("DescribeModelPackage", _plain(sagemaker.describe_model_package(ModelPackageName=package)))
    listed = _plain(sagemaker.list_model_packages(ModelPackageGroupName=name))
    check_shape("ListModelPackages", listed)
    check_shape("DescribeModelPackageGroup", _plain(sagemaker.describe_model_package_group(ModelPackageGroupName=name)))
    sagemaker.delete_model_package(ModelPackageName=package)
    second = sagemaker.create_model_package(ModelPackageGroupName=name, **package_request(bucket))["ModelPackageArn"]
    assert second.endswith("/2")


def unknown(shape: Any, value: Any, at: str = "") -> list[str]:
    """The members of a raw answer that the service's model does not know."""
    if value is None or shape.type_name not in ("structure", "list", "map"):
        return []
    if shape.type_name == "list":
        return [one for each in value for one in unknown(shape.member, each, f"{at}[]")]
    if shape.type_name == "map":
        return [one for name, each in value.items() for one in unknown(shape.value, each, f"{at}.{name}")]
    found = [f"{at}.{name}" for name in value if name not in shape.members]
    known = {name: each for name, each in value.items() if name in shape.members}
    return found + [one for name, each in known.items() for one in unknown(shape.members[name], each, f"{at}.{name}")]


def test_no_answer_has_a_member_that_the_service_does_not_know(
    aws: Emulator, name: str, bucket: str, package: str
) -> None:
    """Of what is on the wire: botocore's parser passes over what its model does not know."""
    sagemaker, raw = aws.client("sagemaker"), dict[str, Any]()

    def keep(operation_model: Any, response_dict: dict[str, Any], **_: Any) -> None:
        raw[operation_model.name] = json.loads(response_dict["body"] or b"{}")

    sagemaker.meta.events.register("before-parse.sagemaker", keep)
    sagemaker.create_model_package_group(ModelPackageGroupName=f"{name}-2")
    sagemaker.create_model_package(ModelPackageGroupName=f"{name}-2", **package_request(bucket))
    sagemaker.describe_model_package_group(ModelPackageGroupName=name)
    sagemaker.list_model_packages(ModelPackageGroupName=name)
    sagemaker.describe_model_package(ModelPackageName=package)
    start(aws, name, package)
    status(aws, name, "IN_PROGRESS")
    aws.advance(1500)
    status(aws, name, "COMPLETED")
    sagemaker.describe_inference_recommendations_job(JobName=name)
    sagemaker.meta.events.unregister("before-parse.sagemaker", keep)
    assert set(raw) == {
        *(f"{verb}ModelPackageGroup" for verb in ("Create", "Describe")),
        *(f"{verb}ModelPackage" for verb in ("Create", "Describe")),
        "ListModelPackages",
        *(f"{verb}InferenceRecommendationsJob" for verb in ("Create", "Describe")),
    }
    model = botocore.session.get_session().get_service_model("sagemaker")
    assert [
        f"{op}{one}" for op, said in raw.items() for one in unknown(model.operation_model(op).output_shape, said)
    ] == []
    job = raw["DescribeInferenceRecommendationsJob"]
    assert all(one["RecommendationId"].startswith("constructed-") for one in job["InferenceRecommendations"])


def _plain(answer: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in answer.items() if key != "ResponseMetadata"}


@pytest.fixture
def clients(aws: Emulator) -> Any:
    return services.Clients(s3=aws.client("s3"), sagemaker=aws.client("sagemaker"), cloudwatch=aws.client("cloudwatch"))


@pytest.fixture
def place(bucket: str, name: str) -> Any:
    return services.Place(bucket, ROLE_ARN, job_prefix(name))


@pytest.fixture
def planned(aws: Emulator, bucket: str, name: str, package: str) -> str:
    """The plan that ``bench --cloud`` writes for an advanced and a default job; the test's id.

    ``package`` puts archive and payload there.
    """
    del package
    fast = configuration(
        "fast",
        image=IMAGE,
        model_data_url=f"s3://{bucket}/model.tar.gz",
        payload_url=f"s3://{bucket}/payload.tar.gz",
    )
    plan = recommender_plan(
        name,
        [fast],
        environment=name,
        settings=RecommenderSettings(job="both", poll_seconds=1),
        started=datetime(2026, 1, 1, tzinfo=UTC),
        local=True,
    )
    plan["jobs"].reverse()  # the advanced one first: the tests look at that
    aws.client("s3").put_object(Bucket=bucket, Key=f"load-tests/{name}/plan.json", Body=json.dumps(plan).encode())
    return name


def read(aws: Emulator, bucket: str, test: str, name: str) -> Any:
    content = aws.client("s3").get_object(Bucket=bucket, Key=f"load-tests/{test}/{name}")["Body"].read()
    return json.loads(content) if name.endswith(".json") else content.decode()


def started(planned: str, clients: Any, place: Any) -> list[str]:
    """Both jobs started; each step twice, for the state machine may repeat one."""
    for _ in range(2):
        told = steps.register({"id": planned}, clients, place)
        for job in told["jobs"]:
            steps.start({"id": planned, "job": job, "poll_seconds": 1}, clients, place)
    jobs: list[str] = told["jobs"]
    return jobs


def test_the_steps_register_start_look_gather_and_clean_up_and_may_be_repeated(
    aws: Emulator, bucket: str, planned: str, clients: Any, place: Any
) -> None:
    jobs = started(planned, clients, place)
    look = {"id": planned, "job": jobs[0], "poll_seconds": 1}
    assert steps.look(look, clients, place)["status"] == "running"
    for job in jobs:
        status(aws, job, "IN_PROGRESS")
    aws.advance(2700)
    for job in jobs:
        status(aws, job, "COMPLETED")
    assert steps.look(look, clients, place)["status"] == "ended"
    assert steps.gather({"id": planned}, clients, place)["failed"] == 0
    first = steps.clean_up({"id": planned, "why": "ended"}, clients, place, seconds=5)
    assert [one.split()[0] for one in first["removed"]].count("Model") == 3
    assert first["stopped"] == []
    assert steps.clean_up({"id": planned, "why": "again"}, clients, place, seconds=5)["removed"] == []
    assert read(aws, bucket, planned, "cleaned.json")["why"] == "ended"
    document = BenchDocument.model_validate(read(aws, bucket, planned, "results.json"))
    assert document.complete
    assert [each.configuration for each in document.results] == ["fast", "fast (default job)", "fast (default job)"]
    assert document.results[0].endpoint_figures[0].p95_ms == pytest.approx(118, abs=3)
    assert len(read(aws, bucket, planned, "measurements.csv").splitlines()) == 4


def test_a_cancelled_test_is_stopped_kept_and_removed(
    aws: Emulator, bucket: str, planned: str, clients: Any, place: Any
) -> None:
    jobs = started(planned, clients, place)
    status(aws, jobs[0], "IN_PROGRESS")
    cleaned = steps.clean_up(
        {"id": planned, "why": "its execution is ABORTED"}, clients, place, seconds=20, wait=lambda _: None
    )
    assert cleaned["stopped"] == jobs
    assert {described(aws, job)["Status"] for job in jobs} == {"STOPPED"}
    assert not aws.client("sagemaker").list_models(NameContains=planned)["Models"]
    document = BenchDocument.model_validate(read(aws, bucket, planned, "results.json"))
    assert (document.complete, {each.ended_by for each in document.results}) == (False, {"STOPPED"})


def test_a_job_that_does_not_end_in_time_has_the_clean_up_done_again(
    aws: Emulator, planned: str, clients: Any, place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = started(planned, clients, place)
    monkeypatch.setattr(steps.jobs, "stop", lambda *_: False)
    with pytest.raises(TimeoutError, match=jobs[0]):
        steps.clean_up({"id": planned}, clients, place, seconds=0)
    monkeypatch.undo()
    assert steps.clean_up({"id": planned}, clients, place, seconds=20, wait=lambda _: None)["stopped"] == jobs


def test_a_failed_job_is_told_by_its_reason_and_leaves_the_others_results(
    aws: Emulator, bucket: str, planned: str, clients: Any, place: Any
) -> None:
    aws.client("s3").delete_object(Bucket=bucket, Key="payload.tar.gz")
    jobs = started(planned, clients, place)
    for job in jobs:
        status(aws, job, "FAILED")
    told = steps.gather({"id": planned}, clients, place)
    assert told["failed"] == 2
    assert "payload.tar.gz" in told["reason"]


def test_a_test_without_a_plan_has_nothing_to_clean_up_and_no_id_leads_out_of_its_folder(
    planned: str, clients: Any, place: Any
) -> None:
    assert steps.clean_up({"id": f"{planned}-x"}, clients, place, seconds=1)["removed"] == []
    with pytest.raises(ValueError, match="no load test's id"):
        steps.clean_up({"id": "../other"}, clients, place, seconds=1)


def test_a_plan_with_names_of_another_environment_is_refused(planned: str, clients: Any, bucket: str) -> None:
    place = services.Place(bucket, ROLE_ARN, "prod-lt-")
    with pytest.raises(ValueError, match="begin with prod-lt-"):
        steps.register({"id": planned}, clients, place)
