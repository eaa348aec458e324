"""Two custom resources that put a release set into force.

``Custom::PublishedArchives`` stands before the endpoint: it fails while an archive is missing, before anything that
serves is touched. ``Custom::ReleaseRecords`` stands after it: it makes each model's release record name its archive.

The properties of both name the release set as an S3 object (``ReleaseSetBucket``, ``ReleaseSetKey``), the archives'
bucket and prefix (``ArchiveBucket``, ``ArchivePrefix``) and the path of the records (``RecordPath``, with a trailing
slash). A model's record is the SSM parameter ``<RecordPath><model>``; its value is the digest in the archive's name,
its description a *note*: who wrote it, over which value, with which set.

* A record never points at nothing: every archive of the new set must exist before any record is written.
* A record moves only if its model's digest changed between the old and the new properties, so that a deployment of
  something else leaves a record alone that ``tritonstack rollback`` moved since.
* CloudFormation undoes an update by an Update with the sets exchanged. Then a record gets the value back that it had
  before, as its note tells, and not the old set's. Whether an Update is one, the stack's status says.
* Every step may be repeated: CloudFormation and Lambda both deliver an event more than once.

Standard library and boto3 only.
"""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_cloudformation.client import CloudFormationClient
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_ssm.client import SSMClient

ARCHIVES_TYPE = "Custom::PublishedArchives"
SCHEMA = 1
UNKNOWN = "unknown"
NAMES_SHOWN, REASON_LENGTH = 10, 2000
"""Names in a message. CloudFormation takes at most 4 KiB of answer (user guide: custom resource response objects)."""
PARAMETERS_AT_ONCE = 10
"""The most that GetParameters and DeleteParameters take (Systems Manager API reference)."""
ANSWER_SECONDS = 30
RETRIES = Config(retries={"mode": "adaptive", "max_attempts": 10})
"""PutParameter is throttled at a few calls a second by default; the client paces itself."""
UNREADABLE = frozenset({"NoSuchKey", "NoSuchBucket", "404", "AccessDenied", "403"})
"""What S3 answers for an object that is gone: without permission to list, a missing object is a refusal."""

Note = Mapping[str, Any]
"""A record's description: ``writer`` (deployment, restored, rollback), ``digest`` (the value that it came with: a later
writer may leave a description as it is), ``before``, ``platform``, ``commit``; of a deployment also ``set`` and
``over``, the tokens of its set and of the set that it replaced."""


class ActivationError(Exception):
    """What keeps a release set from being activated, said so that it can be mended."""


@dataclass(frozen=True)
class Aws:
    """The services that the function talks to."""

    s3: S3Client
    ssm: SSMClient
    cloudformation: CloudFormationClient


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

    @property
    def token(self) -> str:
        """What stands for the release set in notes: the first characters of its key, the SHA-256 of its content."""
        return self.release_set_key.rpartition("/")[2][:16]

    @property
    def platform(self) -> str:
        """Triton release and GPU, as the archives' prefix ends."""
        return self.archive_prefix.rstrip("/").rpartition("/")[2]

    @property
    def removed_path(self) -> str:
        """Where a moved record's value is kept when its model leaves the set; no endpoint begins with ``_``."""
        head, _, endpoint = self.record_path.rstrip("/").rpartition("/")
        return f"{head}/_removed/{endpoint}/"


@dataclass(frozen=True)
class ReleaseSet:
    """Model → digest (16 hexadecimal digits), model → commit as far as synthesis told, and whether S3 still has it."""

    models: Mapping[str, str]
    commits: Mapping[str, str] = field(default_factory=dict)
    stored: bool = True

    def note(self, model: str, told: Note, *, before: str | None, platform: str) -> str:
        """The description of a record: JSON, far below the 1024 characters that SSM takes."""
        commit = self.commits.get(model, UNKNOWN) if told["digest"] == self.models.get(model) else UNKNOWN
        return json.dumps({"before": before, "platform": platform, "commit": commit, **told}, separators=(",", ":"))


