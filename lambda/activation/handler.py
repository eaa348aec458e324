"""Two custom resources that put a release set into force.

``Custom::PublishedArchives`` stands before the endpoint: it fails while an archive of the set is missing, before
anything that serves is touched. ``Custom::ReleaseRecords`` stands after it: it makes each model's release record name
its current archive.

CloudFormation sends Create, Update and Delete. The properties of both name the release set as an S3 object
(``ReleaseSetBucket``, ``ReleaseSetKey``), the bucket and prefix of the archives (``ArchiveBucket``, ``ArchivePrefix``)
and the path of the records (``RecordPath``, with a trailing slash). A model's record is the SSM parameter
``<RecordPath><model>``; its value is the digest in the archive's name.

* A record never points at nothing: every archive of the new set must exist before any record is written.
* A record moves only if its model's digest changed between the old and the new properties, so that a deployment of
  something else leaves a record alone that was moved by hand since.
* Every step may be repeated: CloudFormation and Lambda both deliver an event more than once.

Standard library and boto3 only.
"""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_ssm.client import SSMClient

ARCHIVES_TYPE = "Custom::PublishedArchives"
SCHEMA = 1
NAMES_SHOWN = 10
"""Names in a message. CloudFormation takes at most 4 KiB of answer (user guide: custom resource response objects)."""
REASON_LENGTH = 2000
PARAMETERS_AT_ONCE = 10
"""The most that GetParameters and DeleteParameters take (Systems Manager API reference)."""
ANSWER_SECONDS = 30
RETRIES = Config(retries={"mode": "adaptive", "max_attempts": 10})
"""PutParameter is throttled at a few calls a second by default; the client paces itself."""
UNREADABLE = frozenset({"NoSuchKey", "NoSuchBucket", "404", "AccessDenied", "403"})
"""What S3 answers for an object that is gone: without permission to list, a missing object is a refusal."""


class ActivationError(Exception):
    """What keeps a release set from being activated, said so that it can be mended."""


@dataclass(frozen=True)
class Properties:
    """The custom resource's properties; see the module."""

    release_set_bucket: str
    release_set_key: str
    archive_bucket: str
    archive_prefix: str
    record_path: str

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Properties:
        """Read them from an event. Raises ActivationError with all that are missing."""
        names = {field: "".join(part.title() for part in field.split("_")) for field in cls.__dataclass_fields__}
        missing = [name for name in names.values() if not given.get(name)]
        if missing:
            raise ActivationError(f"properties missing: {', '.join(missing)}")
        return cls(**{field: str(given[name]) for field, name in names.items()})


def handler(event: dict[str, Any], context: Any) -> None:
    """Entry point: do what the event asks and answer CloudFormation, whatever happened."""
    try:
        print(json.dumps({name: event.get(name) for name in ("RequestType", "ResourceType", "ResourceProperties")}))
        data = activate(event, s3=boto3.client("s3", config=RETRIES), ssm=boto3.client("ssm", config=RETRIES))
        answer(event, status="SUCCESS", reason="", data=data, log_stream=context.log_stream_name)
    except Exception as error:  # noqa: BLE001 - without an answer CloudFormation waits until its time-out
        reason = str(error) if isinstance(error, ActivationError) else f"{type(error).__name__}: {error}"
        print(json.dumps({"failed": reason}))
        answer(event, status="FAILED", reason=reason, data={}, log_stream=context.log_stream_name)


def activate(event: Mapping[str, Any], *, s3: S3Client, ssm: SSMClient) -> dict[str, str]:
    """Do what one event asks.

    Returns:
        What was done to records, as the resource's attributes: ``Written`` and ``Deleted``, models in order.

    Raises:
        ActivationError: an archive is missing, or a release set is none.
    """
    properties = Properties.of(event["ResourceProperties"])
    if event["ResourceType"] == ARCHIVES_TYPE:
        if event["RequestType"] != "Delete":
            require_archives(s3, properties, read_release_set(s3, properties))
        return {}
    if event["RequestType"] == "Delete":
        models = sorted(current_records(ssm, path=properties.record_path))
        delete_records(ssm, path=properties.record_path, models=models)
        return _done(written=[], deleted=models)
    new = read_release_set(s3, properties)
    require_archives(s3, properties, new)
    old: Mapping[str, str] = {}
    if event["RequestType"] == "Update":
        old = old_release_set(s3, ssm, Properties.of(event["OldResourceProperties"]))
    written = write_records(
        ssm, path=properties.record_path, digests={name: new[name] for name in new if old.get(name) != new[name]}
    )
    gone = sorted(old.keys() - new.keys())
    delete_records(ssm, path=properties.record_path, models=gone)
    return _done(written=written, deleted=gone)


