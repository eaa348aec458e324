"""Custom resource that owns the log group of an endpoint's containers, whoever made it.

Create and Update make the group that the property ``LogGroupName`` names, or adopt the one that is there, and set
``RetentionInDays`` and ``KmsKeyId``. Delete keeps it where ``Retain`` is ``true``, else deletes it. Each step may be
repeated: CloudFormation and Lambda both deliver an event more than once.

Lines that lay in an adopted group before keep the encryption that they had; the retention is for all of them.

Standard library and boto3 only.
"""

from __future__ import annotations

import contextlib
import json
import urllib.request
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from mypy_boto3_logs.client import CloudWatchLogsClient

ANSWER_SECONDS = 30
REASON_LENGTH = 2000
RETRIES = Config(retries={"mode": "standard", "max_attempts": 10})


def handler(event: dict[str, Any], context: Any) -> None:
    """Entry point: do what the event asks and answer CloudFormation, whatever happened."""
    try:
        done = apply(boto3.client("logs", config=RETRIES), event["RequestType"], event["ResourceProperties"])
        print(json.dumps({"request": event["RequestType"], "done": done}))
        answer(event, status="SUCCESS", reason="", log_stream=context.log_stream_name)
    except Exception as error:  # noqa: BLE001 - without an answer CloudFormation waits until its time-out
        print(json.dumps({"failed": repr(error)}))
        answer(event, status="FAILED", reason=f"{type(error).__name__}: {error}", log_stream=context.log_stream_name)


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


def answer(event: Mapping[str, Any], *, status: str, reason: str, log_stream: str) -> None:
    """Tell CloudFormation the outcome by the presigned URL in the event."""
    body = {
        "Status": status,
        "Reason": f"{reason[:REASON_LENGTH]} (log stream {log_stream})" if reason else "",
        "PhysicalResourceId": event.get("ResourceProperties", {}).get("LogGroupName", "unknown"),
        "StackId": event["StackId"],
        "RequestId": event["RequestId"],
        "LogicalResourceId": event["LogicalResourceId"],
    }
    request = urllib.request.Request(  # noqa: S310 - the URL comes from CloudFormation
        event["ResponseURL"], data=json.dumps(body).encode(), method="PUT", headers={"Content-Type": ""}
    )
    with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as response:  # noqa: S310
        print(json.dumps({"answered": status, "http": response.status}))
