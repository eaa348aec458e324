"""Quotas of endpoint instances: the arithmetic, what runs already, and answers that do not come."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.preflight.fakes import DENIED, SILENCE, Answer, RefusalError, pages
from tests.preflight.subjects import REGION, results_of, served
from tritonstack.preflight.quotas import check_endpoint_quota

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
        return {
            "EndpointName": name,
            "EndpointConfigName": name,
            "ProductionVariants": [
                {"VariantName": "v", "CurrentInstanceCount": count, "DesiredInstanceCount": count - 1}
            ],
        }

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
    assert {result.outcome for result in found.values()} == {"unknown"}
    assert {result.permission for result in found.values()} == {permission}
    assert all(words in result.found for result in found.values())
    assert all(result.advice for result in found.values())


def test_an_endpoint_that_is_gone_since_it_was_listed_does_not_count(tmp_path: Path) -> None:
    answers = account(of_type=2, running={"theirs": (T4, 1)})
    gone = RefusalError("ValidationException", 'Could not find endpoint "theirs"')
    found = results_of(check_endpoint_quota, served(tmp_path), {**answers, "sagemaker.DescribeEndpoint": gone})
    assert found[T4].outcome == "passes"