def _done(*, written: Sequence[str], deleted: Sequence[str]) -> dict[str, str]:
    print(json.dumps({"written": list(written), "deleted": list(deleted)}))
    return {"Written": shown(written), "Deleted": shown(deleted)}


def read_release_set(s3: S3Client, properties: Properties) -> dict[str, str]:
    """Model name → digest (16 hexadecimal digits). Raises ActivationError where the object is no release set."""
    place = f"s3://{properties.release_set_bucket}/{properties.release_set_key}"
    body = s3.get_object(Bucket=properties.release_set_bucket, Key=properties.release_set_key)["Body"].read()
    try:
        document = json.loads(body)
        schema, models = document["schema"], document["models"]
        sound = schema == SCHEMA and all(re.fullmatch(r"[0-9a-f]{16}", digest) for digest in models.values())
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ActivationError(f"{place} is no release set: {error!r}") from error
    if not sound:
        raise ActivationError(f"{place} is no release set of schema {SCHEMA}: {str(document)[:200]}")
    return dict(models)


def old_release_set(s3: S3Client, ssm: SSMClient, properties: Properties) -> dict[str, str]:
    """The set that was active before; where its object is gone (staging buckets get cleaned), what the records say."""
    try:
        return read_release_set(s3, properties)
    except ClientError as error:
        if error.response["Error"]["Code"] not in UNREADABLE:
            raise
        print(json.dumps({"old_release_set": "gone; compared with the records instead", "error": str(error)}))
        return current_records(ssm, path=properties.record_path)


def require_archives(s3: S3Client, properties: Properties, digests: Mapping[str, str]) -> None:
    """Raise ActivationError unless every archive of the set lies under the prefix."""
    pages = s3.get_paginator("list_objects_v2").paginate(
        Bucket=properties.archive_bucket, Prefix=properties.archive_prefix
    )
    there = {entry["Key"] for page in pages for entry in page.get("Contents", [])}
    wanted = {f"{properties.archive_prefix}{model}.{digest}.tar.gz" for model, digest in digests.items()}
    missing = sorted(wanted - there)
    if missing:
        raise ActivationError(
            f"{len(missing)} of {len(wanted)} archives are not in s3://{properties.archive_bucket}: {shown(missing)}. "
            "Build and publish the environment, then deploy again."
        )


def current_records(ssm: SSMClient, *, path: str) -> dict[str, str]:
    """The records under a path: model → digest."""
    pages = ssm.get_paginator("get_parameters_by_path").paginate(Path=path)
    return {entry["Name"].removeprefix(path): entry["Value"] for page in pages for entry in page["Parameters"]}


def write_records(ssm: SSMClient, *, path: str, digests: Mapping[str, str]) -> list[str]:
    """Write the records that do not say so already (a repeated event adds no history). Returns the models written."""
    written = []
    for models in batches(sorted(digests)):
        found = ssm.get_parameters(Names=[path + model for model in models])["Parameters"]
        values = {entry["Name"]: entry["Value"] for entry in found}
        for model in models:
            if values.get(path + model) != digests[model]:
                ssm.put_parameter(Name=path + model, Value=digests[model], Type="String", Overwrite=True)
                written.append(model)
    return written


def delete_records(ssm: SSMClient, *, path: str, models: Iterable[str]) -> None:
    """Delete records; those that are gone already are no error."""
    for batch in batches(sorted(models)):
        ssm.delete_parameters(Names=[path + model for model in batch])


def batches(items: Sequence[str]) -> Iterable[Sequence[str]]:
    """Slices of at most as many as one call takes."""
    return (items[start : start + PARAMETERS_AT_ONCE] for start in range(0, len(items), PARAMETERS_AT_ONCE))


def shown(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    more = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def answer(event: Mapping[str, Any], *, status: str, reason: str, data: Mapping[str, str], log_stream: str) -> None:
    """Tell CloudFormation the outcome by the presigned URL in the event.

    The physical id follows from the type and the record path and never changes: a changed one would make CloudFormation
    delete the records that were just written.
    """
    properties = event.get("ResourceProperties") or {}
    body = {
        "Status": status,
        "Reason": f"{reason[:REASON_LENGTH]} (log stream {log_stream})" if reason else "",
        "PhysicalResourceId": f"{event['ResourceType']}:{properties.get('RecordPath', 'unknown')}",
        "StackId": event["StackId"],
        "RequestId": event["RequestId"],
        "LogicalResourceId": event["LogicalResourceId"],
        "Data": dict(data),
    }
    request = urllib.request.Request(  # noqa: S310 - the URL comes from CloudFormation
        event["ResponseURL"], data=json.dumps(body).encode(), method="PUT", headers={"Content-Type": ""}
    )
    with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as response:  # noqa: S310
        print(json.dumps({"answered": status, "http": response.status}))
