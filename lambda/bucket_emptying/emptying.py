"""A bucket and everything in it, removed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from ..shared.clients import code_of
from ..shared.custom_resource import NotDoneError

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_s3.type_defs import ObjectIdentifierTypeDef


PASSING = frozenset({"InternalError", "SlowDown", "ServiceUnavailable"})
"""Why S3 did not delete an object that it deletes when it is told again (S3 user guide, "Error best practices")."""
PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Before each further try, in seconds."""
TAG, VALUE = "tritonstack:deleted-with-stack", "true"
"""The mark of a bucket that goes with its stack; ``BucketEmptying`` of ``constructs_lib`` sets it."""
PAUSE_SECONDS = 2.0
FULL = frozenset({"BucketNotEmpty", "OperationAborted"})


def remove(s3: S3Client, bucket: str) -> int:
    """Delete a bucket with everything in it. Returns how many versions and markers went.

    What arrives between emptying and deletion, an access log most of all, is removed in the next round, until the
    function's time is over. A bucket without the mark stays as it is: the template no longer says that it goes.
    """
    if not marked(s3, bucket):
        return 0
    removed = 0
    while True:
        removed += empty(s3, bucket)
        try:
            s3.delete_bucket(Bucket=bucket)
        except ClientError as error:
            if code_of(error) == "NoSuchBucket":
                return removed
            if code_of(error) not in FULL:
                raise
            time.sleep(PAUSE_SECONDS)
        else:
            return removed


def marked(s3: S3Client, bucket: str) -> bool:
    """Whether a bucket is there and has the mark."""
    try:
        tags = s3.get_bucket_tagging(Bucket=bucket)["TagSet"]
    except ClientError as error:
        if code_of(error) in ("NoSuchTagSet", "NoSuchBucket"):
            return False
        raise
    return {"Key": TAG, "Value": VALUE} in tags


def empty(s3: S3Client, bucket: str) -> int:
    """Remove everything from a bucket. Returns how many versions and markers went.

    Raises:
        NotDoneError: S3 refused some of them; with the first refusal.
    """
    removed = 0
    try:
        for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket):
            entries = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
            removed += delete(s3, bucket, [{"Key": one["Key"], "VersionId": one["VersionId"]} for one in entries])
        for uploads in s3.get_paginator("list_multipart_uploads").paginate(Bucket=bucket):
            for upload in uploads.get("Uploads", []):
                s3.abort_multipart_upload(Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"])
    except ClientError as error:
        if code_of(error) != "NoSuchBucket":
            raise
    return removed


def delete(s3: S3Client, bucket: str, objects: list[ObjectIdentifierTypeDef]) -> int:
    """Delete one page (at most 1,000, as S3 lists and deletes them). Raises NotDoneError.

    S3 answers 200 and names the objects that it had no time for, which no client tries again by itself.
    """
    left = objects
    for pause in (*PAUSES, None):
        if not left:
            break
        errors = s3.delete_objects(Bucket=bucket, Delete={"Objects": left, "Quiet": True}).get("Errors", [])
        final = [error for error in errors if error.get("Code") not in PASSING]
        if final or (errors and pause is None):
            raise NotDoneError(f"{len(errors)} objects of {bucket} stay: {(final or errors)[0]}")
        left = [{name: error[name] for name in ("Key", "VersionId") if name in error} for error in errors]  # type: ignore[misc]
        if left and pause is not None:
            print({"tried again": len(left), "because": errors[0]})
            time.sleep(pause)
    return len(objects)
