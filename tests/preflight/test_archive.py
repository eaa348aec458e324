"""Archives in the bucket, or to be made by the deployment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.preflight.fakes import DENIED, Answer, RefusalError, pages
from tests.preflight.subjects import results_of, served
from tritonstack.naming import ArchiveName, Platform, archive_key
from tritonstack.preflight.archives import check_archive

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
