"""Clients of services, and what a refusal of S3 means."""

from __future__ import annotations

from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

RETRIES = Config(retries={"mode": "adaptive", "max_attempts": 10})
"""Some calls are throttled at a few a second by default; the client paces itself."""
GONE = frozenset({"NoSuchKey", "NoSuchBucket", "404", "AccessDenied", "403"})
"""What S3 answers for an object that is gone: without permission to list, a missing object is a refusal."""


def client(service: str, *, config: Config = RETRIES) -> Any:
    """A client with the function's own credentials."""
    return boto3.client(service, config=config)


def code_of(error: ClientError) -> str:
    """The code of a refusal."""
    return str(error.response["Error"]["Code"])


def is_gone(error: ClientError) -> bool:
    """Whether an object of S3 is not there."""
    return code_of(error) in GONE
