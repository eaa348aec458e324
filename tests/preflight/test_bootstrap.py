"""CDK's bootstrap: version, bucket, roles."""

from __future__ import annotations

import json
import re
import tarfile
from pathlib import Path

import aws_cdk
import pytest

from tests.preflight.fakes import DENIED, Answer, RefusalError
from tests.preflight.subjects import ACCOUNT, results_of, served
from tritonstack.preflight.cloudformation import NEEDED_VERSION, QUALIFIER, check_bootstrap, qualifier_of

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
    found = results_of(check_bootstrap, served(tmp_path), account("5"))
    assert (found["version"].outcome, found["version"].found) == ("fails", "5")
    assert found["version"].advice == f"npx cdk bootstrap aws://{ACCOUNT}/us-east-1"


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


@pytest.mark.parametrize(
    ("content", "qualifier"),
    [
        (None, QUALIFIER),
        (json.dumps({"app": "a"}), QUALIFIER),
        (json.dumps({"context": {"@aws-cdk/core:bootstrapQualifier": "team"}}), "team"),
    ],
)
def test_the_qualifier_is_that_of_cdk_json(tmp_path: Path, content: str | None, qualifier: str) -> None:
    if content is not None:
        (tmp_path / "cdk.json").write_text(content)
    assert qualifier_of(tmp_path) == qualifier


def test_a_qualifier_of_ones_own_is_in_every_name_and_in_the_advice(tmp_path: Path) -> None:
    (tmp_path / "cdk.json").write_text(json.dumps({"context": {"@aws-cdk/core:bootstrapQualifier": "team"}}))
    found = results_of(check_bootstrap, served(tmp_path), account("5"), project=tmp_path)
    assert all("cdk-team-" in name for name in found if name != "version")
    assert found["version"].advice.endswith("--qualifier team")
