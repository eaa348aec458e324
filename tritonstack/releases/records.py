"""Release records in SSM with their history, and the release set that an endpoint's stack deployed."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack import naming
from tritonstack.aws.session import Session, code_of
from tritonstack.client.releases import ModelRelease
from tritonstack.errors import WorkFailedError
from tritonstack.naming import Platform, release_parameter
from tritonstack.untrusted.foreign_text import parse_json

# A record's description is a JSON object, the note of the value's writer: ``lambda/activation`` writes it for
# deployments and their rollbacks, ``write_record`` for ``tritonstack rollback`` and ``tritonstack local dev``.


Writer = Literal["deployment", "restored", "rollback", "dev", "unknown"]
"""A deployment; CloudFormation, which undid one; ``tritonstack rollback``; ``tritonstack local dev``; or a writer that
left no note."""

_WRITERS: dict[str, Writer] = {writer: writer for writer in get_args(Writer)}
READERS = 8
"""How many records, or manifests, are read at once."""


@dataclass(frozen=True, kw_only=True)
class Version:
    """One value that a record had."""

    number: int  # counted by Systems Manager from 1
    digest: str  # the value
    time: dt.datetime  # when it was written, with its time zone
    writer: Writer  # who wrote it
    platform: str | None  # of the endpoint at that time (``24.09-t4``), None where no note has it
    commit: str  # where the model's inputs come from: 40 hexadecimal digits, ``uncommitted``, or ``unknown``


@dataclass(frozen=True, kw_only=True)
class Record:
    """A model's release record."""

    endpoint: str  # the endpoint's name in its environment
    model: str  # the model's name
    versions: tuple[Version, ...]  # newest first; none where the record is gone

    @property
    def digest(self) -> str | None:
        """The current value, None where there is no record."""
        return self.versions[0].digest if self.versions else None

    @property
    def digests(self) -> tuple[str, ...]:
        """Every value that it had, the one that was written last first, each once."""
        return tuple(dict.fromkeys(version.digest for version in self.versions))


def read_record(session: Session, *, environment: str, endpoint: str, model: str) -> Record:
    """One model's record with its history. Raises :class:`WorkFailedError` where SSM refuses."""
    return _read(session.client("ssm"), environment=environment, endpoint=endpoint, model=model)


def read_records(session: Session, *, environment: str, releases: Iterable[ModelRelease]) -> tuple[Record, ...]:
    """The records of these models, several at once, in their order. Raises :class:`WorkFailedError` as above."""
    ssm = session.client("ssm")

    def read(release: ModelRelease) -> Record:
        return _read(ssm, environment=environment, endpoint=release.endpoint, model=release.model)

    with ThreadPoolExecutor(READERS) as pool:
        return tuple(pool.map(read, releases))


def write_record(
    session: Session, record: Record, digest: str, *, environment: str, platform: str, writer: Writer = "rollback"
) -> None:
    """Move a record to a digest outside of a deployment. Raises :class:`WorkFailedError` where SSM refuses."""
    commits = [version.commit for version in record.versions if version.digest == digest]
    note = {
        "writer": writer,
        "digest": digest,
        "before": record.digest,
        "platform": platform,
        "commit": commits[0] if commits else "unknown",
    }
    name = release_parameter(environment=environment, endpoint=record.endpoint, model=record.model)
    text = json.dumps(note, separators=(",", ":"))
    try:
        session.client("ssm").put_parameter(Name=name, Value=digest, Description=text, Type="String", Overwrite=True)
    except (ClientError, BotoCoreError) as error:
        raise WorkFailedError(f"could not write the release record {name}: {error}") from error


def _read(ssm: Any, *, environment: str, endpoint: str, model: str) -> Record:
    name = release_parameter(environment=environment, endpoint=endpoint, model=model)
    rows: list[dict[str, Any]] = []
    try:
        for page in ssm.get_paginator("get_parameter_history").paginate(Name=name):
            rows += page["Parameters"]
    except (ClientError, BotoCoreError) as error:
        if code_of(error) != "ParameterNotFound":
            raise WorkFailedError(f"could not read the history of {name}: {error}") from error
    versions = sorted(map(_version, rows), key=lambda version: version.number, reverse=True)
    return Record(endpoint=endpoint, model=model, versions=tuple(versions))


def _version(row: dict[str, Any]) -> Version:
    note = _note(row.get("Description", ""), digest=row["Value"])
    return Version(
        number=row["Version"],
        digest=row["Value"],
        time=row["LastModifiedDate"],
        writer=_WRITERS.get(note.get("writer", ""), "unknown"),
        platform=note.get("platform"),
        commit=note.get("commit", "unknown"),
    )


