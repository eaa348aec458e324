"""Custom resource that sets up the log group of an endpoint's containers, new or existing.

Create and Update make the group that the property ``LogGroupName`` names, or adopt the existing one, and set
``RetentionInDays``, ``KmsKeyId`` and ``Tags`` (JSON), for which it has ``LogGroupArn``. Delete deletes a group only if
all of this holds, else keeps it:

* this stack made it, not SageMaker, a person or an earlier stack: a tag on the group has the stack's ARN;
* ``Retain`` is not ``true``;
* nothing is rolled back: its lines show why a deployment failed;
* the endpoint, whose name ends the group's, does not exist any more.

A kept group that was adopted, or whose endpoint stays, gets back its earlier retention and key, so that no line expires
by a setting that is no longer in force. Tags on the group hold the earlier settings.

Each step may be repeated: CloudFormation and Lambda both deliver an event more than once. Log events that an adopted
group already holds keep their encryption; the retention applies to all of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..shared.clients import Aws, ignoring, unless_missing
from ..shared.custom_resource import respond
from ..shared.operation import Operation

if TYPE_CHECKING:
    from mypy_boto3_logs.client import CloudWatchLogsClient

MADE_BY, ADOPTED_BY = "tritonstack:made-by", "tritonstack:adopted-by"
"""Tags of a group that a stack made or adopted: the stack's ARN. The first is written with the group, so that a Create
that is delivered again finds it."""
RETENTION_BEFORE, KEY_BEFORE = "tritonstack:retention-before", "tritonstack:key-before"
"""Tags of an adopted or retained group: its days of retention before any stack set them, or ``NEVER``, and the ARN of
its key, if it had one."""
OWNERS = (MADE_BY, ADOPTED_BY)
OURS = (*OWNERS, RETENTION_BEFORE, KEY_BEFORE)
NEVER = "never"
MISSING, EXISTS = frozenset({"ResourceNotFoundException"}), frozenset({"ResourceAlreadyExistsException"})


def handler(event: dict[str, Any], context: Any) -> None:
    """Entry point; the group's name is the physical id."""
    properties = event.get("ResourceProperties") or {}

    def act() -> Mapping[str, str]:
        print({"done": apply(event, Aws())})
        return {}

    respond(event, context, act, physical_id=properties.get("LogGroupName", "unknown"))


def apply(event: Mapping[str, Any], aws: Aws) -> str:
    """Carry out an event. Returns what was done: ``made``, ``adopted``, ``kept``, ``given back`` or ``deleted``.

    Raises SupersededError where CloudFormation does not wait for the event, or not any more.
    """
    operation = Operation(event, aws.cloudformation)
    return (_delete if event["RequestType"] == "Delete" else _set_up)(event, aws, operation)


def _set_up(event: Mapping[str, Any], aws: Aws, operation: Operation) -> str:
    properties, logs = event["ResourceProperties"], aws.logs
    name, tags, done = properties["LogGroupName"], tags_of(properties), "adopted"
    with ignoring(EXISTS):
        logs.create_log_group(logGroupName=name, tags={**tags, MADE_BY: event["StackId"]})
        done = "made"
    if done == "adopted":
        _adopt(event, logs, tags=tags)
    operation.require()
    logs.put_retention_policy(logGroupName=name, retentionInDays=int(properties["RetentionInDays"]))
    operation.require()
    logs.associate_kms_key(logGroupName=name, kmsKeyId=properties["KmsKeyId"])
    return done


def _adopt(event: Mapping[str, Any], logs: CloudWatchLogsClient, *, tags: Mapping[str, str]) -> None:
    """Tag an existing group; for one new to the stack, note retention and key before they are set."""
    properties = event["ResourceProperties"]
    if "LogGroupArn" not in properties:
        return  # an older version of the construct, whose role may not tag
    group, noted = properties["LogGroupArn"], {}
    if event["RequestType"] == "Create":
        before = logs.list_tags_for_resource(resourceArn=group)["tags"]
        if MADE_BY in before and _stack_name(before[MADE_BY]) == _stack_name(event["StackId"]):
            # Of a stack of this name whose creation failed: its next attempt takes the group over.
            noted = {MADE_BY: event["StackId"]}
        else:
            noted = {ADOPTED_BY: event["StackId"]}
            if RETENTION_BEFORE not in before:
                noted |= _state(logs, properties["LogGroupName"])
    if tags or noted:
        logs.tag_resource(resourceArn=group, tags={**tags, **noted})
    dropped = sorted(tags_of(event.get("OldResourceProperties") or {}).keys() - tags.keys())
    if dropped:
        logs.untag_resource(resourceArn=group, tagKeys=dropped)


