"""What lies between a deployment and its builds: it starts what is missing, and signals when a build has ended.

Two callers:

* CloudFormation, for a ``Custom::ModelBuilds`` in a serving stack. Its properties name the build set as an S3 object
  (``BuildSetBucket``, ``BuildSetKey``) and the URL of a wait condition's handle (``WaitHandle``). Archives of the set,
  and those that release records name, which are not in the bucket for the set's platform are *missing*. Where nothing
  is, the handle is signalled. Where something is, one *order* for all of it goes to one build, CloudFormation is
  answered at once, and the wait condition waits. Where the build cannot be started, the custom resource fails.
* EventBridge, when a build of the project has ended. The *wait* that the build names says which handle to signal.

The variables ``ARTIFACT_BUCKET``, ``PROJECT`` and ``RECORDS`` (what the names of all release records begin with) say
where. Every step may be repeated: CloudFormation, EventBridge and Lambda all deliver an event more than once.

Standard library and boto3 only.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_cloudformation.client import CloudFormationClient
    from mypy_boto3_codebuild.client import CodeBuildClient
    from mypy_boto3_logs.client import CloudWatchLogsClient
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_ssm.client import SSMClient

SCHEMA = 1
ORDER_VARIABLE, WAIT_VARIABLE = "TRITONSTACK_ORDER", "TRITONSTACK_WAIT"
FAILED_LINE = "FAILED in phase "
"""How the last lines of a build that failed begin: ``FAILED in phase <phase> of <archive>: <reason>``."""
WAIT_KEY = re.compile(r"staging/waits/[0-9a-f]{32}\.json")
DIGEST = re.compile(r"[0-9a-f]{16}")
AGENT_LINE = "[Container] "
"""How CodeBuild's own lines in a build's log begin."""
LINES_READ, LINES_TOLD = 100, 20
SIGNAL_REASON_LENGTH = 1000
ANSWER_REASON_LENGTH = 2000
NAMES_SHOWN = 10
HTTP_SECONDS = 30
EXPIRED = frozenset({403, 404, 410})
"""What a handle's presigned URL answers when its time, its stack or its signature is over."""
GONE = frozenset({"NoSuchKey", "404", "AccessDenied", "403"})
"""What S3 answers for an object that is gone: without permission to list, a missing object is a refusal."""
RETRIES = Config(retries={"mode": "adaptive", "max_attempts": 10})


class BuildsError(Exception):
    """What keeps a deployment's builds from being started, said so that it can be mended."""


@dataclass(frozen=True)
class Place:
    """Where everything is; see the module."""

    bucket: str
    project: str
    records: str

    @classmethod
    def of_environment(cls) -> Place:
        """From the function's variables."""
        return cls(os.environ["ARTIFACT_BUCKET"], os.environ["PROJECT"], os.environ["RECORDS"])


@dataclass(frozen=True)
class Clients:
    """The services that are asked."""

    s3: S3Client
    ssm: SSMClient
    codebuild: CodeBuildClient
    logs: CloudWatchLogsClient
    cloudformation: CloudFormationClient

    @classmethod
    def of_session(cls) -> Clients:
        """With the function's role."""
        return cls(
            s3=boto3.client("s3", config=RETRIES),
            ssm=boto3.client("ssm", config=RETRIES),
            codebuild=boto3.client("codebuild", config=RETRIES),
            logs=boto3.client("logs", config=RETRIES),
            cloudformation=boto3.client("cloudformation", config=RETRIES),
        )


def handler(event: dict[str, Any], context: Any) -> None:
    """Entry point of both callers. An event that fails is Lambda's to repeat; CloudFormation is always answered."""
    if "RequestType" not in event:
        build_ended(event, clients=Clients.of_session(), place=Place.of_environment())
        return
    try:
        print(json.dumps({name: event.get(name) for name in ("RequestType", "ResourceProperties")}))
        data = requested(event, clients=Clients.of_session(), place=Place.of_environment())
        answer(event, status="SUCCESS", reason="", data=data, log_stream=context.log_stream_name)
    except Exception as error:  # noqa: BLE001 - without an answer CloudFormation waits until its time-out
        reason = str(error) if isinstance(error, BuildsError) else f"{type(error).__name__}: {error}"
        print(json.dumps({"failed": reason}))
        answer(event, status="FAILED", reason=reason, data={}, log_stream=context.log_stream_name)


