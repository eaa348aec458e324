"""A deployment's request: the archives that its endpoint lacks, ordered from one build."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from ..shared.clients import Aws, ignoring, keys_below, records_below
from ..shared.custom_resource import NotDoneError, name_list
from ..shared.operation import Operation
from .wait import WAIT_VARIABLE, Place, signal, variables_of

if TYPE_CHECKING:
    from mypy_boto3_codebuild.client import CodeBuildClient
    from mypy_boto3_s3.client import S3Client

DIGEST = re.compile(r"[0-9a-f]{16}")
ORDER_VARIABLE = "TRITONSTACK_ORDER"


def requested(event: Mapping[str, Any], *, aws: Aws, place: Place) -> dict[str, str]:
    """Carry out a request. Returns the resource's attributes: ``Missing`` archives, and the ``Build`` of them.

    Delete, and an Update that undoes one, start nothing: no wait condition follows.

    Raises NotDoneError: the build could not be started; SupersededError: CloudFormation does not wait for it any more.
    """
    if event["RequestType"] == "Delete":
        return {"Missing": "", "Build": ""}
    operation = Operation(event, aws.cloudformation)
    if operation.undoes:
        return {"Missing": "", "Build": ""}
    properties = event["ResourceProperties"]
    stored = aws.s3.get_object(Bucket=properties["BuildSetBucket"], Key=properties["BuildSetKey"])
    build_set = json.loads(stored["Body"].read())
    missing = missing_archives(build_set, aws=aws, place=place)
    print(json.dumps({"missing": [archive_name(each) for each in missing]}))
    if not missing:
        operation.require()
        signal(properties["WaitHandle"], status="SUCCESS", unique="nothing-missing", reason="no archive was missing")
        return {"Missing": "", "Build": ""}
    order = order_of(event)
    operation.require()
    build = start_build(
        order, {**build_set, "archives": missing}, handle=properties["WaitHandle"], aws=aws, place=place
    )
    return {"Missing": name_list([archive_name(each) for each in missing]), "Build": build}


def missing_archives(build_set: Mapping[str, Any], *, aws: Aws, place: Place) -> list[dict[str, Any]]:
    """The archives of the set and of release records that the set's platform lacks; sorted.

    What is recorded but not in the set is served until the records move; its manifest has its dependency.
    """
    endpoint, platform = build_set["endpoint"], build_set["platform"]
    prefix = f"endpoints/{endpoint}/{platform['release']}-{platform['gpu'].lower()}/"
    existing = keys_below(aws.s3, bucket=place.bucket, prefix=prefix)
    recorded = records_below(aws.ssm, path=f"{place.records}{endpoint}/")
    # A value that is no digest names no archive.
    wanted = {(model, digest): None for model, digest in recorded.items() if DIGEST.fullmatch(digest)}
    wanted |= {(archive["model"], archive["digest"]): archive["dependency"] for archive in build_set["archives"]}
    return [
        {"model": model, "digest": digest, "dependency": wanted[model, digest]}
        for model, digest in sorted(wanted)
        if f"{model}.{digest}.tar.gz" not in existing
    ]


def order_of(event: Mapping[str, Any]) -> str:
    """The order's name, 32 hexadecimal digits: the same for every delivery of one request, another for a retry."""
    identity = "\n".join((event["StackId"], event["LogicalResourceId"], event["RequestId"]))
    return hashlib.sha256(identity.encode()).hexdigest()[:32]


def start_build(order: str, document: Mapping[str, Any], *, handle: str, aws: Aws, place: Place) -> str:
    """Write order and wait, and start the one build of both. Returns the build's id.

    A second delivery of the request finds the order as it was written, and the build of that order. Within the five
    minutes that CodeBuild keeps a token (API reference, StartBuild, ``idempotencyToken``) it returns that build itself;
    Lambda may deliver a request for six hours. Raises NotDoneError where CodeBuild refuses.
    """
    key, wait = f"staging/orders/{order}.json", f"staging/waits/{order}.json"
    body = json.dumps(document, indent=1, sort_keys=True) + "\n"
    first = put_once(aws.s3, bucket=place.bucket, key=key, body=body)
    put_once(aws.s3, bucket=place.bucket, key=wait, body=json.dumps({"handle": handle}) + "\n")
    variables = {ORDER_VARIABLE: f"s3://{place.bucket}/{key}", WAIT_VARIABLE: wait}
    known = None if first else build_of(wait, project=place.project, codebuild=aws.codebuild)
    if known is not None:
        print(json.dumps({"order": order, "build": known, "started": "by an earlier delivery"}))
        return known
    try:
        started = aws.codebuild.start_build(
            projectName=place.project,
            idempotencyToken=order,
            environmentVariablesOverride=[
                {"name": name, "value": value, "type": "PLAINTEXT"} for name, value in variables.items()
            ],
        )
    except ClientError as error:
        names = name_list([archive_name(each) for each in document["archives"]])
        raise NotDoneError(
            f"CodeBuild started no build of {place.project}, and these archives are missing: {names}. "
            f"CodeBuild reports: {error}"
        ) from error
    build = started["build"]["id"]
    print(json.dumps({"order": order, "build": build}))
    return build


def build_of(wait: str, *, project: str, codebuild: CodeBuildClient) -> str | None:
    """The id of the build that signals a wait, in whatever state; None where none was started."""
    for page in codebuild.get_paginator("list_builds_for_project").paginate(
        projectName=project, sortOrder="DESCENDING"
    ):
        builds = codebuild.batch_get_builds(ids=page["ids"])["builds"] if page.get("ids") else []
        for build in builds:
            if variables_of(build).get(WAIT_VARIABLE) == wait:
                return str(build["id"])
    return None


def put_once(s3: S3Client, *, bucket: str, key: str, body: str) -> bool:
    """Write an object unless it exists; whether it was written."""
    with ignoring({"PreconditionFailed", "412"}):
        s3.put_object(Bucket=bucket, Key=key, Body=body.encode(), IfNoneMatch="*")
        return True
    return False


def archive_name(archive: Mapping[str, Any]) -> str:
    return f"{archive['model']}.{archive['digest']}"
