"""Custom resource that deletes a bucket with its content, because CloudFormation refuses to delete a full one.

Create and Update do nothing. Delete removes every version and every delete marker of the bucket that the property
``Bucket`` names, every incomplete multipart upload, and then the bucket itself. CloudFormation, which deletes it later,
finds it gone, which counts as deleted. Were that left to CloudFormation, an access log that arrives between the two
would fail the deletion, and deleting the stack again would find neither this resource nor its function; S3 delivers
logs for an hour after logging has ended (S3 API, PutBucketLogging).

A bucket without the tag stays: the template that removes the resource removes the tag first, where the bucket is to be
retained from then on.

A function ends after 15 minutes. Then CloudFormation reports a failed deletion, and deleting the stack again continues
where this stopped. Each step may be repeated; a bucket that is gone is no error.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from ..shared.clients import Aws, code_of, ignoring
from ..shared.custom_resource import NotDoneError, respond

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_s3.type_defs import ObjectIdentifierTypeDef

TAG, VALUE = "tritonstack:deleted-with-stack", "true"
"""The tag of a bucket that is deleted with its stack; ``BucketEmptying`` of ``constructs_lib`` sets it."""
TRANSIENT = frozenset({"InternalError", "SlowDown", "ServiceUnavailable"})
"""Errors of an object that S3 deletes when it is asked again (S3 user guide, "Error best practices")."""
PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Seconds before each further attempt."""
NOT_EMPTY = frozenset({"BucketNotEmpty", "OperationAborted"})
NOT_EMPTY_PAUSE = 2.0


def handler(event: dict[str, Any], context: Any) -> None:
    """Entry point; the physical id follows from the bucket's name."""
    bucket = (event.get("ResourceProperties") or {}).get("Bucket", "unknown")

    def act() -> Mapping[str, str]:
        if event["RequestType"] == "Delete":
            print({"removed": remove(Aws().s3, bucket)})
        return {}

    respond(event, context, act, physical_id=f"emptied:{bucket}")


def remove(s3: S3Client, bucket: str) -> int:
    """Delete a bucket with its content. Returns the number of versions and markers removed.

    What arrives between emptying and deletion, above all access logs, is removed in the next round, until the
    function's time is over. A bucket without the tag stays as it is.
    """
    if not is_tagged(s3, bucket):
        return 0
    removed = 0
    while True:
        removed += empty(s3, bucket)
        try:
            s3.delete_bucket(Bucket=bucket)
        except ClientError as error:
            if code_of(error) == "NoSuchBucket":
                return removed
            if code_of(error) not in NOT_EMPTY:
                raise
            time.sleep(NOT_EMPTY_PAUSE)
        else:
            return removed


def is_tagged(s3: S3Client, bucket: str) -> bool:
    """Whether a bucket exists and has the tag."""
    with ignoring({"NoSuchTagSet", "NoSuchBucket"}):
        return {"Key": TAG, "Value": VALUE} in s3.get_bucket_tagging(Bucket=bucket)["TagSet"]
    return False


def empty(s3: S3Client, bucket: str) -> int:
    """Remove everything from a bucket. Returns the number of versions and markers removed.

    Raises NotDoneError: S3 refused to delete some of them; with the first refusal.
    """
    removed = 0
    with ignoring({"NoSuchBucket"}):
        for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket):
            entries = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
            removed += delete(s3, bucket, [{"Key": one["Key"], "VersionId": one["VersionId"]} for one in entries])
        for uploads in s3.get_paginator("list_multipart_uploads").paginate(Bucket=bucket):
            for upload in uploads.get("Uploads", []):
                s3.abort_multipart_upload(Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"])
    return removed


def delete(s3: S3Client, bucket: str, objects: list[ObjectIdentifierTypeDef]) -> int:
    """Delete one page (at most 1,000, as S3 lists and deletes them). Raises NotDoneError.

    S3 responds with status 200 and lists the objects that it did not delete, which no client retries by itself.
    """
    left = objects
    for pause in (*PAUSES, None):
        if not left:
            break
        errors = s3.delete_objects(Bucket=bucket, Delete={"Objects": left, "Quiet": True}).get("Errors", [])
        final = [error for error in errors if error.get("Code") not in TRANSIENT]
        if final or (errors and pause is None):
            raise NotDoneError(f"{len(errors)} objects of {bucket} stay: {(final or errors)[0]}")
        left = [{name: error[name] for name in ("Key", "VersionId") if name in error} for error in errors]  # type: ignore[misc]
        if left and pause is not None:
            print({"retried": len(left), "because": errors[0]})
            time.sleep(pause)
    return len(objects)