# A deployment asks.


def requested(event: Mapping[str, Any], *, clients: Clients, place: Place) -> dict[str, str]:
    """Do what CloudFormation asks. Returns the resource's attributes: ``Missing`` archives, and the ``Build`` of them.

    Delete, and an Update that undoes one, start nothing: nobody waits for it.

    Raises:
        BuildsError: the build set is none, or the build could not be started.
    """
    if event["RequestType"] == "Delete" or _rolls_back(event, clients.cloudformation):
        return {"Missing": "", "Build": ""}
    properties = event["ResourceProperties"]
    build_set = read_build_set(clients.s3, bucket=properties["BuildSetBucket"], key=properties["BuildSetKey"])
    missing = missing_archives(build_set, clients=clients, place=place)
    print(json.dumps({"missing": [_shown_archive(each) for each in missing]}))
    if not missing:
        signal(properties["WaitHandle"], status="SUCCESS", unique="nothing-missing", reason="no archive was missing")
        return {"Missing": "", "Build": ""}
    order = order_of(event)
    build = start_build(
        order, {**build_set, "archives": missing}, handle=properties["WaitHandle"], clients=clients, place=place
    )
    return {"Missing": shown([_shown_archive(each) for each in missing]), "Build": build}


def _rolls_back(event: Mapping[str, Any], cloudformation: CloudFormationClient) -> bool:
    """Whether the stack takes an update back. Its archives are there, or were never: nothing waits for a build."""
    if event["RequestType"] != "Update":
        return False
    status = cloudformation.describe_stacks(StackName=event["StackId"])["Stacks"][0]["StackStatus"]
    return "ROLLBACK" in status


def read_build_set(s3: S3Client, *, bucket: str, key: str) -> dict[str, Any]:
    """The build set of an endpoint. Raises BuildsError where the object is none."""
    body = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    try:
        document = json.loads(body)
        names = [(archive["model"], archive["digest"]) for archive in document["archives"]]
        where = document["endpoint"], document["platform"]["release"], document["platform"]["gpu"]
        sound = document["schema"] == SCHEMA and all(map(str, [*where, *sum(names, ())]))
    except (ValueError, KeyError, TypeError) as error:
        raise BuildsError(f"s3://{bucket}/{key} is no build set: {error!r}") from error
    if not sound:
        raise BuildsError(f"s3://{bucket}/{key} is no build set of schema {SCHEMA}: {str(document)[:200]}")
    return dict(document)


def missing_archives(build_set: Mapping[str, Any], *, clients: Clients, place: Place) -> list[dict[str, Any]]:
    """The archives of the set, and those that release records name, which the set's platform lacks; sorted.

    What is recorded but not in the set is still served to callers until the records move; what its bytes depend on,
    its manifest tells.
    """
    endpoint, platform = build_set["endpoint"], build_set["platform"]
    prefix = f"endpoints/{endpoint}/{platform['release']}-{platform['gpu'].lower()}/"
    pages = clients.s3.get_paginator("list_objects_v2").paginate(Bucket=place.bucket, Prefix=prefix)
    there = {entry["Key"].removeprefix(prefix) for page in pages for entry in page.get("Contents", [])}
    path = f"{place.records}{endpoint}/"
    recorded = clients.ssm.get_paginator("get_parameters_by_path").paginate(Path=path)
    wanted = {
        (entry["Name"].removeprefix(path), entry["Value"]): None
        for page in recorded
        for entry in page["Parameters"]
        if DIGEST.fullmatch(entry["Value"])  # what somebody else wrote there names no archive
    }
    wanted |= {(archive["model"], archive["digest"]): archive["dependency"] for archive in build_set["archives"]}
    return [
        {"model": model, "digest": digest, "dependency": wanted[model, digest]}
        for model, digest in sorted(wanted)
        if f"{model}.{digest}.tar.gz" not in there
    ]


