"""A release set as the deployment published it: the asset of the bootstrap bucket that names each model's digest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from .clients import code_of, is_missing_object
from .custom_resource import NotDoneError

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client


class ReleaseSetGoneError(NotDoneError):
    """A release set that is not in the bootstrap bucket any more."""

    def __init__(self, *, bucket: str, key: str, code: str) -> None:
        """``code``: S3's error code."""
        super().__init__(
            f"the release set s3://{bucket}/{key} is missing ({code}): the bootstrap bucket is gone, or its old assets "
            "were deleted, as by a lifecycle rule. Run cdk deploy, which uploads the set again; it makes no bucket: if "
            "that is gone, run cdk bootstrap first."
        )


def release_set_document(s3: S3Client, *, bucket: str, key: str) -> Mapping[str, Any]:
    """``models``: model → digest; since 0.1.0 ``commits``, too. Raises ReleaseSetGoneError where the object is gone."""
    try:
        body = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    except ClientError as error:
        if not is_missing_object(error):
            raise
        raise ReleaseSetGoneError(bucket=bucket, key=key, code=code_of(error)) from error
    document: Mapping[str, Any] = json.loads(body)
    return document