def handler(event: dict[str, Any], context: Any) -> None:
    """Entry point: do what the event asks and answer CloudFormation, whatever happened."""
    try:
        print(json.dumps({name: event.get(name) for name in ("RequestType", "ResourceType", "ResourceProperties")}))
        services = ("s3", "ssm", "cloudformation")
        data = activate(event, Aws(*(boto3.client(service, config=RETRIES) for service in services)))
        answer(event, status="SUCCESS", reason="", data=data, log_stream=context.log_stream_name)
    except Exception as error:  # noqa: BLE001 - without an answer CloudFormation waits until its time-out
        reason = str(error) if isinstance(error, ActivationError) else f"{type(error).__name__}: {error}"
        print(json.dumps({"failed": reason}))
        answer(event, status="FAILED", reason=reason, data={}, log_stream=context.log_stream_name)


def activate(event: Mapping[str, Any], aws: Aws) -> dict[str, str]:
    """Do what one event asks. Returns the resource's attributes: the models of ``Written`` and ``Deleted`` records.

    Raises ActivationError: an archive is missing, or a release set is none.
    """
    properties = Properties.of(event["ResourceProperties"])
    if event["ResourceType"] == ARCHIVES_TYPE:
        if event["RequestType"] != "Delete":
            check_archives(event, aws, properties)
        return {}
    if event["RequestType"] == "Delete":
        models = sorted(records_below(aws.ssm, path=properties.record_path))
        delete(aws.ssm, path=properties.record_path, models=models)
        delete(aws.ssm, path=properties.removed_path, models=records_below(aws.ssm, path=properties.removed_path))
        return _done(written=[], deleted=models)
    replaced = Properties.of(event["OldResourceProperties"]) if event["RequestType"] == "Update" else None
    if replaced and rolls_back(event, aws.cloudformation):
        return restore(aws, previous=properties, failed=replaced)
    return deploy(aws, properties, replaced)


def rolls_back(event: Mapping[str, Any], cloudformation: CloudFormationClient) -> bool:
    """Whether CloudFormation is undoing an update of the event's stack; the event itself does not tell."""
    stacks = cloudformation.describe_stacks(StackName=event["StackId"])["Stacks"]
    return [stack["StackStatus"] for stack in stacks] == ["UPDATE_ROLLBACK_IN_PROGRESS"]


def deploy(aws: Aws, properties: Properties, replaced: Properties | None) -> dict[str, str]:
    """Move the records of models whose digest changed, delete those of models that left the set."""
    new = read_release_set(aws.s3, properties)
    require_archives(aws.s3, properties, archives_of(new.models))
    old, over = (old_release_set(aws, replaced), replaced.token) if replaced else (ReleaseSet({}), None)
    moving = {name: digest for name, digest in new.models.items() if old.models.get(name) != digest}
    gone = sorted(old.models.keys() - new.models.keys())
    keep_removed(aws.ssm, properties, {name: old.models[name] for name in gone}, over=over)
    values = values_of(aws.ssm, properties.record_path, moving)
    written = []
    for name, digest in sorted(moving.items()):
        if values.get(name) == digest:
            continue  # a repeated event; or it was moved there before, and then a rollback leaves it: so its note says
        told: Note = {"writer": "deployment", "digest": digest, "set": properties.token, "over": over}
        note = new.note(name, told, before=values.get(name), platform=properties.platform)
        put(aws.ssm, properties.record_path + name, digest, note)
        written.append(name)
    delete(aws.ssm, path=properties.record_path, models=gone)
    return _done(written=written, deleted=gone)


