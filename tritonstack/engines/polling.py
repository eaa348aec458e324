"""How often a remote job is looked at, and what a client's address says of the AWS behind it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

POLL_SECONDS = 15.0
LOCAL_POLL_SECONDS = 0.25
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}


def is_local(client: Any) -> bool:
    """Whether a boto3 client talks to an AWS on this machine."""
    return urlsplit(str(client.meta.endpoint_url)).hostname in _LOOPBACK


def poll_seconds(client: Any) -> float:
    """Seconds between two looks at a remote job: few on this machine, where nobody limits them."""
    return LOCAL_POLL_SECONDS if is_local(client) else POLL_SECONDS