def _state(logs: CloudWatchLogsClient, name: str) -> dict[str, str]:
    """The tags that note retention and key of a group."""
    pages = logs.get_paginator("describe_log_groups").paginate(logGroupNamePrefix=name)
    [group] = [each for page in pages for each in page["logGroups"] if each["logGroupName"] == name]
    key = group.get("kmsKeyId")
    return {RETENTION_BEFORE: str(group.get("retentionInDays", NEVER)), **({KEY_BEFORE: key} if key else {})}


def _delete(event: Mapping[str, Any], aws: Aws, operation: Operation) -> str:
    properties, logs = event["ResourceProperties"], aws.logs
    name, retain = properties["LogGroupName"], properties["Retain"] == "true"
    if "LogGroupArn" not in properties:
        return "kept"  # an older version of the construct made or adopted it, and did not note which
    with ignoring(MISSING):
        tags = logs.list_tags_for_resource(resourceArn=properties["LogGroupArn"])["tags"]
        stacks = {tags[key] for key in OWNERS if key in tags}
        made = tags.get(MADE_BY) == event["StackId"]
        if stacks and event["StackId"] not in stacks:
            return "kept"  # another stack's by now
        failed = "ROLLBACK" in operation.stack_status
        lives = unless_missing(aws.sagemaker.describe_endpoint, EndpointName=name.rpartition("/")[2]) is not None
        operation.require()
        if made and not (retain or failed or lives):
            logs.delete_log_group(logGroupName=name)
            return "deleted"
        if lives or (stacks and not made and (failed or not retain)):
            return _give_back(properties, logs, tags=tags)
        if not failed:  # the stack is gone, and from now on the group has no owner
            _release(properties, logs, tags=tags)
        return "kept"
    return "deleted"


def _give_back(properties: Mapping[str, str], logs: CloudWatchLogsClient, *, tags: Mapping[str, str]) -> str:
    """Set retention and key as they were before; where nothing is noted, as SageMaker makes a group."""
    name, days, key = properties["LogGroupName"], tags.get(RETENTION_BEFORE, NEVER), tags.get(KEY_BEFORE)
    if days == NEVER:
        logs.delete_retention_policy(logGroupName=name)
    else:
        logs.put_retention_policy(logGroupName=name, retentionInDays=int(days))
    logs.disassociate_kms_key(logGroupName=name)
    if key is not None:
        with ignoring({"InvalidParameterException"}):  # that key is gone
            logs.associate_kms_key(logGroupName=name, kmsKeyId=key)
    _untag(properties, logs, tags=tags, keys=OURS[1:])  # a group that the stack made stays its own
    return "given back"


def _release(properties: Mapping[str, str], logs: CloudWatchLogsClient, *, tags: Mapping[str, str]) -> None:
    """Remove the owner's tag. The tags of earlier settings stay: a later stack must not take this one's for them."""
    if any(key in tags for key in OWNERS) and RETENTION_BEFORE not in tags:
        logs.tag_resource(resourceArn=properties["LogGroupArn"], tags={RETENTION_BEFORE: NEVER})
    _untag(properties, logs, tags=tags, keys=OWNERS)


def _untag(
    properties: Mapping[str, str], logs: CloudWatchLogsClient, *, tags: Mapping[str, str], keys: tuple[str, ...]
) -> None:
    present = [key for key in keys if key in tags]
    if present:
        logs.untag_resource(resourceArn=properties["LogGroupArn"], tagKeys=present)


def _stack_name(stack_id: str) -> str:
    """The name in a stack's ARN (``arn:aws:cloudformation:REGION:ACCOUNT:stack/NAME/ID``)."""
    return stack_id.split("/")[1]


def tags_of(properties: Mapping[str, str]) -> dict[str, str]:
    """Key → value; none in properties that an older version of the construct wrote."""
    tags: dict[str, str] = json.loads(properties.get("Tags", "{}"))
    return tags
