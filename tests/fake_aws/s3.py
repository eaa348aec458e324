"""Buckets in memory: objects, versions, conditional writes, multipart uploads, and failures that a test asks for."""

from __future__ import annotations

import datetime as dt
import json
import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from tests.fake_aws.responding import AwsError, Responding

PAGE = 3
"""Entries in a page of a list, so that paging is exercised by small sets."""

BucketContent = dict[str, bytes]
"""Key → content."""


@dataclass
class S3(Responding):
    """Amazon S3.

    Attributes:
        buckets: name → its objects.
        metadata: key → its user metadata.
        ages: key → hours since its last change.
        markers: (bucket, key) of delete markers.
        uploads: (bucket, key, upload id) of uploads that are neither completed nor aborted.
        writes: keys of the objects that were written, in order.
        deletes: keys of the objects that were deleted, in order.
        tags: bucket, or parameter of Systems Manager → its tags.
        missing_object: the error code for an object that is not there.
        denied: keys that S3 denies access to, there or not.
        undeletable: keys that S3 refuses to delete.
        busy: key → how often S3 responds SlowDown to its deletion.
        late_logs: access logs that still arrive, one just before each deletion of a bucket.
        before_put: called with the key before each conditional write: a place for a rival's.
        conflicts: how many conditional writes meet another in progress.
    """

    buckets: defaultdict[str, BucketContent] = field(default_factory=lambda: defaultdict(dict))
    metadata: dict[str, dict[str, str]] = field(default_factory=dict)
    ages: dict[str, float] = field(default_factory=dict)
    markers: list[tuple[str, str]] = field(default_factory=list)
    uploads: list[tuple[str, str, str]] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    deletes: list[str] = field(default_factory=list)
    tags: dict[str, dict[str, str]] = field(default_factory=dict)
    missing_object: str = "NoSuchKey"
    denied: set[str] = field(default_factory=set)
    undeletable: frozenset[str] = frozenset()
    busy: dict[str, int] = field(default_factory=dict)
    late_logs: int = 0
    before_put: Callable[[str], object] = lambda _key: None
    conflicts: int = 0
    _parts: dict[str, dict[int, bytes]] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def _found(self, bucket: str, key: str) -> bytes:
        if key in self.denied:
            raise AwsError("AccessDenied")
        if key not in self.buckets[bucket]:
            raise AwsError(self.missing_object)
        return self.buckets[bucket][key]

    def _HeadObject(self, Bucket: str, Key: str) -> dict[str, Any]:
        return {"ContentLength": len(self._found(Bucket, Key)), "Metadata": self.metadata.get(Key, {})}

    def _GetObject(self, Bucket: str, Key: str) -> dict[str, Any]:
        content = self._found(Bucket, Key)
        return {"Body": content, "ContentLength": len(content), "Metadata": self.metadata.get(Key, {})}

    def _ListObjectsV2(
        self, Bucket: str, Prefix: str = "", Delimiter: str = "", ContinuationToken: str = "0", **_: Any
    ) -> dict[str, Any]:
        now = dt.datetime.now(dt.UTC)
        keys = sorted(key for key in self.buckets[Bucket] if key.startswith(Prefix))
        if Delimiter:
            rests = [key.removeprefix(Prefix) for key in keys]
            folders = sorted({rest.partition(Delimiter)[0] + Delimiter for rest in rests if Delimiter in rest})
            keys = [f"{Prefix}{rest}" for rest in rests if Delimiter not in rest]
            entries: list[tuple[str, dict[str, Any]]] = [
                ("CommonPrefixes", {"Prefix": f"{Prefix}{folder}"}) for folder in folders
            ]
        else:
            entries = []
        for key in keys:
            modified = now - dt.timedelta(hours=self.ages.get(key, 0))
            entries.append(("Contents", {"Key": key, "Size": len(self.buckets[Bucket][key]), "LastModified": modified}))
        start = int(ContinuationToken)
        page: dict[str, Any] = {"IsTruncated": start + PAGE < len(entries)}
        for member, entry in entries[start : start + PAGE]:
            page.setdefault(member, []).append(entry)
        return page | ({"NextContinuationToken": str(start + PAGE)} if page["IsTruncated"] else {})

    def _ListObjectVersions(self, Bucket: str, KeyMarker: str = "", **_: Any) -> dict[str, Any]:
        objects = [(key, "Versions") for key in self.buckets[Bucket]]
        markers = [(key, "DeleteMarkers") for bucket, key in self.markers if bucket == Bucket]
        left = sorted(entry for entry in objects + markers if entry[0] > KeyMarker)
        page: dict[str, Any] = {"Versions": [], "DeleteMarkers": [], "IsTruncated": len(left) > PAGE}
        for key, kind in left[:PAGE]:
            page[kind].append({"Key": key, "VersionId": f"version-of-{key}"})
            page["NextKeyMarker"] = key
        return page

    def _PutObject(
        self,
        Bucket: str,
        Key: str,
        Body: Any = b"",
        IfNoneMatch: str = "",
        Metadata: dict[str, str] | None = None,
        **_: Any,
    ) -> dict[str, Any]:
        content = Body if isinstance(Body, bytes) else Body.encode() if isinstance(Body, str) else Body.read()
        self._write(Bucket, Key, content, conditional=IfNoneMatch == "*", metadata=Metadata or {})
        return {"ETag": '"whole"'}

    def _write(self, bucket: str, key: str, content: bytes, *, conditional: bool, metadata: dict[str, str]) -> None:
        if conditional:
            self.before_put(key)
        with self._lock:
            if conditional and self.conflicts:
                self.conflicts -= 1
                raise AwsError("ConditionalRequestConflict")
            if conditional and key in self.buckets[bucket]:
                raise AwsError("PreconditionFailed")
            self.buckets[bucket][key] = content
            self.metadata[key] = {name.lower(): value for name, value in metadata.items()}
            self.writes.append(key)

    def _CopyObject(self, Bucket: str, Key: str, CopySource: str | dict[str, str], **_: Any) -> dict[str, Any]:
        text = CopySource if isinstance(CopySource, str) else f"{CopySource['Bucket']}/{CopySource['Key']}"
        bucket, key = unquote(text).split("/", 1)
        self._write(Bucket, Key, self._found(bucket, key), conditional=False, metadata=self.metadata.get(key, {}))
        return {"CopyObjectResult": {"ETag": '"whole"'}}

    def _CreateMultipartUpload(
        self, Bucket: str, Key: str, Metadata: dict[str, str] | None = None, **_: Any
    ) -> dict[str, Any]:
        with self._lock:
            identity = f"upload-{len(self._parts)}"
            self._parts[identity] = {}
            self.uploads.append((Bucket, Key, identity))
            self.metadata[identity] = Metadata or {}
        return {"Bucket": Bucket, "Key": Key, "UploadId": identity}

    def _UploadPart(self, UploadId: str, PartNumber: int, Body: Any, **_: Any) -> dict[str, Any]:
        self._parts[UploadId][PartNumber] = Body if isinstance(Body, bytes) else Body.read()
        return {"ETag": f'"part-{PartNumber}"'}

    def _CompleteMultipartUpload(
        self, Bucket: str, Key: str, UploadId: str, MultipartUpload: dict[str, Any], IfNoneMatch: str = "", **_: Any
    ) -> dict[str, Any]:
        parts = self._parts[UploadId]
        numbers = [each["PartNumber"] for each in MultipartUpload["Parts"]]
        if numbers != sorted(parts) or any(
            each["ETag"] != f'"part-{each["PartNumber"]}"' for each in MultipartUpload["Parts"]
        ):
            raise AwsError("InvalidPart")
        content = b"".join(parts[number] for number in numbers)
        self._write(Bucket, Key, content, conditional=IfNoneMatch == "*", metadata=self.metadata[UploadId])
        self.uploads.remove((Bucket, Key, UploadId))
        return {"Bucket": Bucket, "Key": Key, "ETag": '"whole"'}

    def _ListMultipartUploads(self, Bucket: str, **_: Any) -> dict[str, Any]:
        return {"Uploads": [{"Key": key, "UploadId": id_} for bucket, key, id_ in self.uploads if bucket == Bucket]}

    def _AbortMultipartUpload(self, Bucket: str, Key: str, UploadId: str) -> dict[str, Any]:
        self.uploads.remove((Bucket, Key, UploadId))
        return {}

    def _DeleteObject(self, Bucket: str, Key: str) -> dict[str, Any]:
        self.buckets[Bucket].pop(Key, None)
        self.deletes.append(Key)
        return {}

    def _DeleteObjects(self, Bucket: str, Delete: dict[str, Any]) -> dict[str, Any]:
        errors = []
        for each in Delete["Objects"]:
            key, version = each["Key"], each.get("VersionId")
            if version not in (None, f"version-of-{key}"):
                raise AwsError("NoSuchVersion")
            if key in self.undeletable:
                errors.append({"Key": key, "Code": "AccessDenied"})
                continue
            if self.busy.get(key):
                self.busy[key] -= 1
                errors.append({"Key": key, "Code": "SlowDown", **({"VersionId": version} if version else {})})
                continue
            self.buckets[Bucket].pop(key, None)
            self.deletes.append(key)
            if version:
                self.markers = [entry for entry in self.markers if entry != (Bucket, key)]
        return {"Errors": errors}

    def _GetBucketTagging(self, Bucket: str) -> dict[str, Any]:
        if not self.tags.get(Bucket):
            raise AwsError("NoSuchTagSet" if Bucket in self.tags else "NoSuchBucket")
        return {"TagSet": [{"Key": key, "Value": value} for key, value in self.tags[Bucket].items()]}

    def _DeleteBucket(self, Bucket: str) -> dict[str, Any]:
        if self.late_logs:
            self.late_logs -= 1
            self.buckets[Bucket][f"log-{self.late_logs}"] = b""
        if self.buckets[Bucket] or any(bucket == Bucket for bucket, _ in self.markers):
            raise AwsError("BucketNotEmpty")
        if self.tags.pop(Bucket, None) is None:
            raise AwsError("NoSuchBucket")
        return {}


def release_set(models: dict[str, str]) -> bytes:
    """A release set as the construct writes it."""
    return json.dumps({"schema": 1, "models": models}).encode()
