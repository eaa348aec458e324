"""Images in ECR."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.preflight.fakes import SILENCE, FakeSession, RefusalError
from tests.preflight.subjects import results_of, served
from tritonstack.preflight.images import check_image
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
