"""Instance types and quotas: the arithmetic, what runs already, and responses that do not come."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.engines.engine_environments import ENGINE
from tests.preflight.fakes import DENIED, SILENCE, Answer, RefusalError, pages
from tests.preflight.subjects import REGION, results_of, served
from tritonstack.engines.order import Served
from tritonstack.preflight.quotas import (
    check_codebuild_quota,
    check_endpoint_quota,
    check_instance_type,
    check_processing_quota,
    instance_need,
)

T4 = "ml.g4dn.xlarge"


def quota(name: str, value: float, code: str = "L-00000001", **more: Any) -> dict[str, Any]:
    """A row of Service Quotas."""
    return {"QuotaName": name, "QuotaCode": code, "Value": value, "Adjustable": True, **more}


def account(
    *, of_type: float, of_all: float = 100, running: dict[str, tuple[str, int]] | None = None
) -> dict[str, Answer]:
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
    assert found["ml.g5.xlarge"].outcome == "unknown", "no quota of that name is listed: nothing is known"


def test_a_schedule_may_ask_for_more_than_the_maximum_of_now(tmp_path: Path) -> None:
    evening = {"name": "evening", "when": "cron(0 18 * * ? *)", "minimum": 2, "maximum": 9}
    scaling = {"minimum": 1, "maximum": 3, "gpu_utilization": 70, "schedules": [evening]}
    found = results_of(check_endpoint_quota, served(tmp_path, {"scaling": scaling}), account(of_type=17))
    assert found[T4].outcome == "fails"
    assert found[T4].needed.startswith("18 instances: 9 at maximum + 9")


def test_a_default_counts_where_the_accounts_value_is_not_listed(tmp_path: Path) -> None:
    answers = account(of_type=1) | {
        "service-quotas.ListServiceQuotas": pages(
            "Quotas", [quota(f"{T4} for endpoint usage", 5, ErrorReason={"ErrorCode": "DEPENDENCY_SERVICE_ERROR"})]
        ),
        "service-quotas.ListAWSDefaultServiceQuotas": pages("Quotas", [quota(f"{T4} for endpoint usage", 0)]),
    }
    found = results_of(check_endpoint_quota, served(tmp_path), answers)
    assert found[T4].outcome == "fails"
    assert "0 (default of L-00000001" in found[T4].found


@pytest.mark.parametrize(
    ("operation", "error", "permission", "words"),
    [
        ("service-quotas.ListServiceQuotas", DENIED, "servicequotas:ListServiceQuotas", "denies"),
        ("sagemaker.ListEndpoints", RefusalError("AccessDenied"), "sagemaker:ListEndpoints", "denies"),
        ("sagemaker.DescribeEndpointConfig", DENIED, "sagemaker:DescribeEndpointConfig", "denies"),
        ("service-quotas.ListServiceQuotas", RefusalError("TooManyRequestsException"), None, "throttled"),
        ("service-quotas.ListServiceQuotas", SILENCE, None, "did not answer"),
        ("sagemaker.DescribeEndpoint", RefusalError("InternalFailure"), None, "failed"),
    ],
)
def test_what_aws_does_not_say_is_unknown_and_never_a_pass(
    tmp_path: Path, operation: str, error: Exception, permission: str | None, words: str
) -> None:
    answers = {**account(of_type=99, running={"theirs": (T4, 1)}), operation: error}
    found = results_of(check_endpoint_quota, served(tmp_path), answers)
    assert {(result.outcome, result.permission) for result in found.values()} == {("unknown", permission)}
    assert all(words in result.found and result.advice for result in found.values())


def test_an_endpoint_that_is_gone_since_it_was_listed_does_not_count(tmp_path: Path) -> None:
    answers = account(of_type=2, running={"theirs": (T4, 1)})
    gone = RefusalError("ValidationException", 'Could not find endpoint "theirs"')
    found = results_of(check_endpoint_quota, served(tmp_path), {**answers, "sagemaker.DescribeEndpoint": gone})
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


def test_one_endpoint_is_updated_at_a_time(tmp_path: Path) -> None:
    what = served(tmp_path, {"initial_instance_count": 3}, {"initial_instance_count": 5})
    need = instance_need(what.environment.endpoints, others=0)
    assert (need.highest, need.second_fleet, instance_need((), others=7).total) == (8, 5, 7)


@pytest.mark.parametrize(
    ("quotas", "outcome", "words"),
    [
        (pages("Quotas", [quota(f"{T4} for endpoint usage", 0)]), "passes", "the catalogue has us-east-1"),
        (pages("Quotas", []), "fails", "has no quota of it"),
        (DENIED, "unknown", "denies"),
    ],
    ids=["a quota, though of zero", "none", "denied"],
)
def test_an_instance_type_is_offered_where_it_has_a_quota(
    tmp_path: Path, quotas: Answer, outcome: str, words: str
) -> None:
    none = pages("Quotas", [])
    answers = {"service-quotas.ListServiceQuotas": quotas, "service-quotas.ListAWSDefaultServiceQuotas": none}
    found = results_of(check_instance_type, served(tmp_path), answers)[T4]
    assert (found.outcome, words in found.found) == (outcome, True), found.found


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


def jobs_account(of_type: float, of_all: float = 20, *, running: int = 0) -> dict[str, Answer]:
    """An account with these quotas of processing jobs, and one job of so many instances."""
    return {
        "service-quotas.ListServiceQuotas": pages(
            "Quotas",
            [quota(f"{T4} for processing job usage", of_type)],
            [quota("Number of instances across all processing jobs", of_all)],
        ),
        "sagemaker.ListProcessingJobs": pages(
            "ProcessingJobSummaries", [{"ProcessingJobName": "theirs"}] if running else []
        ),
        "sagemaker.DescribeProcessingJob": {
            "ProcessingJobName": "theirs",
            "ProcessingResources": {
                "ClusterConfig": {"InstanceType": T4, "InstanceCount": running, "VolumeSizeInGB": 1}
            },
        },
    }


def builds_account(gpu: float, cpu: float = 5, *, running: int = 0) -> dict[str, Answer]:
    """An account with these quotas of CodeBuild, in which so many GPU builds run."""
    builds = [
        {"buildStatus": status, "environment": {"type": kind, "computeType": "BUILD_GENERAL1_SMALL", "image": "i",
                                                "environmentVariables": []}}
        for status, kind in [
            *([("IN_PROGRESS", "LINUX_GPU_CONTAINER")] * running),
            ("SUCCEEDED", "LINUX_GPU_CONTAINER"),
            ("IN_PROGRESS", "LINUX_CONTAINER"),
        ]
    ]  # fmt: skip
    return {
        "service-quotas.ListServiceQuotas": pages(
            "Quotas",
            [quota("Concurrently running builds for Linux GPU Small environment", gpu, "L-F1FE1B52")],
            [quota("Concurrently running builds for Linux/Large environment", cpu)],
        ),
        "codebuild.ListBuilds": {"ids": ["p:1"]},
        "codebuild.BatchGetBuilds": {"builds": builds},
    }


def test_an_environment_without_engines_needs_no_quota_of_builds(tmp_path: Path) -> None:
    assert results_of(check_processing_quota, served(tmp_path), {}) == {}
    assert results_of(check_codebuild_quota, served(tmp_path), {}) == {}


def test_jobs_that_run_already_count_for_their_type_and_for_all(tmp_path: Path) -> None:
    what = with_engine(tmp_path, {"instance_type": T4})
    assert results_of(check_processing_quota, what, jobs_account(3, running=2))[T4].outcome == "passes"
    short = results_of(check_processing_quota, what, jobs_account(2, running=2))[T4]
    assert (short.outcome, short.needed) == ("fails", "3 instances: 1 for engines at once + 2 of jobs that run now")
    found = results_of(check_processing_quota, what, jobs_account(5, of_all=0))
    assert {name: result.outcome for name, result in found.items()} == {T4: "passes", "all instance types": "fails"}


@pytest.mark.parametrize(
    ("answers", "gpu", "cpu"),
    [
        (builds_account(0), "fails", "passes"),
        (builds_account(3, running=2), "passes", "passes"),
        (builds_account(2, running=2), "fails", "passes"),
        (builds_account(3, cpu=0), "passes", "fails"),
    ],
    ids=["a new account has none", "running ones count", "and others do not", "a CPU quota of zero"],
)
def test_quotas_of_builds(tmp_path: Path, answers: dict[str, Answer], gpu: str, cpu: str) -> None:
    what = with_engine(tmp_path, {"instance_type": "ml.g5.xlarge"})
    found = results_of(check_codebuild_quota, what, answers)
    assert (found[A10G].outcome, found[CPU].outcome) == (gpu, cpu)
    if gpu == "fails":
        assert "--service-code codebuild --quota-code L-F1FE1B52 --desired-value" in found[A10G].advice


def test_refused_lists_are_unknown(tmp_path: Path) -> None:
    what = with_engine(tmp_path, {"instance_type": "ml.g5.xlarge"}, {"instance_type": T4})
    of_builds = results_of(check_codebuild_quota, what, builds_account(9) | {"codebuild.ListBuilds": DENIED})
    of_jobs = results_of(check_processing_quota, what, jobs_account(9) | {"sagemaker.ListProcessingJobs": DENIED})
    assert {(each.outcome, each.permission) for each in (*of_builds.values(), *of_jobs.values())} == {
        ("unknown", "codebuild:ListBuilds"),
        ("unknown", "sagemaker:ListProcessingJobs"),
    }
