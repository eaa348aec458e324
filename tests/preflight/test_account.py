"""CDK bootstrap, images in ECR, KMS keys of your own."""

from __future__ import annotations

import json
import re
import tarfile
from pathlib import Path
from typing import Any

import aws_cdk
import pytest

from tests.fake_aws import DENIED, SILENCE, AwsError, FakeAws, Response
from tests.preflight.subjects import ACCOUNT, results_of, served, subject_of
from tritonstack.aws.read_only import ReadOnlyCalls
from tritonstack.preflight.account import (
    NEEDED_VERSION,
    QUALIFIER,
    check_bootstrap,
    check_image,
    check_key,
    lets_in,
    qualifier_of,
)
from tritonstack.preflight.role import needed_statements
from tritonstack.preflight.subject import Subject


def bootstrap(version: str) -> dict[str, Response]:
    """A bootstrapped account."""
    return {"ssm.GetParameter": {"Parameter": {"Name": "n", "Value": version}}, "s3.HeadBucket": {}}


def test_the_installed_cdk_requires_this_version_and_qualifier() -> None:
    (archive,) = (Path(aws_cdk.__file__).parent / "_jsii").glob("aws-cdk-lib@*.jsii.tgz")
    with tarfile.open(archive) as package:
        member = package.extractfile("package/core/lib/stack-synthesizers/default-synthesizer.js")
        assert member is not None
        source = member.read().decode()
    assert re.search(r"\bMIN_BOOTSTRAP_STACK_VERSION=(\d+)", source)[1] == str(NEEDED_VERSION)  # type: ignore[index]
    assert f'DEFAULT_QUALIFIER="{QUALIFIER}"' in source


@pytest.mark.parametrize(
    ("responses", "outcome", "found", "permission"),
    [
        (bootstrap(str(NEEDED_VERSION)), "passes", str(NEEDED_VERSION), None),
        (bootstrap("5"), "fails", "5", None),
        ({"ssm.GetParameter": AwsError("ParameterNotFound")}, "fails", "is not bootstrapped", None),
        ({"ssm.GetParameter": DENIED}, "unknown", "denies", "ssm:GetParameter"),
    ],
)
def test_the_bootstraps_version(
    tmp_path: Path, responses: dict[str, Response], outcome: str, found: str, permission: str | None
) -> None:
    result = results_of(check_bootstrap, served(tmp_path), {"s3.HeadBucket": {}, **responses})["version"]
    assert (result.outcome, result.permission) == (outcome, permission)
    assert found in result.found
    assert (result.advice == f"npx cdk bootstrap aws://{ACCOUNT}/us-east-1") == (outcome == "fails")


BUCKET = f"cdk-{QUALIFIER}-assets-{ACCOUNT}-us-east-1"


def another_accounts(request: dict[str, Any]) -> Any:
    """A bucket that is open to all, and not of the expected owner."""
    return AwsError("403") if "ExpectedBucketOwner" in request else {}


@pytest.mark.parametrize(
    ("response", "outcome", "found", "advice"),
    [
        ({}, "passes", BUCKET, ""),
        (AwsError("404"), "fails", f"no bucket {BUCKET}", "npx cdk bootstrap .*#the-bootstrap-bucket-is-gone"),
        (AwsError("403"), "unknown", "denies s3:ListBucket.* of another account", "Allow s3:ListBucket.*qualifier"),
        (another_accounts, "fails", f"{BUCKET} is another account's", "--qualifier NAME"),
        (AwsError("SlowDown"), "unknown", "503: Service Unavailable", "Run it again"),
    ],
    ids=["there", "gone", "denied", "another account's", "throttled"],
)
def test_the_bootstraps_bucket_itself_is_looked_for_by_its_owner(
    tmp_path: Path, response: Response, outcome: str, found: str, advice: str
) -> None:
    """The bootstrap version is a parameter, which stays after the bucket is deleted."""
    session = FakeAws(responses={**bootstrap("21"), "s3.HeadBucket": response})
    subject = Subject(served=served(tmp_path), calls=ReadOnlyCalls(session), project=tmp_path, local=False)
    version, bucket = check_bootstrap(subject)
    assert (version.outcome, bucket.subject, bucket.outcome) == ("passes", "bucket", outcome)
    assert re.search(found, bucket.found)
    assert re.search(advice, bucket.advice)
    assert bucket.permission == ("s3:ListBucket" if "denies" in found else None)
    requests = [request for operation, request in session.calls if operation == "s3.HeadBucket"]
    assert requests[0] == {"Bucket": BUCKET, "ExpectedBucketOwner": ACCOUNT}


