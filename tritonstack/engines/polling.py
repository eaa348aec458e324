"""Which AWS a client talks to, by its address, and how often a remote job is looked at there."""

from __future__ import annotations

import ipaddress
from typing import Any
from urllib.parse import urlsplit

POLL_SECONDS = 15.0
LOCAL_POLL_SECONDS = 0.25


def is_local(client: Any) -> bool:
    """Whether a boto3 client talks to a local AWS: its endpoint URL is of this machine.

    The URL is what botocore made of everything that it heeds: ``AWS_ENDPOINT_URL``, ``AWS_ENDPOINT_URL_<SERVICE>``,
    ``endpoint_url`` of the profile or of its services section, ``AWS_IGNORE_CONFIGURED_ENDPOINT_URLS`` (AWS SDKs and
    tools reference guide, "Service-specific endpoints"). Services may differ: take a client of the one that answers.
    """
    host = urlsplit(str(client.meta.endpoint_url)).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")  # RFC 6761


def poll_seconds(client: Any) -> float:
    """Seconds between two looks at a remote job: few on this machine, where nobody limits them."""
    return LOCAL_POLL_SECONDS if is_local(client) else POLL_SECONDS