def restore(aws: Aws, *, previous: Properties, failed: Properties) -> dict[str, str]:
    """Give every record that the failed deployment moved, made or deleted the value back that it had before.

    Nothing is looked for in the bucket: what was in force before is the best that is left.
    """
    path = previous.record_path
    back_to, undone = old_release_set(aws, previous), old_release_set(aws, failed)
    changed = {name for name, digest in undone.models.items() if back_to.models.get(name) != digest}
    if not (back_to.stored and undone.stored):
        changed = set(records_below(aws.ssm, path=path))  # their notes tell which of them moved
    written, deleted = [], []
    for model in sorted(changed):
        notes = list(notes_of(aws.ssm, path + model))
        found, value = value_before(notes, previous=previous.token, failed=failed.token)
        if value is None and back_to.stored:
            value = back_to.models.get(model)  # it had left the set in between, or its record was lost before
        if found and value is None:
            deleted.append(model)
        elif found and value is not None and value != notes[0]["digest"]:
            earlier = next((note for note in notes[1:] if note.get("digest") == value), {})
            told = {name: earlier[name] for name in ("platform", "commit") if name in earlier}
            told |= {"writer": "restored", "digest": value}
            note = back_to.note(model, told, before=notes[0]["digest"], platform=previous.platform)
            put(aws.ssm, path + model, value, note)
            written.append(model)
    delete(aws.ssm, path=path, models=deleted)
    written += bring_back(aws.ssm, previous, back_to, left=sorted(back_to.models.keys() - undone.models.keys()))
    return _done(written=sorted(written), deleted=deleted)


def value_before(notes: Iterable[Note], *, previous: str, failed: str) -> tuple[bool, str | None]:
    """What a record held before the deployment of ``failed``, which leads back to the set ``previous``.

    ``notes`` come newest first, ``previous`` and ``failed`` are tokens of sets. Usually the newest note tells. Where a
    failed update was kept (``--no-rollback``) and others followed, the way leads back through the notes of all. Returns
    whether a deployment since ``previous`` wrote the record, and the value before it (None: there was no record).
    """
    found, value, at = False, None, failed
    for note in notes:
        ours = note.get("writer") == "deployment" and note["set"] != previous
        if not ours or (note["set"] != at and note["over"] != previous):
            break
        found, value, at = True, note["before"], note["over"]
        if at == previous:
            break
    return found, value


def keep_removed(ssm: SSMClient, properties: Properties, gone: Mapping[str, str], *, over: str | None) -> None:
    """Keep the values of records that are about to be deleted and that the old set does not tell: those moved since.

    What earlier deployments kept goes: it can no longer be rolled back to.
    """
    path, mark = properties.removed_path, f"{properties.token}:{over}"
    values = values_of(ssm, properties.record_path, gone)
    kept = records_below(ssm, path=path)
    delete(ssm, path=path, models=[name for name in kept if name in values or not kept[name].endswith(mark)])
    for name in values:
        if values[name] != gone[name]:
            put(ssm, path + name, f"{values[name]} {mark}", "A release record's value before its model left the set")


def bring_back(ssm: SSMClient, previous: Properties, back_to: ReleaseSet, *, left: Sequence[str]) -> list[str]:
    """Write the records of models that had left the set, where they are gone. Returns the models written."""
    there, kept = (values_of(ssm, path, left) for path in (previous.record_path, previous.removed_path))
    missing = [name for name in left if name not in there]
    for name in missing:
        digest = kept[name].split()[0] if name in kept else back_to.models[name]
        note = back_to.note(name, {"writer": "restored", "digest": digest}, before=None, platform=previous.platform)
        put(ssm, previous.record_path + name, digest, note)
    return missing


def _done(**done: Sequence[str]) -> dict[str, str]:
    print(json.dumps(done))
    return {what.title(): shown(models) for what, models in done.items()}


def read_release_set(s3: S3Client, properties: Properties) -> ReleaseSet:
    """The set that the properties name. Raises ActivationError where the object is no release set."""
    place = f"s3://{properties.release_set_bucket}/{properties.release_set_key}"
    body = s3.get_object(Bucket=properties.release_set_bucket, Key=properties.release_set_key)["Body"].read()
    try:
        document = json.loads(body)
        schema, models = document["schema"], document["models"]
        commits = dict(document.get("commits", {}))  # a set that an older version wrote has none
        sound = schema == SCHEMA and all(re.fullmatch(r"[0-9a-f]{16}", digest) for digest in models.values())
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ActivationError(f"{place} is no release set: {error!r}") from error
    if not sound:
        raise ActivationError(f"{place} is no release set of schema {SCHEMA}: {str(document)[:200]}")
    return ReleaseSet(models=models, commits=commits)


