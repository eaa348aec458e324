"""Images in ECR and archives in the bucket."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.preflight.fakes import DENIED, SILENCE, Answer, FakeSession, RefusalError, pages
from tests.preflight.subjects import results_of, served
from tritonstack.naming import ArchiveName, Platform, archive_key
from tritonstack.preflight.archives import check_archive, check_image
from tritonstack.preflight.subject import Subject
from tritonstack.read_only_aws import ReadOnlyCalls

URI = "763104351884.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:24.09-py3"
DIGEST = f"sha256:{'a' * 64}"
FOUND = {"images": [{"imageId": {"imageTag": "24.09-py3", "imageDigest": DIGEST}}], "failures": []}
MISSING = {"images": [], "failures": [{"imageId": {"imageTag": "24.09-py3"}, "failureCode": "ImageNotFound"}]}


def test_an_image_is_asked_for_by_tag_at_the_account_that_keeps_it(tmp_path: Path) -> None:
    session = FakeSession({"ecr.BatchGetImage": FOUND})
    what = served(tmp_path, {}, {})  # two endpoints, one image
    (result,) = check_image(Subject(served=what, calls=ReadOnlyCalls(session), project=tmp_path, local=False))
    assert (result.subject, result.outcome, result.found) == (URI, "passes", DIGEST)
    ((operation, request),) = session.calls
    assert operation == "ecr.BatchGetImage"
    assert request["registryId"] == "763104351884"
    assert (request["repositoryName"], request["imageIds"]) == ("sagemaker-tritonserver", [{"imageTag": "24.09-py3"}])


@pytest.mark.parametrize("answer", [MISSING, RefusalError("RepositoryNotFoundException")])
def test_an_image_that_is_not_there_fails(tmp_path: Path, answer: Any) -> None:
    (result,) = results_of(check_image, served(tmp_path), {"ecr.BatchGetImage": answer}).values()
    assert result.outcome == "fails"
    assert "image:" in result.advice


@pytest.mark.parametrize(
    ("error", "permission"), [(RefusalError("AccessDeniedException"), "ecr:BatchGetImage"), (SILENCE, None)]
)
def test_a_registry_that_does_not_say_is_unknown(tmp_path: Path, error: Exception, permission: str | None) -> None:
    (result,) = results_of(check_image, served(tmp_path), {"ecr.BatchGetImage": error}).values()
    assert (result.outcome, result.permission) == ("unknown", permission)


def test_an_image_of_another_region_is_asked_for_there(tmp_path: Path) -> None:
    own = f"111122223333.dkr.ecr.eu-west-1.amazonaws.com/team/triton@{DIGEST}"
    session = FakeSession({"ecr.BatchGetImage": FOUND})
    what = served(tmp_path, builds={"image": own, "on_deploy": True})
    results = check_image(Subject(served=what, calls=ReadOnlyCalls(session), project=tmp_path, local=False))
    assert [result.subject for result in results] == [own, URI]
    assert session.clients == [("ecr", "eu-west-1"), ("ecr", "us-east-1")]
    request = session.calls[0][1]
    assert (request["registryId"], request["repositoryName"]) == ("111122223333", "team/triton")
    assert request["imageIds"] == [{"imageDigest": DIGEST}]


def test_an_image_of_codebuilds_own_is_not_in_ecr(tmp_path: Path) -> None:
    what = served(tmp_path, builds={"image": "aws/codebuild/standard:7.0", "on_deploy": True})
    assert list(results_of(check_image, what, {"ecr.BatchGetImage": FOUND})) == [URI]


T4 = Platform(release="24.09", gpu="t4")


def bucket(*keys: str) -> dict[str, Answer]:
    """An account whose bucket has these keys, and no release record."""

    def listed(request: dict[str, Any]) -> dict[str, Any]:
        found = [key for key in keys if key.startswith(request.get("Prefix", ""))]
        return {"Contents": [{"Key": key, "Size": 1} for key in found], "IsTruncated": False}

    return {
        "ssm.GetParameter": {"Parameter": {"Name": "n", "Value": "the-bucket"}},
        "ssm.GetParametersByPath": pages("Parameters", []),
        "s3.ListObjectsV2": listed,
        "s3.GetObject": RefusalError("NoSuchKey"),
    }


def test_archives_that_are_there_pass(tmp_path: Path) -> None:
    what = served(tmp_path)
    (digest,) = what.release_sets["e0"].values()
    key = archive_key(endpoint="e0", platform=T4, archive=ArchiveName(model="double", digest=digest))
    found = results_of(check_archive, what, bucket(key), project=tmp_path)["test"]
    assert (found.outcome, found.found) == ("passes", "1 there")


@pytest.mark.parametrize(("on_deploy", "outcome"), [(False, "fails"), (True, "passes")])
def test_a_missing_archive_fails_unless_the_deployment_builds_it(tmp_path: Path, on_deploy: bool, outcome: str) -> None:
    what = served(tmp_path, builds={"on_deploy": on_deploy})
    found = results_of(check_archive, what, bucket(), project=tmp_path)["test"]
    assert found.outcome == outcome
    assert "1 missing (double." in found.found
    none_yet = results_of(
        check_archive, what, {"ssm.GetParameter": RefusalError("ParameterNotFound")}, project=tmp_path
    )["test"]
    assert (none_yet.outcome, "no bucket yet" in none_yet.found) == (outcome, True)


@pytest.mark.parametrize(
    ("operation", "error", "permission"),
    [
        ("ssm.GetParameter", DENIED, "ssm:GetParameter"),
        ("ssm.GetParametersByPath", DENIED, "ssm:GetParametersByPath"),
        ("s3.ListObjectsV2", RefusalError("AccessDenied"), "s3:ListBucket"),
        ("s3.ListObjectsV2", RefusalError("SlowDown"), None),
    ],
)
def test_a_bucket_that_may_not_be_read_is_unknown(
    tmp_path: Path, operation: str, error: Exception, permission: str | None
) -> None:
    found = results_of(check_archive, served(tmp_path), bucket() | {operation: error}, project=tmp_path)["test"]
    assert (found.outcome, found.permission) == ("unknown", permission)


@pytest.mark.parametrize(
    ("error", "outcome", "permission"),
    [(RefusalError("NoSuchKey"), "fails", None), (RefusalError("AccessDenied"), "unknown", "s3:GetObject")],
)
def test_a_recorded_digest_whose_inputs_are_gone_fails_and_one_that_may_not_be_read_is_unknown(
    tmp_path: Path, error: Exception, outcome: str, permission: str | None
) -> None:
    what, digest = served(tmp_path), "0" * 16
    (own,) = what.release_sets["e0"].values()
    there = [
        archive_key(endpoint="e0", platform=T4, archive=ArchiveName(model="double", digest=own)),
        f"inputs/{digest}.zip",  # listed, so that a refusal is not taken for an absence
    ]
    record = {"Name": "/tritonstack/test/e0/double", "Value": digest}
    records: dict[str, Answer] = {"ssm.GetParametersByPath": pages("Parameters", [record])}
    answers = bucket(*there) | records | {"s3.GetObject": error}
    found = results_of(check_archive, what, answers, project=tmp_path)["test"]
    assert (found.outcome, found.permission) == (outcome, permission)
