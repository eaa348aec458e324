"""The artifact bucket: found through its parameter, written to once for each key."""

from __future__ import annotations

import contextlib
import datetime as dt
import math
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.aws.session import Session, code_of, stack_value
from tritonstack.errors import WorkFailedError
from tritonstack.naming import (
    ARCHIVES,
    ArchiveName,
    Platform,
    archive_key,
    artifact_parameter,
    client_files_folder,
    manifest_key,
    stored_archive,
)

if TYPE_CHECKING:
    from tritonstack.models.manifest import Manifest

PART_BYTES = 16 << 20
"""Objects above this size are sent in parts of at least it."""

MOST_PARTS = 10_000  # of one multipart upload: Amazon S3 quotas
_UPLOADS = 4
_ABSENT = {"404", "NoSuchKey", "NotFound"}
_REFUSED = {"403", "AccessDenied", "Forbidden"}
_LOST = {"PreconditionFailed", "412"}
_CONFLICT = {"ConditionalRequestConflict", "409"}
_CONFLICT_PAUSES = (0.2, 0.4, 0.8, 1.6)

Sent = Callable[[int], None]
"""Called with the number of bytes sent since the last call."""


@dataclass(frozen=True, kw_only=True)
class StoredObject:
    """An object in the bucket: its size and the metadata that its writer gave it."""

    bytes: int
    metadata: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, order=True)
class Place:
    """An endpoint's platform, below which its archives are stored."""

    endpoint: str
    platform: Platform

    def archive(self, name: ArchiveName) -> str:
        """The key of an archive, which commits it."""
        return archive_key(endpoint=self.endpoint, platform=self.platform, archive=name)

    def manifest(self, name: ArchiveName) -> str:
        return manifest_key(endpoint=self.endpoint, platform=self.platform, archive=name)

    def client_file(self, name: ArchiveName, file: str) -> str:
        """The key of one of an archive's client files."""
        return f"{self.client_folder(name)}/{file}"

    def client_folder(self, name: ArchiveName) -> str:
        """Where an archive's client files lie, without a trailing slash."""
        return client_files_folder(endpoint=self.endpoint, platform=self.platform, archive=name)


@dataclass(frozen=True, kw_only=True)
class StoredArchive:
    name: ArchiveName
    place: Place
    bytes: int
    modified: dt.datetime


def belongs(manifest: Manifest, stored: StoredObject) -> bool:
    """Whether a manifest belongs to a stored archive; by size alone where the object has no SHA-256."""
    digest = stored.metadata.get("sha256")
    return manifest.archive.bytes == stored.bytes and digest in (None, manifest.archive.sha256)