def old_release_set(aws: Aws, properties: Properties) -> ReleaseSet:
    """The set that was active before; where its object is gone (staging buckets get cleaned), what the records say."""
    try:
        return read_release_set(aws.s3, properties)
    except ClientError as error:
        if error.response["Error"]["Code"] not in UNREADABLE:
            raise
        print(json.dumps({"release_set": "gone; compared with the records instead", "error": str(error)}))
        return ReleaseSet(records_below(aws.ssm, path=properties.record_path), stored=False)


def check_archives(event: Mapping[str, Any], aws: Aws, properties: Properties) -> None:
    """Raise ActivationError while something is missing that is in force after the deployment.

    That is the new set; and where the platform changes, the archives of records that the deployment leaves alone and
    that were moved since: the new fleet looks for them under its own prefix. A rollback is never held up.
    """
    new = read_release_set(aws.s3, properties)
    wanted = archives_of(new.models)
    if event["RequestType"] == "Update":
        replaced = Properties.of(event["OldResourceProperties"])
        if replaced.archive_prefix != properties.archive_prefix:
            old, records = old_release_set(aws, replaced), records_below(aws.ssm, path=properties.record_path)
            staying = [name for name in new.models if new.models[name] == old.models.get(name)]
            wanted |= archives_of({name: records[name] for name in staying if name in records})
    try:
        require_archives(aws.s3, properties, wanted)
    except ActivationError as error:
        if event["RequestType"] != "Update" or not rolls_back(event, aws.cloudformation):
            raise
        print(json.dumps({"rolling back without": str(error)}))


def archives_of(models: Mapping[str, str]) -> set[str]:
    """The names of the archives of model → digest."""
    return {f"{model}.{digest}.tar.gz" for model, digest in models.items()}


def require_archives(s3: S3Client, properties: Properties, archives: Iterable[str]) -> None:
    """Raise ActivationError unless every one of these archives lies under the prefix."""
    bucket, prefix = properties.archive_bucket, properties.archive_prefix
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    there = {entry["Key"] for page in pages for entry in page.get("Contents", [])}
    wanted = {prefix + archive for archive in archives}
    missing = sorted(wanted - there)
    if missing:
        raise ActivationError(
            f"{len(missing)} of {len(wanted)} archives are not in s3://{bucket}: {shown(missing)}. "
            "Build and publish the environment, then deploy again. (An archive that this checkout does not make is one "
            "that tritonstack rollback moved a record to: build it, or move the record to the deployed digest.)"
        )


def records_below(ssm: SSMClient, *, path: str) -> dict[str, str]:
    """The parameters under a path: model → value."""
    pages = ssm.get_paginator("get_parameters_by_path").paginate(Path=path)
    return {entry["Name"].removeprefix(path): entry["Value"] for page in pages for entry in page["Parameters"]}


def values_of(ssm: SSMClient, path: str, models: Iterable[str]) -> dict[str, str]:
    """The parameters of these models under a path, as far as there are any: model → value."""
    answers = (ssm.get_parameters(Names=[path + model for model in batch]) for batch in batches(sorted(models)))
    return {entry["Name"].removeprefix(path): entry["Value"] for each in answers for entry in each["Parameters"]}


def notes_of(ssm: SSMClient, name: str) -> Iterator[Note]:
    """The notes of a record's versions, newest first; empty for a version whose writer left none. None: no record."""
    try:
        pages = list(ssm.get_paginator("get_parameter_history").paginate(Name=name))
    except ssm.exceptions.ParameterNotFound:
        return
    versions = [version for page in pages for version in page["Parameters"]]
    for version in sorted(versions, key=lambda version: version["Version"], reverse=True):
        try:
            note = json.loads(version.get("Description", ""))
            wanted = {"writer", "digest", "before"} | ({"set", "over"} if note["writer"] == "deployment" else set())
            yield note if wanted <= note.keys() and note["digest"] == version["Value"] else {}
        except (ValueError, KeyError, TypeError, AttributeError):
            yield {}


def put(ssm: SSMClient, name: str, value: str, description: str) -> None:
    """Write one parameter."""
    ssm.put_parameter(Name=name, Value=value, Description=description, Type="String", Overwrite=True)


def delete(ssm: SSMClient, *, path: str, models: Iterable[str]) -> None:
    """Delete parameters; those that are gone already are no error."""
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