def _note(text: str, *, digest: str) -> dict[str, str]:
    """A description as a note; empty where it is none, or of another value: a writer without one leaves the old."""
    try:
        note = parse_json(text)
    except ValueError:
        return {}
    if not isinstance(note, dict) or note.get("digest") != digest:
        return {}
    return {name: value for name, value in note.items() if isinstance(value, str)}


SCHEMA = 1
MODEL_TYPE, TARGET_TYPE = "AWS::SageMaker::Model", "AWS::ApplicationAutoScaling::ScalableTarget"


@dataclass(frozen=True, kw_only=True)
class DeployedSet:
    """An endpoint's release set as its stack has it."""

    endpoint: str  # its name in the environment
    stack: str  # the stack's name
    status: str  # the stack's
    platform: Platform  # what the endpoint's archives are for, as keys spell it (``24.09-t4``)
    multi_model: bool  # whether the endpoint serves many archives
    models: Mapping[str, str]  # model → digest; none where the set is gone
    # why the set cannot be read, with bucket and key: the bootstrap bucket's old assets are deleted, as by a lifecycle
    # rule; None where it can
    gone: str | None = None
    variants: Mapping[str, str] = field(default_factory=dict)  # model → the variant that serves it, of several variants
    # least and most instances, of each variant that is scaled
    scaled: tuple[tuple[int, int], ...] = ()

    @property
    def in_progress(self) -> bool:
        """Whether a deployment is under way, whose set this may be already."""
        return self.status.endswith("_IN_PROGRESS")


def deployed_set(session: Session, *, environment: str, endpoint: str) -> DeployedSet | None:
    """The deployed release set of an endpoint; None without a stack, or with one that serves nothing.

    A release set that is gone from the bootstrap bucket is no error here: what else the stack has is enough for most.
    Raises :class:`WorkFailedError` where AWS refuses, or the stack is none of ours.
    """
    stack = naming.serving_stack(environment=environment, endpoint=endpoint)
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
    try:
        resources = (parse_json(template) if isinstance(template, str) else template)["Resources"]
        records = _only(resources, naming.RECORDS_TYPE)
        bucket, key, prefix = (records[name] for name in ("ReleaseSetBucket", "ReleaseSetKey", "ArchivePrefix"))
        platform = naming.platform_of_prefix(prefix)
        modes = [each["Properties"]["PrimaryContainer"].get("Mode") for each in _of_type(resources, MODEL_TYPE)]
        multi_model = modes[0] == "MultiModel"
        variants = parse_json(_only(resources, naming.VERIFIED_TYPE).get("Variants", "{}"))
        targets = [each["Properties"] for each in _of_type(resources, TARGET_TYPE)]
        scaled = tuple((each["MinCapacity"], each["MaxCapacity"]) for each in targets)
    except (LookupError, AttributeError, TypeError, ValueError) as error:
        raise WorkFailedError(f"the stack {stack} is no serving stack of this version: {error!r}") from error
    models, gone = _release_set(session, bucket=bucket, key=key)
    return DeployedSet(
        endpoint=endpoint,
        stack=stack,
        status=status,
        platform=platform,
        multi_model=multi_model,
        models=models,
        gone=gone,
        variants=variants,
        scaled=scaled,
    )


def _of_type(resources: Mapping[str, Any], kind: str) -> list[Mapping[str, Any]]:
    return [each for each in resources.values() if each["Type"] == kind]


def _only(resources: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """The properties of the one resource of a type."""
    [found] = [each["Properties"] for each in _of_type(resources, kind)] or [{}]
    properties: Mapping[str, Any] = found
    return properties


GONE = frozenset({"NoSuchKey", "NoSuchBucket", "AccessDenied"})
"""S3's codes for an object that is gone: AccessDenied to those who may not list its bucket (GetObject, Permissions)."""


def _release_set(session: Session, *, bucket: str, key: str) -> tuple[Mapping[str, str], str | None]:
    """Model → digest, and why the set cannot be read, or None."""
    try:
        body: bytes = session.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
    except (ClientError, BotoCoreError) as error:
        if code_of(error) in GONE:
            return {}, f"the deployed release set s3://{bucket}/{key} is gone or may not be read ({code_of(error)})"
        raise WorkFailedError(f"could not read the deployed release set s3://{bucket}/{key}: {error}") from error
    try:
        document: dict[str, Any] = parse_json(body)
        sound = document["schema"] == SCHEMA and isinstance(document["models"], dict)
    except (ValueError, KeyError, TypeError):
        sound = False
    if not sound:
        raise WorkFailedError(f"s3://{bucket}/{key} is no release set of schema {SCHEMA}: {body[:100]!r}")
    return document["models"], None


def uploads_again(*, environment: str, endpoint: str) -> str:
    """The command that puts the release set of an endpoint into the bootstrap bucket again."""
    return f"check out the deployed commit, then npx cdk deploy '{environment}/{naming.serving_part(endpoint)}'"
