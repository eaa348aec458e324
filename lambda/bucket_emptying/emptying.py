"""Everything in a bucket, removed."""

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