def test_a_qualifier_of_ones_own_is_in_the_advice(tmp_path: Path) -> None:
    (tmp_path / "cdk.json").write_text(json.dumps({"app": "a"}))
    assert qualifier_of(tmp_path) == QUALIFIER
    (tmp_path / "cdk.json").write_text(json.dumps({"context": {"@aws-cdk/core:bootstrapQualifier": "team"}}))
    found = results_of(check_bootstrap, served(tmp_path), bootstrap("5"), project=tmp_path)
    assert found["version"].advice.endswith("--qualifier team")


URI = "763104351884.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:24.09-py3"
DIGEST = f"sha256:{'a' * 64}"
FOUND = {"images": [{"imageId": {"imageTag": "24.09-py3", "imageDigest": DIGEST}}], "failures": []}
MISSING = {"images": [], "failures": [{"imageId": {"imageTag": "24.09-py3"}, "failureCode": "ImageNotFound"}]}


def test_an_image_is_looked_up_by_tag_in_the_account_that_keeps_it(tmp_path: Path) -> None:
    session = FakeAws(responses={"ecr.BatchGetImage": FOUND})
    what = served(tmp_path, {}, {})  # two endpoints, one image
    (result,) = check_image(Subject(served=what, calls=ReadOnlyCalls(session), project=tmp_path, local=False))
    assert (result.subject, result.outcome, result.found) == (URI, "passes", DIGEST)
    ((operation, request),) = session.calls
    assert operation == "ecr.BatchGetImage"
    assert request["registryId"] == "763104351884"
    assert (request["repositoryName"], request["imageIds"]) == ("sagemaker-tritonserver", [{"imageTag": "24.09-py3"}])


@pytest.mark.parametrize("response", [MISSING, AwsError("RepositoryNotFoundException")])
def test_an_image_that_is_not_there_fails(tmp_path: Path, response: Any) -> None:
    (result,) = results_of(check_image, served(tmp_path), {"ecr.BatchGetImage": response}).values()
    assert result.outcome == "fails"
    assert "image:" in result.advice


@pytest.mark.parametrize(
    ("error", "permission"), [(AwsError("AccessDeniedException"), "ecr:BatchGetImage"), (SILENCE, None)]
)
def test_a_registry_without_a_clear_response_is_unknown(
    tmp_path: Path, error: Exception, permission: str | None
) -> None:
    (result,) = results_of(check_image, served(tmp_path), {"ecr.BatchGetImage": error}).values()
    assert (result.outcome, result.permission) == ("unknown", permission)


def test_an_image_of_another_region_is_looked_up_there(tmp_path: Path) -> None:
    own = f"111122223333.dkr.ecr.eu-west-1.amazonaws.com/team/triton@{DIGEST}"
    session = FakeAws(responses={"ecr.BatchGetImage": FOUND})
    what = served(tmp_path, builds={"image": own, "on_deploy": True})
    results = check_image(Subject(served=what, calls=ReadOnlyCalls(session), project=tmp_path, local=False))
    assert [result.subject for result in results] == [own, URI]
    assert session.clients == [("ecr", "eu-west-1"), ("ecr", "us-east-1")]
    request = session.calls[0][1]
    assert (request["registryId"], request["repositoryName"]) == ("111122223333", "team/triton")
    assert request["imageIds"] == [{"imageDigest": DIGEST}]