def order_of(event: Mapping[str, Any]) -> str:
    """The order's name, 32 hexadecimal digits: the same for every delivery of one request, another for a retry."""
    identity = "\n".join((event["StackId"], event["LogicalResourceId"], event["RequestId"]))
    return hashlib.sha256(identity.encode()).hexdigest()[:32]


def start_build(order: str, document: Mapping[str, Any], *, handle: str, clients: Clients, place: Place) -> str:
    """Write order and wait, and start the one build of both. Returns the build's id.

    A second delivery of the request finds the order as it was written, and CodeBuild answers the same token with the
    same build. Raises BuildsError where CodeBuild refuses.
    """
    key, wait = f"staging/orders/{order}.json", f"staging/waits/{order}.json"
    body = json.dumps(document, indent=1, sort_keys=True) + "\n"
    put_once(clients.s3, bucket=place.bucket, key=key, body=body)
    put_once(clients.s3, bucket=place.bucket, key=wait, body=json.dumps({"handle": handle}) + "\n")
    variables = {ORDER_VARIABLE: f"s3://{place.bucket}/{key}", WAIT_VARIABLE: wait}
    try:
        started = clients.codebuild.start_build(
            projectName=place.project,
            idempotencyToken=order,
            environmentVariablesOverride=[
                {"name": name, "value": value, "type": "PLAINTEXT"} for name, value in variables.items()
            ],
        )
    except ClientError as error:
        names = shown([_shown_archive(each) for each in document["archives"]])
        raise BuildsError(
            f"CodeBuild started no build of {place.project}, and these archives are missing: {names}. It said: {error}"
        ) from error
    build = started["build"]["id"]
    print(json.dumps({"order": order, "build": build}))
    return build


def put_once(s3: S3Client, *, bucket: str, key: str, body: str) -> None:
    """Write an object unless it is there."""
    try:
        s3.put_object(Bucket=bucket, Key=key, Body=body.encode(), IfNoneMatch="*")
    except ClientError as error:
        if error.response["Error"]["Code"] not in ("PreconditionFailed", "412"):
            raise


