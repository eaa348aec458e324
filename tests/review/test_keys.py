"""A change of the artifacts' key that leaves archives unreadable."""

from __future__ import annotations

from typing import Any

import pytest

from tests.review.reports import BASE
from tests.review.small import of, resource, stack
from tritonstack.review.change import Level
from tritonstack.review.report import document_of

OWN, OTHER = (f"arn:aws:kms:us-east-1:111111111111:key/{each}" for each in ("1", "2"))
CREATED = {"Fn::GetAtt": ["Key", "Arn"]}


def artifacts(**keys: Any) -> dict[str, Any]:
    """The artifacts stack's resources, with the parameters ``key_arn`` and ``earlier_key_arn``."""
    made = {"Key": resource("AWS::KMS::Key", {"EnableKeyRotation": True})} if CREATED in keys.values() else {}
    for name, value in keys.items():
        given = {"Name": f"/tritonstack/dev/_artifacts/{name.replace('_', '-')}", "Type": "String", "Value": value}
        made[name] = resource("AWS::SSM::Parameter", given)
    return made


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ({"key_arn": CREATED}, {"key_arn": CREATED}, ""),
        ({"key_arn": CREATED}, {"key_arn": OWN}, "Key.Arn} is no longer the key of the artifacts"),
        ({"key_arn": CREATED}, {"key_arn": OWN, "earlier_key_arn": CREATED}, ""),
        ({"key_arn": OWN}, {"key_arn": OTHER}, f"{OWN} is no longer the key"),
        ({"key_arn": OWN}, {"key_arn": OTHER, "earlier_key_arn": OWN}, ""),
        (
            {"key_arn": OWN, "earlier_key_arn": CREATED},
            {"key_arn": OWN},
            "no longer artifacts.earlier_key: every object",
        ),
    ],
)
def test_a_review_reports_which_key_can_no_longer_be_used(
    before: dict[str, Any], after: dict[str, Any], message: str
) -> None:
    old, new = (of(stack(artifacts(**keys), name="artifacts")) for keys in (before, after))
    [environment] = document_of(old, new, base=BASE).environments
    assert [message in each for each in environment.lost_keys] == [True] * bool(message), environment.lost_keys
    assert all("tritonstack docs updates#change-the-key" in each for each in environment.lost_keys)
    assert (environment.level is Level.CLOSE) is bool(message)