def test_an_image_that_a_deployment_builds_is_not_there_yet(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    (folder.parent / "images").mkdir()
    (folder.parent / "images/Dockerfile").write_text("FROM scratch")
    folder.mkdir()
    what = served(folder, {"image": {"directory": "images"}, "role_arn": f"arn:aws:iam::{ACCOUNT}:role/own"})
    assert results_of(check_image, what, {}) == {}
    subject = subject_of(what, {"ssm.GetParameter": {"Parameter": {"Name": "n", "Value": "value"}}}, project=folder)
    [pull] = [each for each in needed_statements(subject, what.environment.endpoints[0]) if each.sid == "PullImage"]
    name = f"cdk-{QUALIFIER}-container-assets-{ACCOUNT}-us-east-1"
    assert pull.resources == (f"arn:aws:ecr:us-east-1:{ACCOUNT}:repository/{name}",)


def test_an_image_of_codebuilds_own_is_not_in_ecr(tmp_path: Path) -> None:
    what = served(tmp_path, builds={"image": "aws/codebuild/standard:7.0", "on_deploy": True})
    assert list(results_of(check_image, what, {"ecr.BatchGetImage": FOUND})) == [URI]


KEY = f"arn:aws:kms:us-east-1:{ACCOUNT}:key/0a"
ROOT = {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, "Action": "kms:*", "Resource": "*"}
LOGS = {
    "Effect": "Allow",
    "Principal": {"Service": "logs.us-east-1.amazonaws.com"},
    "Action": ["kms:Decrypt", "kms:GenerateDataKey*"],
    "Resource": "*",
}
ALARMS = {
    "Effect": "Allow",
    "Principal": {"Service": ["events.amazonaws.com", "cloudwatch.amazonaws.com"]},
    "Action": ["kms:Decrypt", "kms:GenerateDataKey"],
    "Resource": "*",
}


def key(*statements: dict[str, Any], **metadata: str) -> dict[str, Response]:
    """An account with the key, with this policy."""
    described = {"KeyId": "0a", "Arn": KEY, "KeyState": "Enabled", "KeyUsage": "ENCRYPT_DECRYPT"}
    return {
        "kms.DescribeKey": {"KeyMetadata": described | metadata},
        "kms.GetKeyPolicy": {"Policy": json.dumps({"Statement": list(statements)})},
    }


def look(folder: Path, responses: dict[str, Response], **environment: Any) -> dict[str, str]:
    """Outcomes by what was looked at, of an environment whose artifacts are under the key, with logs and alarms."""
    more = {"alarms": {}, "logs": {"endpoint_days": 30}, **environment}
    found = results_of(check_key, served(folder, artifacts={"key_arn": KEY}, **more), responses)
    return {name.removesuffix(KEY).strip() or "state": result.outcome for name, result in found.items()}


def test_a_key_that_lets_in_what_is_needed_passes(tmp_path: Path) -> None:
    found = look(tmp_path, key(ROOT, LOGS, ALARMS))
    assert found == {"state": "passes", "policy of": "passes"}


@pytest.mark.parametrize("left", [0, 1, 2])
def test_each_missing_statement_fails(tmp_path: Path, left: int) -> None:
    statements = [statement for number, statement in enumerate([ROOT, LOGS, ALARMS]) if number != left]
    assert look(tmp_path, key(*statements))["policy of"] == "fails"


def test_services_that_do_not_use_the_key_need_no_statement(tmp_path: Path) -> None:
    assert look(tmp_path, key(ROOT), alarms=None, logs={})["policy of"] == "passes"


@pytest.mark.parametrize(
    "metadata",
    [{"KeyState": "PendingDeletion"}, {"KeyState": "Disabled"}, {"KeyUsage": "SIGN_VERIFY"}, {"KeySpec": "RSA_2048"}],
)
def test_a_key_that_cannot_encrypt_fails_without_further_requests(tmp_path: Path, metadata: dict[str, str]) -> None:
    assert look(tmp_path, key(ROOT, **metadata)) == {"state": "fails"}


def test_no_such_key_fails(tmp_path: Path) -> None:
    assert look(tmp_path, {"kms.DescribeKey": AwsError("NotFoundException")}) == {"state": "fails"}


def test_denials_are_unknown_each_with_its_permission(tmp_path: Path) -> None:
    what = served(tmp_path, artifacts={"key_arn": KEY})
    found = results_of(check_key, what, key(ROOT) | {"kms.GetKeyPolicy": DENIED})
    assert [result.permission for result in found.values()] == [None, "kms:GetKeyPolicy"]
    assert [result.outcome for result in found.values()] == ["passes", "unknown"]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (LOGS, True),
        ({**LOGS, "Effect": "Deny"}, False),
        ({**LOGS, "Action": "kms:Decrypt"}, False),
        ({**LOGS, "Principal": "*"}, True),
        ({**LOGS, "Principal": {"AWS": "logs.us-east-1.amazonaws.com"}}, False),
        ({**LOGS, "Resource": KEY, "Condition": {"StringEquals": {"kms:ViaService": "any"}}}, True),
        ({**LOGS, "Principal": {"Service": "logs.eu-west-1.amazonaws.com"}}, False),
    ],
)
def test_a_statement_lets_a_service_in_or_not(statement: dict[str, Any], expected: bool) -> None:
    assert lets_in({"Statement": statement}, ["logs.us-east-1.amazonaws.com"]) is expected
