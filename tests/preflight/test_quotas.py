"""Instance types and quotas: the arithmetic, what runs already, and responses that do not come."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.config.environment_file import write_environment
from tests.engines.engine_environments import ENGINE
from tests.fake_aws import DENIED, SILENCE, AwsError, Response, pages
from tests.preflight.subjects import REGION, results_of, served
from tritonstack.config import load_environment
from tritonstack.preflight.quotas import (
    check_codebuild_quota,
    check_endpoint_quota,
    check_processing_quota,
    instance_need,
)
from tritonstack.served import Served

T4 = "ml.g4dn.xlarge"


def quota(name: str, value: float, code: str = "L-00000001", **more: Any) -> dict[str, Any]:
    """A row of Service Quotas."""
    return {"QuotaName": name, "QuotaCode": code, "Value": value, "Adjustable": True, **more}


def account(
    *, of_type: float, of_all: float = 100, running: dict[str, tuple[str, int]] | None = None
) -> dict[str, Response]:
    """An account with these quotas, in two pages, in which these endpoints run (name → type and instances)."""
    names = list(running or {})

    def endpoint(request: dict[str, Any]) -> dict[str, Any]:
        name = request["EndpointName"]
        count = (running or {})[name][1]
        variant = {"VariantName": "v", "CurrentInstanceCount": count, "DesiredInstanceCount": count - 1}
        return {"EndpointName": name, "EndpointConfigName": name, "ProductionVariants": [variant]}

    def config(request: dict[str, Any]) -> dict[str, Any]:
        kind = (running or {})[request["EndpointConfigName"]][0]
        return {"ProductionVariants": [{"VariantName": "v", "ModelName": "m", "InstanceType": kind}]}

    return {
        "service-quotas.ListServiceQuotas": pages(
            "Quotas",
            [quota("ml.m5.large for endpoint usage", 4)],
            [quota(f"{T4} for endpoint usage", of_type), quota("Number of instances across active endpoints", of_all)],
        ),
        "service-quotas.ListAWSDefaultServiceQuotas": pages("Quotas", []),
        "sagemaker.ListEndpoints": pages(
            "Endpoints", *([{"EndpointName": name}] for name in names or [""]) if names else ([],)
        ),
        "sagemaker.DescribeEndpoint": endpoint,
        "sagemaker.DescribeEndpointConfig": config,
    }


def test_the_fleets_of_both_variants_count_each_with_its_type(tmp_path: Path) -> None:
    variants = "[{name: a, model: a, weight: 1}, {name: b, model: b, weight: 1, instance_type: ml.g4dn.2xlarge}]"
    lines = f"mode: single-model\ninitial_instance_count: 3\nvariants: {variants}"
    endpoints = load_environment(write_environment(tmp_path, endpoint=lines, without=["models"])).endpoints
    found = {kind: instance_need(endpoints, others=0, instance_type=kind) for kind in (T4, "ml.g4dn.2xlarge", None)}
    needs = {kind: (need.highest, need.second_fleet) for kind, need in found.items()}
    assert needs == {T4: (3, 3), "ml.g4dn.2xlarge": (3, 3), None: (6, 6)}


def test_each_type_of_instance_pools_may_have_to_serve_all_instances(tmp_path: Path) -> None:
    lines = "mode: single-model\ninitial_instance_count: 3\ninstance_types: [ml.g5.xlarge, ml.g4dn.xlarge]"
    endpoints = load_environment(write_environment(tmp_path, endpoint=lines, without=["instance_type"])).endpoints
    found = {kind: instance_need(endpoints, others=0, instance_type=kind) for kind in ("ml.g5.xlarge", T4, None)}
    assert {kind: need.total for kind, need in found.items()} == {"ml.g5.xlarge": 6, T4: 6, None: 6}


def test_instances_of_pools_count_at_the_type_that_they_landed_on(tmp_path: Path) -> None:
    pools = [
        {"InstanceType": "ml.g5.xlarge", "CurrentInstanceCount": 0},
        {"InstanceType": T4, "CurrentInstanceCount": 2},
    ]
    variant = {"VariantName": "v", "CurrentInstanceCount": 2, "DesiredInstanceCount": 2, "InstancePools": pools}
    theirs = {"EndpointName": "theirs", "EndpointConfigName": "theirs", "ProductionVariants": [variant]}
    priorities = [{"InstanceType": each["InstanceType"], "Priority": 1 + number} for number, each in enumerate(pools)]
    config = {"ProductionVariants": [{"VariantName": "v", "ModelName": "m", "InstancePools": priorities}]}
    responses = account(of_type=3, running={"theirs": (T4, 2)}) | {
        "sagemaker.DescribeEndpoint": theirs,
        "sagemaker.DescribeEndpointConfig": config,
    }
    found = results_of(check_endpoint_quota, served(tmp_path), responses)
    assert found[T4].needed.endswith("2 of other endpoints now")


def test_maximum_new_fleet_and_other_endpoints_count(tmp_path: Path) -> None:
    scaled = {"scaling": {"minimum": 1, "maximum": 6, "gpu_utilization": 70}}
    what = served(tmp_path, scaled, {"initial_instance_count": 2})
    running = {"test-e0": (T4, 5), "theirs": (T4, 3), "other-type": ("ml.m5.large", 9)}
    enough = results_of(check_endpoint_quota, what, account(of_type=17, running=running))
    assert enough[T4].outcome == "passes"
    short = results_of(check_endpoint_quota, what, account(of_type=16, running=running))
    assert short[T4].outcome == "fails"
    assert short[T4].needed.startswith("17 instances: 8 at maximum + 6 of a new fleet during an update + 3 of other")
    assert "quota-code L-00000001 --desired-value 17" in short[T4].advice
    assert f"--region {REGION}" in short[T4].advice


def test_all_types_together_have_a_quota_too(tmp_path: Path) -> None:
    what = served(tmp_path, {}, {"instance_type": "ml.g5.xlarge"})
    found = results_of(check_endpoint_quota, what, account(of_type=9, of_all=2))
    assert found["all instance types"].outcome == "fails"
    assert found["all instance types"].needed.startswith("3 instances: 2 at maximum + 1 of")
    assert found["ml.g5.xlarge"].outcome == "fails", "a type without a quota is not offered in the region"


def test_a_schedule_may_raise_the_maximum_above_the_current_one(tmp_path: Path) -> None:
    evening = {"name": "evening", "when": "cron(0 18 * * ? *)", "minimum": 2, "maximum": 9}
    scaling = {"minimum": 1, "maximum": 3, "gpu_utilization": 70, "schedules": [evening]}
    found = results_of(check_endpoint_quota, served(tmp_path, {"scaling": scaling}), account(of_type=17))
    assert found[T4].outcome == "fails"
    assert found[T4].needed.startswith("18 instances: 9 at maximum + 9")


def test_a_default_counts_where_the_accounts_value_is_not_listed(tmp_path: Path) -> None:
    responses = account(of_type=1) | {
        "service-quotas.ListServiceQuotas": pages(
            "Quotas", [quota(f"{T4} for endpoint usage", 5, ErrorReason={"ErrorCode": "DEPENDENCY_SERVICE_ERROR"})]
        ),
        "service-quotas.ListAWSDefaultServiceQuotas": pages("Quotas", [quota(f"{T4} for endpoint usage", 0)]),
    }
    found = results_of(check_endpoint_quota, served(tmp_path), responses)
    assert found[T4].outcome == "fails"
    assert "0 (default of L-00000001" in found[T4].found


@pytest.mark.parametrize(
    ("operation", "error", "permission", "words"),
    [
        ("service-quotas.ListServiceQuotas", DENIED, "servicequotas:ListServiceQuotas", "denies"),
        ("sagemaker.ListEndpoints", AwsError("AccessDenied"), "sagemaker:ListEndpoints", "denies"),
        ("sagemaker.DescribeEndpointConfig", DENIED, "sagemaker:DescribeEndpointConfig", "denies"),
        ("service-quotas.ListServiceQuotas", AwsError("TooManyRequestsException"), None, "throttled"),
        ("service-quotas.ListServiceQuotas", SILENCE, None, "did not respond"),
        ("sagemaker.DescribeEndpoint", AwsError("InternalFailure"), None, "failed"),
    ],
)
def test_what_aws_does_not_return_is_unknown_and_never_a_pass(
    tmp_path: Path, operation: str, error: Exception, permission: str | None, words: str
) -> None:
    responses = {**account(of_type=99, running={"theirs": (T4, 1)}), operation: error}
    found = results_of(check_endpoint_quota, served(tmp_path), responses)
    assert {(result.outcome, result.permission) for result in found.values()} == {("unknown", permission)}
    assert all(words in result.found and result.advice for result in found.values())


def test_an_endpoint_that_is_gone_since_it_was_listed_does_not_count(tmp_path: Path) -> None:
    responses = account(of_type=2, running={"theirs": (T4, 1)})
    gone = AwsError("ValidationException", 'Could not find endpoint "theirs"')
    found = results_of(check_endpoint_quota, served(tmp_path), {**responses, "sagemaker.DescribeEndpoint": gone})
    assert found[T4].outcome == "passes"


LOUD = {"accept_multi_model": True, "wait_seconds": 600}


@pytest.mark.parametrize(
    ("rollout", "added"),
    [
        (None, 10),
        ({"kind": "canary", "size_instances": 2, **LOUD}, 10),
        ({"kind": "linear", "size_percent": 50, **LOUD}, 10),
        ({"kind": "rolling", "size_percent": 20, **LOUD}, 2),
        ({"kind": "rolling", "size_instances": 3, **LOUD}, 3),
    ],
)
def test_a_second_fleet_or_a_rolling_batch(tmp_path: Path, rollout: dict[str, Any] | None, added: int) -> None:
    what = served(tmp_path, {"initial_instance_count": 10, "rollout": rollout})
    need = instance_need(what.environment.endpoints, others=4)
    assert (need.highest, need.second_fleet, need.total) == (10, added, 14 + added)


@pytest.mark.parametrize(("at_once", "second"), [(1, 5), (2, 9), (3, 12), (9, 12)])
def test_of_updates_at_once_the_largest_count_together(tmp_path: Path, at_once: int, second: int) -> None:
    """CDK CLI reference, ``cdk deploy --concurrency``; CodePipeline user guide: actions of one RunOrder run at once."""
    what = served(tmp_path, *({"initial_instance_count": count} for count in (3, 5, 4)))
    need = instance_need(what.environment.endpoints, others=0, at_once=at_once)
    assert (need.highest, need.second_fleet, need.at_once) == (12, second, min(at_once, 3))


def test_a_quota_for_one_update_is_too_small_for_two_at_once(tmp_path: Path) -> None:
    what = served(tmp_path, {"initial_instance_count": 3}, {"initial_instance_count": 5})
    assert results_of(check_endpoint_quota, what, account(of_type=13))[T4].outcome == "passes"
    short = results_of(check_endpoint_quota, what, account(of_type=13), at_once=2)[T4]
    assert short.outcome == "fails"
    assert short.needed.startswith("16 instances: 8 at maximum + 8 of new fleets of 2 updates at once")


def test_one_endpoint_is_updated_at_a_time(tmp_path: Path) -> None:
    what = served(tmp_path, {"initial_instance_count": 3}, {"initial_instance_count": 5})
    need = instance_need(what.environment.endpoints, others=0)
    assert (need.highest, need.second_fleet, instance_need((), others=7).total) == (8, 5, 7)


A10G = "BUILD_GENERAL1_SMALL LINUX_GPU_CONTAINER"
CPU = "BUILD_GENERAL1_LARGE LINUX_CONTAINER"


def with_engine(folder: Path, *endpoints: dict[str, Any], **environment: Any) -> Served:
    """As ``served``, with a TensorRT model."""
    served(folder)
    config = folder / "model_repos/double/double/config.pbtxt"
    recipe = folder / "model_repos/double/recipe.yaml"
    tensorrt = config.read_text().replace('backend: "python"', 'platform: "tensorrt_plan"')
    text = recipe.read_text().replace("kind: python\n", "kind: tensorrt\n") + ENGINE
    return served(folder, *endpoints, files={config: tensorrt, recipe: text}, **environment)


def builds_account(**quotas: float) -> dict[str, Response]:
    """An account with these quotas of builds and of processing jobs."""
    names = {
        "gpu": "Concurrently running builds for Linux GPU Small environment",
        "cpu": "Concurrently running builds for Linux/Large environment",
        "t4": f"{T4} for processing job usage",
        "jobs": "Number of instances across all processing jobs",
    }
    rows = [quota(names[name], value, f"L-{name}") for name, value in quotas.items()]
    return {"service-quotas.ListServiceQuotas": pages("Quotas", rows[:1], rows[1:])}


def test_an_environment_without_engines_needs_no_quota_of_builds(tmp_path: Path) -> None:
    assert results_of(check_processing_quota, served(tmp_path), {}) == {}
    assert results_of(check_codebuild_quota, served(tmp_path), {}) == {}


def test_processing_has_a_quota_for_the_type_and_one_for_all(tmp_path: Path) -> None:
    what = with_engine(tmp_path, {"instance_type": T4})
    found = results_of(check_processing_quota, what, builds_account(t4=5, jobs=0))
    assert {name: result.outcome for name, result in found.items()} == {T4: "passes", "all instance types": "fails"}
    assert results_of(check_processing_quota, what, builds_account(t4=0, jobs=9))[T4].outcome == "fails"


@pytest.mark.parametrize(("gpu", "cpu"), [(0, 1), (1, 1), (1, 0)])
def test_quotas_of_builds(tmp_path: Path, gpu: int, cpu: int) -> None:
    what = with_engine(tmp_path, {"instance_type": "ml.g5.xlarge"})
    found = results_of(check_codebuild_quota, what, builds_account(gpu=gpu, cpu=cpu))
    outcomes = {0: "fails", 1: "passes"}
    assert (found[A10G].outcome, found[CPU].outcome) == (outcomes[gpu], outcomes[cpu])
    if not gpu:
        assert "--service-code codebuild --quota-code L-gpu --desired-value 1" in found[A10G].advice