class ArtifactBucket:
    """One environment's bucket. Every method raises :class:`WorkFailedError` where AWS refuses or cannot be reached."""

    def __init__(self, *, environment: str, session: Session) -> None:
        """Reads the bucket's name; raises :class:`InputError` where the environment's artifacts are not deployed."""
        self.s3 = session.client("s3")
        parameter = artifact_parameter(environment=environment, value="bucket-name")
        self.name = stack_value(session, parameter, stack=f"{environment}/artifacts")

    def look(self, key: str) -> StoredObject | None:
        """What is under ``key``, without its content; None where there is none."""
        try:
            answer = self.s3.head_object(Bucket=self.name, Key=key)
        except (ClientError, BotoCoreError) as error:
            if self._is_absent(key, error):
                return None
            raise self._failed("look for", key, self._with_its_code(key, error)) from error
        return StoredObject(bytes=answer["ContentLength"], metadata=answer.get("Metadata", {}))

    def read(self, key: str) -> bytes | None:
        """A small object's content; None where nothing is under ``key``."""
        try:
            content: bytes = self.s3.get_object(Bucket=self.name, Key=key)["Body"].read()
        except (ClientError, BotoCoreError) as error:
            if self._is_absent(key, error):
                return None
            raise self._failed("read", key, error) from error
        return content

    def fetch(self, key: str, target: Path, *, most_bytes: int) -> bool:
        """Write an object's content into a new file, streamed; False where nothing is under ``key``.

        An object of more than ``most_bytes`` is refused before it is read.
        """
        try:
            answer = self.s3.get_object(Bucket=self.name, Key=key)
            if answer["ContentLength"] > most_bytes:
                size = answer["ContentLength"]
                raise WorkFailedError(f"s3://{self.name}/{key} has {size:,} bytes; {most_bytes:,} are allowed")
            with target.open("xb") as stream:
                shutil.copyfileobj(answer["Body"], stream, 1 << 20)
        except (ClientError, BotoCoreError) as error:
            if self._is_absent(key, error):
                return False
            raise self._failed("read", key, error) from error
        return True

    def put(self, key: str, content: bytes) -> None:
        """Write a small object, whatever is there."""
        with self._naming("write", key):
            self.s3.put_object(Bucket=self.name, Key=key, Body=content)

    def put_once(
        self,
        key: str,
        source: Path | bytes,
        *,
        metadata: Mapping[str, str] | None = None,
        sent: Sent = lambda _bytes: None,
    ) -> bool:
        """Write an object unless one is there (``If-None-Match: *``); False if another was first.

        A file is streamed, in parts if it is large; memory does not depend on its size. ``metadata`` goes with it.
        """
        metadata = dict(metadata or {})
        size = source.stat().st_size if isinstance(source, Path) else len(source)

        def write() -> None:
            if isinstance(source, Path) and size > PART_BYTES:
                self._put_parts(key, metadata, source, size=size, sent=sent)
                return
            with source.open("rb") if isinstance(source, Path) else contextlib.nullcontext(source) as body:
                self.s3.put_object(Bucket=self.name, Key=key, Metadata=metadata, Body=body, IfNoneMatch="*")
            sent(size)

        with self._naming("write", key):
            return written_once(write)

    def keys(self, prefix: str) -> Iterator[dict[str, Any]]:
        """Every object below ``prefix``: dicts with Key, Size, LastModified."""
        with self._naming("list", prefix):
            for page in self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=prefix):
                yield from page.get("Contents", ())

    def archives(self) -> Iterator[StoredArchive]:
        """Every archive; the GPU of its place is in lower case, as in keys."""
        for row in self.keys(ARCHIVES):
            found = stored_archive(row["Key"])
            if found is not None:
                endpoint, platform, name = found
                place = Place(endpoint=endpoint, platform=platform)
                yield StoredArchive(name=name, place=place, bytes=row["Size"], modified=row["LastModified"])

    def delete(self, keys: list[str]) -> None:
        """Delete objects, in the order given (older versions stay until they expire)."""
        for start in range(0, len(keys), 1000):
            objects = [{"Key": key} for key in keys[start : start + 1000]]
            with self._naming("delete", objects[0]["Key"]):
                answer = self.s3.delete_objects(Bucket=self.name, Delete={"Objects": objects, "Quiet": True})
            if answer.get("Errors"):
                first = answer["Errors"][0]
                raise WorkFailedError(f"s3://{self.name}/{first['Key']} was not deleted: {first.get('Message')}")

    def _is_absent(self, key: str, error: Exception) -> bool:
        """Whether an error means that nothing is under ``key``.

        S3 reports a missing object as 404 only to principals that may list; whether a permission to list below a prefix
        counts is not documented. So a 403 is checked against the list.
        """
        if code_of(error) not in _REFUSED:
            return code_of(error) in _ABSENT
        try:
            listed = self.s3.list_objects_v2(Bucket=self.name, Prefix=key, MaxKeys=1).get("Contents", [])
        except (ClientError, BotoCoreError):
            return False  # the refusal itself is what the user has to hear
        return not any(row["Key"] == key for row in listed)

    def _with_its_code(self, key: str, error: Exception) -> Exception:
        """A HeadObject's error with S3's own code: its answer has no body, and is 400 for expired credentials."""
        if code_of(error) != "400":
            return error
        try:
            self.s3.list_objects_v2(Bucket=self.name, Prefix=key, MaxKeys=1)
        except (ClientError, BotoCoreError) as listing_error:
            return listing_error
        return error

    def write_parts(
        self,
        key: str,
        metadata: Mapping[str, str],
        *,
        parts: int,
        at_once: int,
        write: Callable[[Mapping[str, Any]], Mapping[str, Any]],
        **options: str,
    ) -> None:
        """A multipart upload unless an object is under ``key``.

        ``write`` gets a part's Bucket, Key, UploadId and PartNumber, sends it, and returns its ETag and checksum.
        ``options``: of the upload.
        """
        place = {"Bucket": self.name, "Key": key}
        started = self.s3.create_multipart_upload(**place, Metadata=dict(metadata), **options)
        upload = {**place, "UploadId": started["UploadId"]}

        def part(number: int) -> dict[str, Any]:
            return {"PartNumber": number, **write({**upload, "PartNumber": number})}

        try:
            with ThreadPoolExecutor(at_once) as pool:
                written = list(pool.map(part, range(1, parts + 1)))
            self.s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": written}, IfNoneMatch="*")
        except BaseException:
            # What cannot be removed, as with credentials that have ended, the bucket's lifecycle removes.
            with contextlib.suppress(ClientError, BotoCoreError):
                self.s3.abort_multipart_upload(**upload)
            raise

    def _put_parts(self, key: str, metadata: Mapping[str, str], source: Path, *, size: int, sent: Sent) -> None:
        part_bytes = max(PART_BYTES, math.ceil(size / MOST_PARTS))

        def send(part: Mapping[str, Any]) -> dict[str, Any]:
            with source.open("rb") as stream:
                stream.seek((part["PartNumber"] - 1) * part_bytes)
                data = stream.read(part_bytes)
            answer = self.s3.upload_part(**part, Body=data, ChecksumAlgorithm="CRC32")
            sent(len(data))
            return {name: answer[name] for name in ("ETag", "ChecksumCRC32") if name in answer}

        count = math.ceil(size / part_bytes)
        self.write_parts(key, metadata, parts=count, at_once=_UPLOADS, write=send, ChecksumAlgorithm="CRC32")

    @contextlib.contextmanager
    def _naming(self, verb: str, key: str) -> Iterator[None]:
        """Let AWS's errors name the object."""
        try:
            yield
        except (ClientError, BotoCoreError) as error:
            raise self._failed(verb, key, error) from error

    def _failed(self, verb: str, key: str, error: Exception) -> WorkFailedError:
        return WorkFailedError(f"could not {verb} s3://{self.name}/{key}: {error}")


def written_once(write: Callable[[], object]) -> bool:
    """Make a write that carries ``If-None-Match: *``; False if another was first.

    With two writers at once S3 answers 409 ConditionalRequestConflict: a PutObject or CopyObject is sent again, a
    multipart upload begun again (S3 API reference, CompleteMultipartUpload). boto3 does not try again by itself.
    """
    for pause in (*_CONFLICT_PAUSES, None):
        try:
            write()
        except ClientError as error:
            if code_of(error) in _LOST:
                return False
            if pause is None or code_of(error) not in _CONFLICT:
                raise
            time.sleep(pause)
        else:
            return True
    raise AssertionError("the loop ends by return or raise")
