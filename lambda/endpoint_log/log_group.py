"""A log group that is made or adopted, and deleted unless it is to be kept."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_logs.client import CloudWatchLogsClient


def apply(
    client: CloudWatchLogsClient,
    request: str,
    properties: Mapping[str, str],
    old: Mapping[str, str] | None = None,
) -> str:
    """Do what a request asks; what was done: ``made``, ``adopted``, ``kept`` or ``deleted``.

    ``old``: the properties before an Update; tags that they alone have are taken off. Others that the group has stay.
    """
    name = properties["LogGroupName"]
    if request == "Delete":
        return remove(client, name, retain=properties["Retain"] == "true")
    tags = tags_of(properties)
    done = make(client, name, tags)
    if done == "adopted" and tags:
        client.tag_resource(resourceArn=properties["LogGroupArn"], tags=tags)
        dropped = sorted(tags_of(old or {}).keys() - tags.keys())
        if dropped:
            client.untag_resource(resourceArn=properties["LogGroupArn"], tagKeys=dropped)
    client.put_retention_policy(logGroupName=name, retentionInDays=int(properties["RetentionInDays"]))
    client.associate_kms_key(logGroupName=name, kmsKeyId=properties["KmsKeyId"])
    return done


def tags_of(properties: Mapping[str, str]) -> dict[str, str]:
    """Key → value; none in the properties of a version that set none."""
    tags: dict[str, str] = json.loads(properties.get("Tags", "{}"))
    return tags


def make(client: CloudWatchLogsClient, name: str, tags: Mapping[str, str]) -> str:
    """Make the group, unless it is there."""
    try:
        client.create_log_group(logGroupName=name, tags=tags)
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
