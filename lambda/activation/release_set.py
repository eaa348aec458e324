"""The release set that a custom resource names, and the archives that must exist for it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..shared.clients import Aws, keys_below, records_below
from ..shared.custom_resource import NotDoneError, name_list, read_properties
from ..shared.release_set import ReleaseSetGoneError, release_set_document
from .records import Note

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

UNKNOWN = "unknown"


@dataclass(frozen=True)
class Properties:
    """The custom resource's properties; see ``handler.py``."""

    release_set_bucket: str
    release_set_key: str
    archive_bucket: str
    archive_prefix: str
    record_path: str
    tags: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Properties:
        """Read them from an event. Raises NotDoneError with all that are missing; an older version set no ``Tags``."""
        needed = [name for name in cls.__dataclass_fields__ if name != "tags"]
        return cls(**read_properties(needed, given), tags=json.loads(given.get("Tags", "{}")))

    @property
    def token(self) -> str:
        """The release set's name in notes: the first characters of its key, the SHA-256 of its content."""
        return self.release_set_key.rpartition("/")[2][:16]

    @property
    def platform(self) -> str:
        """Triton release and GPU, the last part of the archives' prefix."""
        return self.archive_prefix.rstrip("/").rpartition("/")[2]

    @property
    def removed_path(self) -> str:
        """Where a moved record's value is kept when its model leaves the set; no endpoint begins with ``_``."""
        head, _, endpoint = self.record_path.rstrip("/").rpartition("/")
        return f"{head}/_removed/{endpoint}/"


@dataclass(frozen=True)
class ReleaseSet:
    """Model → digest (16 hexadecimal digits), model → commit if there is one, and whether S3 still has the set."""

    models: Mapping[str, str]
    commits: Mapping[str, str] = field(default_factory=dict)
    stored: bool = True

    def note(self, model: str, given: Note, *, before: str | None, platform: str) -> str:
        """The description of a record: JSON, far below the 1024 characters that SSM takes.

        No two are alike: a description that two versions have was left as it was by a later writer.
        """
        commit = self.commits.get(model, UNKNOWN) if given["digest"] == self.models.get(model) else UNKNOWN
        found = {"before": before, "platform": platform, "commit": commit, **given, "write": uuid.uuid4().hex[:12]}
        return json.dumps(found, separators=(",", ":"))


def read_release_set(s3: S3Client, properties: Properties) -> ReleaseSet:
    """The set that the properties name; one that an older version wrote has no commits.

    Raises ReleaseSetGoneError where the object is gone.
    """
    document = release_set_document(s3, bucket=properties.release_set_bucket, key=properties.release_set_key)
    return ReleaseSet(models=document["models"], commits=document.get("commits", {}))


def old_release_set(aws: Aws, properties: Properties) -> ReleaseSet:
    """The set that was active before; where its object is gone (staging buckets get cleaned), the records."""
    try:
        return read_release_set(aws.s3, properties)
    except ReleaseSetGoneError as error:
        print(json.dumps({"compared with the records instead": str(error)}))
        return ReleaseSet(records_below(aws.ssm, path=properties.record_path), stored=False)


def archives_of(models: Mapping[str, str]) -> set[str]:
    """The names of the archives of model → digest."""
    return {f"{model}.{digest}.tar.gz" for model, digest in models.items()}


def require_archives(s3: S3Client, properties: Properties, archives: Iterable[str]) -> None:
    """Raise NotDoneError unless every one of these archives exists under the prefix."""
    bucket, prefix = properties.archive_bucket, properties.archive_prefix
    wanted = set(archives)
    missing = sorted(prefix + archive for archive in wanted - keys_below(s3, bucket=bucket, prefix=prefix))
    if missing:
        raise NotDoneError(
            f"{len(missing)} of {len(wanted)} archives are not in s3://{bucket}: {name_list(missing)}. "
            "Build and publish the environment, then deploy again. (An archive that this checkout does not make is one "
            "that tritonstack rollback moved a record to: build it, or move the record to the deployed digest.)"
        )
