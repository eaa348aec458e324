"""Custom resource that owns the log group of an endpoint's containers, whoever made it.

Create and Update make the group that the property ``LogGroupName`` names, or adopt the existing one, and set
``RetentionInDays``, ``KmsKeyId`` and ``Tags`` (JSON), for which it has ``LogGroupArn``. Delete keeps it where
``Retain`` is ``true``, else deletes it. Each step may be repeated: CloudFormation and Lambda both deliver an event more
than once.

Log events that an adopted group already holds keep their encryption; the retention applies to all of them.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..shared.clients import Aws
from ..shared.custom_resource import respond

if TYPE_CHECKING:
    from mypy_boto3_logs.client import CloudWatchLogsClient


def handler(event: dict[str, Any], context: Any) -> None:
    """Entry point; the group's name is the physical id."""
    properties = event.get("ResourceProperties") or {}

    def act() -> Mapping[str, str]:
        print({"done": apply(Aws().logs, event["RequestType"], properties, event.get("OldResourceProperties"))})
        return {}

    respond(event, context, act, physical_id=properties.get("LogGroupName", "unknown"))


def apply(
    logs: CloudWatchLogsClient,
    request: str,
    properties: Mapping[str, str],
    old: Mapping[str, str] | None = None,
) -> str:
    """Carry out a request. Returns what was done: ``made``, ``adopted``, ``kept`` or ``deleted``.

    ``old``: the properties before an Update; tags that only they have are removed. Other tags of the group stay.
    """
    name = properties["LogGroupName"]
    if request == "Delete":
        if properties["Retain"] == "true":
            return "kept"
        with contextlib.suppress(logs.exceptions.ResourceNotFoundException):
            logs.delete_log_group(logGroupName=name)
        return "deleted"
    tags = tags_of(properties)
    done = "made"
    try:
        logs.create_log_group(logGroupName=name, tags=tags)
    except logs.exceptions.ResourceAlreadyExistsException:
        done = "adopted"
    if done == "adopted" and tags:
        logs.tag_resource(resourceArn=properties["LogGroupArn"], tags=tags)
        dropped = sorted(tags_of(old or {}).keys() - tags.keys())
        if dropped:
            logs.untag_resource(resourceArn=properties["LogGroupArn"], tagKeys=dropped)
    logs.put_retention_policy(logGroupName=name, retentionInDays=int(properties["RetentionInDays"]))
    logs.associate_kms_key(logGroupName=name, kmsKeyId=properties["KmsKeyId"])
    return done


def tags_of(properties: Mapping[str, str]) -> dict[str, str]:
    """Key → value; none in properties that an older version of the construct wrote."""
    tags: dict[str, str] = json.loads(properties.get("Tags", "{}"))
    return tags
