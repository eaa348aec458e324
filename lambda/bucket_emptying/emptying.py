"""Everything in a bucket, removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from ..shared.clients import code_of
from ..shared.custom_resource import NotDoneError

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_s3.type_defs import ObjectIdentifierTypeDef


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
    """Delete one page (at most 1,000, as S3 lists and deletes them). Raises NotDoneError."""
    if not objects:
        return 0
    errors = s3.delete_objects(Bucket=bucket, Delete={"Objects": objects, "Quiet": True}).get("Errors", [])
    if errors:
        raise NotDoneError(f"{len(errors)} objects of {bucket} stay: {errors[0]}")
    return len(objects)
