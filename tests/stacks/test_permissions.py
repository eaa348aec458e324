"""Every wildcard in a permission, with its reason; and every accepted finding, with proof that it is needed."""

from __future__ import annotations

import re
from typing import Any

import aws_cdk as cdk
import cdk_nag
import pytest

from stacks.stage import EnvironmentStage
from tests.constructs_lib.templates import allowed, flat, listed, new_app, template_of
from tests.stacks.environments import DIGITS, SINGLE, digests, environment, stage

WITH_ALL_OPTIONS = environment(
    DIGITS,
    {**SINGLE, "volume_key_arn": "arn:aws:kms:us-east-1:123456789012:alias/volumes"},
    permissions_boundary="arn:aws:iam::123456789012:policy/boundary",
    artifacts={"retain": False},
)

WILDCARDS = {
    ("ReadArchives", r"arn:aws:s3:::\$\{\w+\}/endpoints/[a-z]+/24\.09-(t4|a10g)/\*"): "callers name the archive",
    ("LogInToRegistry", r"\*"): "ecr:GetAuthorizationToken has no resource type",
    ("WriteMetrics", r"\*"): "cloudwatch:PutMetricData has no resource type; its namespace is a condition",
    ("WriteLogs", r"arn:aws:logs:us-east-1:123456789012:log-group:/aws/sagemaker/Endpoints/dev-[a-z]+:log-stream:\*"): (
        "SageMaker names streams after instances"
    ),
    ("AttachEncryptedVolume", r"arn:aws:kms:us-east-1:123456789012:key/\*"): "the alias is a condition",
    ("ReadReleaseSets", r"arn:aws:s3:::cdk-hnb659fds-assets-123456789012-us-east-1/\*\.release-set"): (
        "keys of other deployments are not known"
    ),
    ("EmptyArchives", r"\$\{\w+\.Arn\}/\*"): "the bucket is deleted with its stack",
    ("EmptyAccessLogs", r"\$\{\w+\.Arn\}/\*"): "the bucket is deleted with its stack",
    ("MoveRecords", r"arn:aws:ssm:us-east-1:123456789012:parameter/tritonstack/dev/[a-z]+/\*"): "models come and go",
    ("FindRecords", r"arn:aws:ssm:us-east-1:123456789012:parameter/tritonstack/dev/[a-z]+/\*"): "models come and go",
}
"""(what the statement is for, the whole resource as a pattern) → why it may hold a wildcard."""


@pytest.fixture(scope="module")
def permissions() -> list[dict[str, Any]]:
    made = stage(WITH_ALL_OPTIONS)
    return [each for stack in (made.artifacts, *made.serving.values()) for each in allowed(template_of(stack))]


def test_no_action_has_a_wildcard(permissions: list[dict[str, Any]]) -> None:
    assert not [action for each in permissions for action in listed(each["Action"]) if "*" in action]


def test_every_wildcard_in_a_resource_is_one_with_a_reason(permissions: list[dict[str, Any]]) -> None:
    found = {(each["Sid"], flat(arn)) for each in permissions for arn in listed(each["Resource"]) if "*" in flat(arn)}
    unexplained = {
        (sid, arn) for sid, arn in found if not any(sid == of and re.fullmatch(as_, arn) for of, as_ in WILDCARDS)
    }
    unused = {(of, as_) for of, as_ in WILDCARDS if not any(sid == of and re.fullmatch(as_, arn) for sid, arn in found)}
    assert unexplained == set()
    assert unused == set()


def test_every_statement_of_a_role_says_what_it_is_for(permissions: list[dict[str, Any]]) -> None:
    assert all(each.get("Sid") for each in permissions)


ACKNOWLEDGMENT = cdk.Acknowledgment


class Acknowledgements:
    """What the constructs acknowledge, one of which can be left out."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, without: str | None = None) -> None:
        self.made: dict[str, str] = {}
        self.without = without
        monkeypatch.setattr(cdk, "Acknowledgment", self._make)

    def _make(self, *, id: str, reason: str) -> cdk.Acknowledgment:  # noqa: A002 - as the CDK spells it
        self.made[id] = reason
        return ACKNOWLEDGMENT(id="AwsSolutions-NONE" if id == self.without else id, reason=reason)


def checked_by_nag() -> None:
    """Synthesise with cdk-nag; raises RuntimeError with what it finds."""
    app = new_app()
    cdk.Validations.of(app).add_plugins(cdk_nag.AwsSolutionsChecks(app))
    EnvironmentStage(app, environment=WITH_ALL_OPTIONS, release_sets=digests(WITH_ALL_OPTIONS))
    app.synth()


def test_nag_is_content_and_every_reason_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    acknowledgements = Acknowledgements(monkeypatch)
    checked_by_nag()
    assert acknowledgements.made
    for finding, reason in acknowledgements.made.items():
        assert reason.endswith("."), finding
        assert len(reason.split()) > 12, finding


def test_every_acknowledgement_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Left out, its finding fails the synthesis: so none is stale, none is covered by another, and nag does look."""
    acknowledgements = Acknowledgements(monkeypatch)
    stage(WITH_ALL_OPTIONS)
    for finding in tuple(acknowledgements.made):
        acknowledgements.without = finding
        with pytest.raises(RuntimeError, match=re.escape(f"Acknowledge with 'AwsSolutions::{finding}'")):
            checked_by_nag()
