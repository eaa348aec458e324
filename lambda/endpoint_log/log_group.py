"""A log group that is made or adopted, and deleted unless it is to be kept."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_logs.client import CloudWatchLogsClient


def apply(client: CloudWatchLogsClient, request: str, properties: Mapping[str, str]) -> str:
    """Do what a request asks; what was done: ``made``, ``adopted``, ``kept`` or ``deleted``."""
    name = properties["LogGroupName"]
    if request == "Delete":
        return remove(client, name, retain=properties["Retain"] == "true")
    done = make(client, name)
    client.put_retention_policy(logGroupName=name, retentionInDays=int(properties["RetentionInDays"]))
    client.associate_kms_key(logGroupName=name, kmsKeyId=properties["KmsKeyId"])
    return done


def make(client: CloudWatchLogsClient, name: str) -> str:
    """Make the group, unless it is there."""
    try:
        client.create_log_group(logGroupName=name)
    except client.exceptions.ResourceAlreadyExistsException:
        return "adopted"
    return "made"


def remove(client: CloudWatchLogsClient, name: str, *, retain: bool) -> str:
    """Delete the group, unless it is to be kept; one that is gone is deleted."""
    if retain:
        return "kept"
    with contextlib.suppress(client.exceptions.ResourceNotFoundException):
        client.delete_log_group(logGroupName=name)
    return "deleted"
