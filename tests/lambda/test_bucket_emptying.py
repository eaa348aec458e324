"""The function that deletes a bucket with what is in it."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests import fake_aws

# `lambda` is a keyword: an import statement cannot name either folder.
handler: Any = importlib.import_module("lambda.bucket_emptying.handler")
calling: Any = importlib.import_module("tests.lambda.calling")
custom_resource: Any = importlib.import_module("lambda.shared.custom_resource")


LEFT = {"archives": {}, "another": {"key": b""}}
"""Objects after the bucket ``archives`` was emptied."""


@pytest.fixture
def aws() -> Any:
    world = fake_aws.FakeAws()
    world.buckets["archives"] = {f"key-{number}": b"" for number in range(7)}
    world.buckets["another"]["key"] = b""
    world.markers = [("archives", "deleted-1"), ("archives", "deleted-2")]
    world.uploads = [("archives", "half", "upload-1"), ("another", "half", "upload-2")]
    world.tags = {"archives": {handler.TAG: handler.VALUE}, "another": {handler.TAG: handler.VALUE}}
    return world


def test_versions_markers_and_uploads_of_the_bucket_all_go_and_nothing_else(aws: Any) -> None:
    assert handler.empty(aws.client("s3"), "archives") == 9
    assert aws.buckets == LEFT
    assert aws.markers == []
    assert aws.uploads == [("another", "half", "upload-2")]


def test_objects_that_s3_throttles_are_deleted_in_a_second_request(aws: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(handler.time, "sleep", pauses.append)
    aws.busy = {"key-2": 5, "key-4": 1, "deleted-1": 2}
    assert handler.empty(aws.client("s3"), "archives") == 9
    assert aws.buckets == LEFT
    assert len(pauses) >= 5
    counts = [len(given["Delete"]["Objects"]) for given in aws.requests("DeleteObjects")]
    assert sum(counts) == 9 + 5 + 1 + 2, "what is deleted is not told again"


def test_what_s3_never_has_time_for_fails_with_its_refusal(aws: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handler.time, "sleep", lambda _seconds: None)
    aws.busy = {"key-2": 99}
    with pytest.raises(custom_resource.NotDoneError, match="SlowDown"):
        handler.empty(aws.client("s3"), "archives")


def test_another_refusal_is_not_taken_for_an_empty_bucket(aws: Any) -> None:
    aws.refused["ListObjectVersions"] = "AccessDenied"
    with pytest.raises(ClientError, match="AccessDenied"):
        handler.empty(aws.client("s3"), "archives")


def test_an_object_that_stays_fails_the_deletion_with_its_key(aws: Any) -> None:
    aws.undeletable = frozenset({"key-3"})
    with pytest.raises(custom_resource.NotDoneError, match="key-3"):
        handler.empty(aws.client("s3"), "archives")


def test_logs_that_arrive_after_the_emptying_are_removed_too_until_the_bucket_is_gone(
    aws: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(handler.time, "sleep", waits.append)
    aws.late_logs = 2
    counts = outcomes(aws, "Delete", monkeypatch)
    assert (counts["Status"], "archives" in aws.tags, aws.buckets) == ("SUCCESS", False, LEFT)
    assert len(waits) == 2
    assert outcomes(aws, "Delete", monkeypatch)["Status"] == "SUCCESS", "deleting again finds it gone"


@pytest.mark.parametrize("tags", [{}, {"team": "a"}])
def test_a_bucket_that_is_to_stay_is_left_as_it_is(
    aws: Any, tags: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``retain: true`` in place of false: the resource is deleted, and the bucket is retained with what is in it."""
    aws.tags["archives"] = tags
    assert outcomes(aws, "Delete", monkeypatch)["Status"] == "SUCCESS"
    assert len(aws.buckets["archives"]) == 7


def test_a_bucket_that_may_not_be_deleted_fails_the_deletion(aws: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    aws.refused["DeleteBucket"] = "AccessDenied"
    counts = outcomes(aws, "Delete", monkeypatch)
    assert (counts["Status"], "AccessDenied" in counts["Reason"]) == ("FAILED", True)


def outcomes(aws: Any, request: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The response to one event."""
    client = aws.client("s3")
    event = {"RequestType": request, "ResourceProperties": {"Bucket": "archives"}, **calling.IDS}
    with monkeypatch.context() as patch:
        counts: list[dict[str, Any]] = calling.record_responses(patch)
        patch.setattr("boto3.client", lambda _service, **_: client)
        handler.handler(event, calling.context())
    return counts[0]


@pytest.mark.parametrize("request_type", ["Create", "Update"])
def test_nothing_is_deleted_but_on_delete(aws: Any, request_type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert outcomes(aws, request_type, monkeypatch)["Status"] == "SUCCESS"
    assert len(aws.buckets["archives"]) == 7
    assert outcomes(aws, "Delete", monkeypatch)["Status"] == "SUCCESS"
    assert aws.buckets == LEFT
