"""Clients of services, and what a refusal means: S3's of an object that is gone, anybody's of too many requests."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

ATTEMPTS = 10
RETRIES = Config(retries={"mode": "adaptive", "total_max_attempts": ATTEMPTS})
"""Some calls are throttled at a few a second by default; the client paces itself. Ten attempts take 111 seconds at most
(botocore waits up to 1, 2, 4, 8, 16 and then 20 seconds between them)."""
LONGEST_PAUSE = 20.0
GONE = frozenset({"NoSuchKey", "NoSuchBucket", "404", "AccessDenied", "403"})
"""What S3 answers for an object that is gone: without permission to list, a missing object is a refusal."""
CONCURRENT = frozenset({"TooManyUpdates", "ConcurrentUpdateException", "OperationAborted", "OperationAbortedException"})
"""Refusals because another change of the same resource is under way: Systems Manager's (PutParameter and tags),
Application Auto Scaling's, S3's and CloudWatch Logs' (their API references). botocore does not try these again."""
TOO_MANY = frozenset({"Throttling", "ThrottlingException", "TooManyRequests", "TooManyRequestsException", "SlowDown"})
"""Refusals because of too many requests."""


def client(service: str, *, config: Config = RETRIES) -> Any:
    """A client with the function's own credentials, which tries throttled and concurrent requests again."""
    made = boto3.client(service, config=config)
    if config is RETRIES:
        made.meta.events.register("needs-retry", pause_before_retry)
    return made


def pause_before_retry(*, response: tuple[Any, Mapping[str, Any]] | None, attempts: int, **_: Any) -> float | None:
    """The pause before a refusal is tried again that botocore takes for final, in seconds; None where it is final."""
    if response is None or attempts >= ATTEMPTS:
        return None
    http, parsed = response
    if http.status_code != 429 and parsed.get("Error", {}).get("Code") not in CONCURRENT | TOO_MANY:
        return None
    return random.random() * min(2.0 ** (attempts - 1), LONGEST_PAUSE)  # noqa: S311 - so that two do not meet again


def code_of(error: ClientError) -> str:
    """The code of a refusal."""
    return str(error.response["Error"]["Code"])


def is_gone(error: ClientError) -> bool:
    """Whether an object of S3 is not there."""
    return code_of(error) in GONE


def is_throttled(error: ClientError) -> bool:
    """Whether a request was one of too many."""
    return code_of(error) in TOO_MANY
