"""Capacity reservations: the plan's state, type and size, and what cannot be known."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.cases import cases
from tests.fake_aws import DENIED, AwsError, Response
from tests.preflight.subjects import ACCOUNT, REGION, results_of, served
from tritonstack.preflight.capacity_reservation import check_capacity_reservation

PLAN = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-plan/gpus"


def plan(**changes: Any) -> dict[str, Any]:
    """An active plan of four instances of the endpoint's type."""
    capacity = {
        "ReservedCapacityArn": PLAN,
        "InstanceType": "ml.g4dn.xlarge",
        "TotalInstanceCount": 4,
        "Status": "Active",
    }
    return {
        "TrainingPlanArn": PLAN,
        "TrainingPlanName": "gpus",
        "Status": "Active",
        "TotalInstanceCount": 4,
        "EndTime": datetime(2027, 1, 31, tzinfo=UTC),
        "ReservedCapacitySummaries": [capacity],
        **changes,
    }


@cases("endpoint, changes, outcome, words")
def test_a_plan_is_active_of_the_type_and_large_enough(
    tmp_path: Path, endpoint: dict[str, Any], changes: dict[str, Any], outcome: str, words: str
) -> None:
    what = served(tmp_path, {"capacity_reservation": PLAN, **endpoint})
    [result] = results_of(
        check_capacity_reservation, what, {"sagemaker.DescribeTrainingPlan": plan(**changes)}
    ).values()
    assert (result.outcome, words in result.found) == (outcome, True), result


@pytest.mark.parametrize(
    ("reservation", "response", "outcome", "words"),
    [
        (PLAN, AwsError("ResourceNotFound"), "fails", "no such training plan"),
        (PLAN, DENIED, "unknown", "denies"),
        (PLAN.replace(ACCOUNT, "210987654321"), plan(), "unknown", "of this account alone"),
        (PLAN.replace("training-plan", "ml-reservation"), plan(), "unknown", "of this account alone"),
    ],
    ids=["no such plan", "not allowed", "of another account", "no training plan"],
)
def test_what_is_not_there_fails_and_what_is_not_known_is_no_pass(
    tmp_path: Path, reservation: str, response: Response, outcome: str, words: str
) -> None:
    what = served(tmp_path, {"capacity_reservation": reservation})
    [result] = results_of(check_capacity_reservation, what, {"sagemaker.DescribeTrainingPlan": response}).values()
    assert (result.outcome, words in result.found) == (outcome, True), result


def test_an_endpoint_without_a_reservation_has_nothing_to_look_at(tmp_path: Path) -> None:
    assert results_of(check_capacity_reservation, served(tmp_path), {}) == {}
