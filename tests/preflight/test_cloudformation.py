"""CDK bootstrap and states of stacks."""

from __future__ import annotations

import json
import re
import tarfile
from pathlib import Path

import aws_cdk
import pytest

from tests.preflight.fakes import DENIED, Answer, RefusalError, pages
from tests.preflight.subjects import ACCOUNT, results_of, served
from tests.preflight.test_quotas import with_engine
from tritonstack.preflight.cloudformation import (
    NEEDED_VERSION,
    QUALIFIER,
    check_bootstrap,
    check_stack,
    qualifier_of,
)

PLACE = f"{ACCOUNT}-us-east-1"
ROLES = [f"cdk-{QUALIFIER}-{role}-{PLACE}" for role in ("deploy-role", "file-publishing-role", "cfn-exec-role")]


def account(version: str) -> dict[str, Answer]:
    """A bootstrapped account."""
    return {
        "ssm.GetParameter": {"Parameter": {"Name": "n", "Value": version}},
        "s3.HeadBucket": {},
        "iam.GetRole": lambda request: {
            "Role": {"RoleName": request["RoleName"], "Arn": f"arn:aws:iam::{ACCOUNT}:role/{request['RoleName']}"}
        },
    }


def test_the_installed_cdk_asks_for_this_version_and_qualifier() -> None:
    (archive,) = (Path(aws_cdk.__file__).parent / "_jsii").glob("aws-cdk-lib@*.jsii.tgz")
    with tarfile.open(archive) as package:
        member = package.extractfile("package/core/lib/stack-synthesizers/default-synthesizer.js")
        assert member is not None
        source = member.read().decode()
    assert re.search(r"\bMIN_BOOTSTRAP_STACK_VERSION=(\d+)", source)[1] == str(NEEDED_VERSION)  # type: ignore[index]
    assert f'DEFAULT_QUALIFIER="{QUALIFIER}"' in source


def test_a_bootstrapped_account_passes(tmp_path: Path) -> None:
    found = results_of(check_bootstrap, served(tmp_path), account(str(NEEDED_VERSION)))
    assert list(found) == ["version", f"cdk-{QUALIFIER}-assets-{PLACE}", *ROLES]
    assert {result.outcome for result in found.values()} == {"passes"}


def test_an_old_bootstrap_fails_with_the_line_that_renews_it(tmp_path: Path) -> None:
    found = results_of(check_bootstrap, served(tmp_path), account("5"))["version"]
    assert (found.outcome, found.found) == ("fails", "5")
    assert found.advice == f"npx cdk bootstrap aws://{ACCOUNT}/us-east-1"


def test_a_bare_account_fails_in_every_part(tmp_path: Path) -> None:
    bare: dict[str, Answer] = {
        "ssm.GetParameter": RefusalError("ParameterNotFound"),
        "s3.HeadBucket": RefusalError("404"),
        "iam.GetRole": RefusalError("NoSuchEntity"),
    }
    assert {result.outcome for result in results_of(check_bootstrap, served(tmp_path), bare).values()} == {"fails"}


def test_what_is_denied_is_unknown_part_by_part(tmp_path: Path) -> None:
    answers = account("21") | {"iam.GetRole": DENIED, "s3.HeadBucket": RefusalError("403", "Forbidden")}
    found = results_of(check_bootstrap, served(tmp_path), answers)
    assert found["version"].outcome == "passes"
    assert {found[role].permission for role in ROLES} == {"iam:GetRole"}
    assert found[f"cdk-{QUALIFIER}-assets-{PLACE}"].permission == "s3:ListBucket"
    assert {result.outcome for name, result in found.items() if name != "version"} == {"unknown"}


def test_a_qualifier_of_ones_own_is_in_every_name_and_in_the_advice(tmp_path: Path) -> None:
    (tmp_path / "cdk.json").write_text(json.dumps({"app": "a"}))
    assert qualifier_of(tmp_path) == QUALIFIER
    (tmp_path / "cdk.json").write_text(json.dumps({"context": {"@aws-cdk/core:bootstrapQualifier": "team"}}))
    found = results_of(check_bootstrap, served(tmp_path), account("5"), project=tmp_path)
    assert all("cdk-team-" in name for name in found if name != "version")
    assert found["version"].advice.endswith("--qualifier team")


SERVING = "test-serving-e0"
NO_STACK = RefusalError("ValidationError", "Stack with id x does not exist")


def stacks(status: str | None = "UPDATE_COMPLETE", *, protected: bool = False, **made: list[str]) -> dict[str, Answer]:
    """An account whose stacks are all in one state, and made these resources (type with ``_`` for ``::``)."""
    rows = [
        {"ResourceType": kind.replace("_", "::"), "PhysicalResourceId": name, "ResourceStatus": "CREATE_COMPLETE"}
        for kind, names in made.items()
        for name in names
    ]
    described = {"Stacks": [{"StackName": "n", "StackStatus": status, "EnableTerminationProtection": protected}]}
    return {
        "cloudformation.DescribeStacks": NO_STACK if status is None else described,
        "cloudformation.ListStackResources": pages("StackResourceSummaries", rows[:1], rows[1:]),
    }


@pytest.mark.parametrize(
    ("status", "outcome", "advice"),
    [
        (None, "passes", ""),
        ("CREATE_COMPLETE", "passes", ""),
        ("UPDATE_ROLLBACK_COMPLETE", "passes", ""),
        ("ROLLBACK_COMPLETE", "unknown", "delete-stack"),
        ("REVIEW_IN_PROGRESS", "unknown", "delete-stack"),
        ("UPDATE_IN_PROGRESS", "unknown", "Wait"),
        ("UPDATE_ROLLBACK_FAILED", "fails", "continue-update-rollback"),
        ("ROLLBACK_FAILED", "fails", "delete-stack"),
        ("DELETE_FAILED", "fails", "delete-stack"),
    ],
)
def test_a_stacks_state_says_whether_it_can_be_deployed(
    tmp_path: Path, status: str | None, outcome: str, advice: str
) -> None:
    found = results_of(check_stack, served(tmp_path), stacks(status))
    assert set(found) == {"test-artifacts", SERVING}
    assert {result.outcome for result in found.values()} == {outcome}
    assert advice in found[SERVING].advice


def test_a_protected_stack_that_was_rolled_back_fails(tmp_path: Path) -> None:
    found = results_of(check_stack, served(tmp_path), stacks("ROLLBACK_COMPLETE", protected=True))
    assert found[SERVING].outcome == "fails"


def test_every_stack_of_the_environment_is_looked_at(tmp_path: Path) -> None:
    network = {"created": {"cidr": "10.20.0.0/16", "zones": ["us-east-1a", "us-east-1b"]}, "s3_prefix_list_id": "pl-1"}
    what = with_engine(tmp_path, network=network, dashboard=True, builds={"outside_network": True})
    names = ("artifacts", "network", "builds", "serving-e0", "observability")
    assert list(results_of(check_stack, what, stacks())) == [f"test-{name}" for name in names]


def test_stacks_that_may_not_be_described_are_unknown(tmp_path: Path) -> None:
    found = results_of(check_stack, served(tmp_path), {"cloudformation.DescribeStacks": DENIED})
    assert {(each.outcome, each.permission) for each in found.values()} == {
        ("unknown", "cloudformation:DescribeStacks")
    }
