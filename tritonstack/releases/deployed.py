"""What is deployed of an endpoint, read from its stack: never from files, which may be ahead of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.aws_session import Session
from tritonstack.errors import WorkFailedError
from tritonstack.models.bucket import code_of
from tritonstack.naming import Platform

SCHEMA = 1
RECORDS_TYPE, MODEL_TYPE = "Custom::ReleaseRecords", "AWS::SageMaker::Model"


@dataclass(frozen=True, kw_only=True)
class DeployedSet:
    """An endpoint's release set as its stack has it.

    Attributes:
        endpoint: its name in the environment.
        stack: the stack's name.
        status: the stack's.
        platform: what the endpoint's archives are for, as keys spell it (``24.09-t4``).
        multi_model: whether the endpoint serves many archives.
        models: model → digest.
        commits: model → commit, for as many as synthesis told.
    """

    endpoint: str
    stack: str
    status: str
    platform: Platform
    multi_model: bool
    models: Mapping[str, str]
    commits: Mapping[str, str]

    @property
    def in_progress(self) -> bool:
        """Whether a deployment is under way, whose set this may be already."""
        return self.status.endswith("_IN_PROGRESS")


def stack_name(*, environment: str, endpoint: str) -> str:
    """The serving stack of an endpoint."""
    return f"{environment}-serving-{endpoint}"


def deployed_set(session: Session, *, environment: str, endpoint: str) -> DeployedSet | None:
    """What is deployed of an endpoint, or None where it has no stack, or one that serves nothing.

    Raises :class:`WorkFailedError` where AWS refuses, or the stack is none of ours.
    """
    stack = stack_name(environment=environment, endpoint=endpoint)
    cloudformation = session.client("cloudformation")
    try:
        status = cloudformation.describe_stacks(StackName=stack)["Stacks"][0]["StackStatus"]
        template = cloudformation.get_template(StackName=stack)["TemplateBody"]
    except (ClientError, BotoCoreError) as error:
        if code_of(error) == "ValidationError" and "does not exist" in str(error):
            return None
        raise WorkFailedError(f"could not read the stack {stack}: {error}") from error
    if status in ("DELETE_COMPLETE", "ROLLBACK_COMPLETE", "REVIEW_IN_PROGRESS"):
        return None
    resources = (json.loads(template) if isinstance(template, str) else template)["Resources"]
    try:
        told = _only(resources, RECORDS_TYPE)
        bucket, key, prefix = (told[name] for name in ("ReleaseSetBucket", "ReleaseSetKey", "ArchivePrefix"))
        release, _, gpu = prefix.rstrip("/").rpartition("/")[2].partition("-")
        container = _only(resources, MODEL_TYPE)["PrimaryContainer"]
    except (LookupError, AttributeError, TypeError) as error:
        raise WorkFailedError(f"the stack {stack} is no serving stack of this version: {error!r}") from error
    document = _release_set(session, bucket=bucket, key=key)
    return DeployedSet(
        endpoint=endpoint,
        stack=stack,
        status=status,
        platform=Platform(release=release, gpu=gpu),
        multi_model=container.get("Mode") == "MultiModel",
        models=document["models"],
        commits=document.get("commits", {}),
    )


def _only(resources: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """The properties of the one resource of a type."""
    [found] = [each["Properties"] for each in resources.values() if each["Type"] == kind] or [{}]
    properties: Mapping[str, Any] = found
    return properties


def _release_set(session: Session, *, bucket: str, key: str) -> dict[str, Any]:
    try:
        body: bytes = session.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
    except (ClientError, BotoCoreError) as error:
        raise WorkFailedError(f"could not read the deployed release set s3://{bucket}/{key}: {error}") from error
    try:
        document: dict[str, Any] = json.loads(body)
        sound = document["schema"] == SCHEMA and isinstance(document["models"], dict)
    except (ValueError, KeyError, TypeError):
        sound = False
    if not sound:
        raise WorkFailedError(f"s3://{bucket}/{key} is no release set of schema {SCHEMA}: {body[:100]!r}")
    return document
