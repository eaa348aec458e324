"""A deployment's request, and the order of all that it lacks to one build."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from ..shared.clients import code_of
from ..shared.custom_resource import NotDoneError
from ..shared.names import shown
from ..shared.stack import rolls_back
from .archives import missing_archives, read_build_set
from .services import Clients, Place
from .wait import WAIT_VARIABLE, signal, wait_key

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

CONFLICT_PAUSES = (0.2, 0.4, 0.8, 1.6)
"""Seconds between the tries of a write that another one is in the way of."""
ORDER_VARIABLE = "TRITONSTACK_ORDER"


def requested(event: Mapping[str, Any], *, clients: Clients, place: Place) -> dict[str, str]:
    """Do what CloudFormation asks. Returns the resource's attributes: ``Missing`` archives, and the ``Build`` of them.

    Delete, and an Update that undoes one, start nothing: nobody waits for it.

    Raises:
        NotDoneError: the build set is none, or the build could not be started.
    """
    if event["RequestType"] == "Delete" or rolls_back(event, clients.cloudformation):
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


def order_of(event: Mapping[str, Any]) -> str:
    """The order's name, 32 hexadecimal digits: the same for every delivery of one request, another for a retry."""
    identity = "\n".join((event["StackId"], event["LogicalResourceId"], event["RequestId"]))
    return hashlib.sha256(identity.encode()).hexdigest()[:32]


def start_build(order: str, document: Mapping[str, Any], *, handle: str, clients: Clients, place: Place) -> str:
    """Write order and wait, and start the one build of both. Returns the build's id.

    A second delivery of the request finds the order as it was written, and CodeBuild answers the same token with the
    same build. Raises NotDoneError where CodeBuild refuses.
    """
    key, wait = f"staging/orders/{order}.json", wait_key(order)
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
        raise NotDoneError(
            f"CodeBuild started no build of {place.project}, and these archives are missing: {names}. It said: {error}"
        ) from error
    build = started["build"]["id"]
    print(json.dumps({"order": order, "build": build}))
    return build


def put_once(s3: S3Client, *, bucket: str, key: str, body: str) -> None:
    """Write an object unless it is there.

    Where another request for the key is under way S3 answers 409 ConditionalRequestConflict, and asks for another try
    (user guide, "How to prevent object overwrites with conditional writes"); boto3 makes none of its own.
    """
    for pause in (*CONFLICT_PAUSES, None):
        try:
            s3.put_object(Bucket=bucket, Key=key, Body=body.encode(), IfNoneMatch="*")
        except ClientError as error:
            if code_of(error) in ("PreconditionFailed", "412"):
                return
            if pause is None or code_of(error) not in ("ConditionalRequestConflict", "409"):
                raise
            time.sleep(pause)
        else:
            return


def _shown_archive(archive: Mapping[str, Any]) -> str:
    return f"{archive['model']}.{archive['digest']}"
