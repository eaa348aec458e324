"""Custom resource that empties a bucket when its stack is deleted, because CloudFormation refuses to delete a full one.

Create and Update do nothing. Delete removes every version and every delete marker of the bucket that the property
``Bucket`` names, and every upload that was never completed. Each step may be repeated; a bucket that is gone is empty.

A function ends after 15 minutes. Then CloudFormation reports a failed deletion, and deleting the stack again goes on
from where this stopped.

Standard library and boto3 only.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import boto3
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_s3.type_defs import ObjectIdentifierTypeDef

ANSWER_SECONDS = 30
REASON_LENGTH = 2000


class EmptyingError(Exception):
    """S3 refused to delete something."""


def handler(event: dict[str, Any], context: Any) -> None:
    """Entry point: do what the event asks and answer CloudFormation, whatever happened."""
    try:
        removed = empty(boto3.client("s3"), event["ResourceProperties"]["Bucket"]) if _deletes(event) else 0
        print(json.dumps({"request": event["RequestType"], "removed": removed}))
        answer(event, status="SUCCESS", reason="", log_stream=context.log_stream_name)
    except Exception as error:  # noqa: BLE001 - without an answer CloudFormation waits until its time-out
        print(json.dumps({"failed": repr(error)}))
        answer(event, status="FAILED", reason=f"{type(error).__name__}: {error}", log_stream=context.log_stream_name)


def _deletes(event: Mapping[str, Any]) -> bool:
    return bool(event["RequestType"] == "Delete")


def empty(s3: S3Client, bucket: str) -> int:
    """Remove everything from a bucket. Returns how many versions and markers went.

    Raises:
        EmptyingError: S3 refused some of them; with the first refusal.
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
        if error.response["Error"]["Code"] != "NoSuchBucket":
            raise
    return removed


def delete(s3: S3Client, bucket: str, objects: list[ObjectIdentifierTypeDef]) -> int:
    """Delete one page (at most 1,000, as S3 lists and deletes them). Raises EmptyingError."""
    if not objects:
        return 0
    errors = s3.delete_objects(Bucket=bucket, Delete={"Objects": objects, "Quiet": True}).get("Errors", [])
    if errors:
        raise EmptyingError(f"{len(errors)} objects of {bucket} stay: {errors[0]}")
    return len(objects)


def answer(event: Mapping[str, Any], *, status: str, reason: str, log_stream: str) -> None:
    """Tell CloudFormation the outcome by the presigned URL in the event."""
    body = {
        "Status": status,
        "Reason": f"{reason[:REASON_LENGTH]} (log stream {log_stream})" if reason else "",
        "PhysicalResourceId": f"emptied:{event.get('ResourceProperties', {}).get('Bucket', 'unknown')}",
        "StackId": event["StackId"],
        "RequestId": event["RequestId"],
        "LogicalResourceId": event["LogicalResourceId"],
    }
    request = urllib.request.Request(  # noqa: S310 - the URL comes from CloudFormation
        event["ResponseURL"], data=json.dumps(body).encode(), method="PUT", headers={"Content-Type": ""}
    )
    with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as response:  # noqa: S310
        print(json.dumps({"answered": status, "http": response.status}))
