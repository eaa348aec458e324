"""A wait: the URL of a wait condition's handle, kept under a key that the build names."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from ..shared import presigned_url
from ..shared.clients import is_gone

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

WAIT_VARIABLE = "TRITONSTACK_WAIT"

WAIT_KEY = re.compile(r"staging/waits/[0-9a-f]{32}\.json")
SIGNAL_REASON_LENGTH = 1000


def wait_key(order: str) -> str:
    """Where the wait for an order is kept."""
    return f"staging/waits/{order}.json"


def handle_of(key: str, *, s3: S3Client, bucket: str) -> str | None:
    """The URL in a wait; None where there is no such wait."""
    if not WAIT_KEY.fullmatch(key):
        return None
    try:
        return str(json.loads(s3.get_object(Bucket=bucket, Key=key)["Body"].read())["handle"])
    except ClientError as error:
        if not is_gone(error):
            raise
        return None


def signal(handle: str, *, status: str, unique: str, reason: str) -> None:
    """Signal a wait condition. A handle whose time is over has nobody behind it, and is no error.

    The same ``unique`` counts once, so a repeated signal does no harm.
    """
    body = {"Status": status, "UniqueId": unique, "Data": unique, "Reason": reason[:SIGNAL_REASON_LENGTH]}
    heard = presigned_url.put(handle, json.dumps(body).encode())
    print(json.dumps({"signal": status, "reason": reason, "heard": heard}))
