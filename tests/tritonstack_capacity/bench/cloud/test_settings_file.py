"""The settings of a load test: requests that SageMaker's own model takes, a job for each configuration and type."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator

from tests.tritonstack_capacity.bench.documents import result
from tritonstack.config.load_test import BenchBuildSettings, RecommenderSettings
from tritonstack_capacity.bench.cloud.configurations import Configuration
from tritonstack_capacity.bench.cloud.settings_file import bench_test_settings, recommender_test_settings
from tritonstack_capacity.commands.bench import command

VPC = {"SecurityGroupIds": ["sg-0a"], "Subnets": ["subnet-0a"]}


def configuration(name: str, *, instance_type: str = "ml.g4dn.xlarge", **changes: Any) -> Configuration:
    whole = result(
        name,
        name=f"one/{name}",
        endpoint="dev-one",
        variant=None,
        instance_type=instance_type,
        instance_count=1,
        payload_format="json",
        generator="SageMaker Inference Recommender",
        ended_by="it was never started",
    )
    given = {
        "result": whole,
        "container": {
            "Image": "301217895009.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:24.09-py3",
            "ModelDataUrl": "s3://bucket/endpoints/one/24.09-t4/fast.0.tar.gz",
            "Environment": {"SAGEMAKER_TRITON_LOG_VERBOSE": "false"},
        },
        "vpc": None,
        "payload_url": "s3://bucket/load-tests/1/payloads/fast.tar.gz",
        "content_type": "application/json",
    }
    return Configuration(**{**given, **changes})


def settings_of(*configurations: Configuration, **settings: Any) -> dict[str, Any]:
    return recommender_test_settings(
        "260101-000000-abcd",
        configurations or (configuration("fast"),),
        environment="dev",
        settings=RecommenderSettings.model_validate(settings),
        started=datetime(2026, 1, 1, tzinfo=UTC),
        local=False,
    )


def check(operation: str, request: dict[str, Any]) -> None:
    """The request holds before botocore's input shape: members, required members, types, ranges."""
    shape = botocore.session.get_session().get_service_model("sagemaker").operation_model(operation).input_shape
    assert shape is not None
    report = ParamValidator().validate(request, shape)
    assert not report.has_errors(), report.generate_report()


@pytest.mark.parametrize("kind", ["default", "advanced", "both"])
@pytest.mark.parametrize("vpc", [None, VPC])
def test_requests_hold_before_the_service_s_own_model(kind: str, vpc: dict[str, list[str]] | None) -> None:
    made = settings_of(configuration("fast", vpc=vpc), job=kind, nearest_model="bert-base-uncased")
    for job in made["jobs"]:
        given = {**job["request"]["InputConfig"], "ModelPackageVersionArn": "arn:aws:sagemaker:r:1:model-package/a/1"}
        role = "arn:aws:iam::123456789012:role/jobs"
        check(
            "CreateInferenceRecommendationsJob",
            {**job["request"], "InputConfig": given, "JobName": job["name"], "RoleArn": role},
        )
        assert job["request"]["InputConfig"].get("VpcConfig") == vpc
    [package] = made["packages"].values()
    check("CreateModelPackage", {**package, "ModelPackageGroupName": made["group"]})


def test_there_is_a_job_for_each_configuration_and_instance_type() -> None:
    types = ["ml.g4dn.xlarge", "ml.g4dn.2xlarge"]
    made = settings_of(configuration("plain"), configuration("batched"), instance_types=types)
    assert [(job["configuration"], job["instance_type"]) for job in made["jobs"]] == [
        (name, each) for name in ("plain", "batched") for each in types
    ]
    assert len({job["name"] for job in made["jobs"]}) == 4
    assert all(len(job["name"]) < 40 for job in made["jobs"])


def test_without_instance_types_the_endpoint_s_own_is_tested() -> None:
    [job] = settings_of(configuration("fast", instance_type="ml.g5.xlarge"))["jobs"]
    assert job["request"]["InputConfig"]["EndpointConfigurations"] == [{"InstanceType": "ml.g5.xlarge"}]


def test_traffic_and_stopping_conditions_are_the_settings() -> None:
    phases = [{"initial_users": 1, "users_per_minute": 3, "seconds": 120}]
    latency = {"percentile": "P99", "milliseconds": 80}
    [job] = settings_of(phases=phases, max_invocations=900, latency=latency, flat_invocations="continue")["jobs"]
    assert job["load"] == "1+3:120"
    assert job["request"]["InputConfig"]["TrafficPattern"]["Phases"] == [
        {"InitialNumberOfUsers": 1, "SpawnRate": 3, "DurationInSeconds": 120}
    ]
    assert job["request"]["StoppingConditions"] == {
        "MaxInvocations": 900,
        "ModelLatencyThresholds": [{"Percentile": "P99", "ValueInMilliseconds": 80}],
        "FlatInvocations": "Continue",
    }


def test_a_default_job_has_neither_traffic_nor_types() -> None:
    [job] = settings_of(job="default")["jobs"]
    assert job["request"] == {"InputConfig": {}, "JobType": "Default", "JobDescription": "fast on any type"}


def test_a_build_gets_the_options_of_bench() -> None:
    settings = BenchBuildSettings(users=(1, 2), stop_latency_ms=80.0)
    options = bench_test_settings("1", ["several/fast"], environment="dev", settings=settings)["options"]
    parsed = command.make_context("bench", list(options)).params
    assert (parsed["names"], parsed["environment"], parsed["users"]) == (("several/fast",), "dev", "1,2")
    assert (parsed["payload_format"], parsed["stop_latency_ms"], parsed["max_seconds"]) == ("binary", 80.0, 900.0)