def shown(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    more = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _shown_archive(archive: Mapping[str, Any]) -> str:
    return f"{archive['model']}.{archive['digest']}"


# A build has ended.


def build_ended(event: Mapping[str, Any], *, clients: Clients, place: Place) -> None:
    """Signal the handle of the wait that the build names. A build that names none was started by somebody else."""
    identity = event["detail"]["build-id"].partition(":build/")[2]
    builds = clients.codebuild.batch_get_builds(ids=[identity])["builds"]
    if not builds:
        print(json.dumps({"ignored": identity, "reason": "CodeBuild does not know it any more"}))
        return
    build: Mapping[str, Any] = builds[0]
    variables = {each["name"]: each["value"] for each in build["environment"].get("environmentVariables", [])}
    handle = handle_of(variables.get(WAIT_VARIABLE, ""), s3=clients.s3, bucket=place.bucket)
    unique = identity.rpartition(":")[2]  # without the project, whose name may be long: at most 64 characters
    if handle is None:
        print(json.dumps({"ignored": identity, "reason": "no deployment waits for it"}))
    elif build["buildStatus"] == "SUCCEEDED":
        signal(handle, status="SUCCESS", unique=unique, reason=f"built by {identity}")
    else:
        reason = failure(build, last_lines(clients.logs, build))
        signal(handle, status="FAILURE", unique=unique, reason=reason)


def handle_of(key: str, *, s3: S3Client, bucket: str) -> str | None:
    """The URL in a wait; None where there is no such wait."""
    if not WAIT_KEY.fullmatch(key):
        return None
    try:
        return str(json.loads(s3.get_object(Bucket=bucket, Key=key)["Body"].read())["handle"])
    except ClientError as error:
        if error.response["Error"]["Code"] not in GONE:
            raise
        return None


def last_lines(logs: CloudWatchLogsClient, build: Mapping[str, Any]) -> list[str]:
    """The last lines of a build's log, oldest first; none where it wrote none. CodeBuild's own only without others."""
    where = build.get("logs", {})
    if not (where.get("groupName") and where.get("streamName")):
        return []
    try:
        answered = logs.get_log_events(
            logGroupName=where["groupName"], logStreamName=where["streamName"], limit=LINES_READ, startFromHead=False
        )
    except ClientError as error:  # the failure is told without them, too
        print(json.dumps({"log": str(error)}))
        return []
    lines = [line for each in answered["events"] if (line := each["message"].rstrip())]
    return [line for line in lines if not line.startswith(AGENT_LINE)] or lines


def failure(build: Mapping[str, Any], lines: Sequence[str]) -> str:
    """Why a build did not succeed: phase and reason, as many of its last lines as there is room for, and the link."""
    told = [line for line in lines if line.startswith(FAILED_LINE)]
    head = "\n".join(told) or f"{build['id']} {_ended(build)}"
    link = str(build.get("logs", {}).get("deepLink", ""))
    tail = f"\n{link}" if link else ""
    room = SIGNAL_REASON_LENGTH - len(tail)
    if len(head) > room:
        return f"{head[: room - 2]} …{tail}"
    rest = [line for line in lines if not any(each in line for each in told)][-LINES_TOLD:]
    while rest and len(head) + sum(len(line) + 3 for line in rest) > room:
        rest.pop(0)
    return head + "".join(f"\n| {line}" for line in rest) + tail


def _ended(build: Mapping[str, Any]) -> str:
    """How it ended, in which of CodeBuild's phases, and what CodeBuild says of that."""
    status = build["buildStatus"]
    words = {"TIMED_OUT": "took longer than it may", "STOPPED": "was stopped by hand"}.get(status, str(status))
    for phase in build.get("phases", []):
        if phase.get("phaseStatus", "SUCCEEDED") != "SUCCEEDED":
            said = " ".join(str(each.get("message", "")).strip() for each in phase.get("contexts", []))
            return f"{words} in CodeBuild's phase {phase['phaseType']}" + (f": {said}" if said.strip() else "")
    return words


# What CloudFormation hears.


def signal(handle: str, *, status: str, unique: str, reason: str) -> None:
    """Signal a wait condition. A handle whose time is over has nobody behind it, and is no error.

    The same ``unique`` counts once, so a repeated signal does no harm.
    """
    body = {"Status": status, "UniqueId": unique, "Data": unique, "Reason": reason[:SIGNAL_REASON_LENGTH]}
    try:
        _put(handle, body)
    except urllib.error.HTTPError as error:
        if error.code not in EXPIRED:
            raise
        print(json.dumps({"signal": status, "unheard": error.code}))
    else:
        print(json.dumps({"signal": status, "reason": reason}))


def answer(event: Mapping[str, Any], *, status: str, reason: str, data: Mapping[str, str], log_stream: str) -> None:
    """Tell CloudFormation the outcome of its request by the presigned URL in the event.

    The physical id never changes: a changed one would have CloudFormation delete what it takes for the old resource.
    """
    properties = event.get("ResourceProperties") or {}
    body = {
        "Status": status,
        "Reason": f"{reason[:ANSWER_REASON_LENGTH]} (log stream {log_stream})" if reason else "",
        "PhysicalResourceId": f"{event['ResourceType']}:{properties.get('Of', 'unknown')}",
        "StackId": event["StackId"],
        "RequestId": event["RequestId"],
        "LogicalResourceId": event["LogicalResourceId"],
        "Data": dict(data),
    }
    _put(event["ResponseURL"], body)


def _put(url: str, body: Mapping[str, Any]) -> None:
    request = urllib.request.Request(  # noqa: S310 - the URL comes from CloudFormation
        url, data=json.dumps(body).encode(), method="PUT", headers={"Content-Type": ""}
    )
    with urllib.request.urlopen(request, timeout=HTTP_SECONDS) as response:  # noqa: S310
        print(json.dumps({"told": body["Status"], "http": response.status}))
