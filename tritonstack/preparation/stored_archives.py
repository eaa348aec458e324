"""Archives that are in the bucket: where each is, and copies of one to other places."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.archives.bucket import MOST_PARTS, ArtifactBucket, Place, StoredObject, belongs, written_once
from tritonstack.archives.publish import stored_manifest
from tritonstack.errors import WorkFailedError
from tritonstack.models.manifest import Manifest
from tritonstack.naming import ArchiveName


def stored_archives(bucket: ArtifactBucket) -> Mapping[ArchiveName, tuple[Place, ...]]:
    """Every archive in the bucket → its places, sorted: one listing."""
    found: dict[ArchiveName, set[Place]] = {}
    for stored in bucket.archives():
        name, place = stored.name, stored.place
        found.setdefault(name, set()).add(place)
    return {name: tuple(sorted(places)) for name, places in found.items()}


ONE_COPY_BYTES = 1 << 30
"""Larger objects are copied in parts, several at once. CopyObject itself ends at 5 GiB (S3 API reference)."""

PART_BYTES = 256 << 20

_COPIES = 8


def copy_archive(
    bucket: ArtifactBucket, name: ArchiveName, manifest: Manifest, *, source: Place, target: Place
) -> bool:
    """Copy an archive, its manifest and client files to another place; False where another was first.

    Only the manifest is downloaded, which the caller has read. The archive's key is the commit point: it is
    written last, and only if none exists (``If-None-Match: *``). Objects have the bucket's encryption.

    Raises :class:`WorkFailedError` where AWS refuses, or the source is gone.
    """
    for file in manifest.client_files:
        _copy(bucket, source.client_file(name, file), target.client_file(name, file))
    bucket.put_once(target.manifest(name), manifest.to_json().encode())
    first = _copy(bucket, source.archive(name), target.archive(name))
    stored = bucket.look(target.archive(name))
    if stored is not None and belongs(manifest, stored) and stored_manifest(bucket, name, target, stored) is None:
        bucket.put(target.manifest(name), manifest.to_json().encode())  # whichever run wrote either first
    return first


def _copy(bucket: ArtifactBucket, source: str, target: str) -> bool:
    """Copy one object unless the target exists; whether it was copied."""
    stored = bucket.look(source)
    if stored is None:
        raise WorkFailedError(f"s3://{bucket.name}/{source} was removed before it was copied; start again")
    write = _in_parts if stored.bytes > ONE_COPY_BYTES else _whole
    try:
        return written_once(lambda: write(bucket, source, target, stored))
    except (ClientError, BotoCoreError) as error:
        message = f"could not copy s3://{bucket.name}/{source} to {target}: {error}"
        raise WorkFailedError(message) from error


def _whole(bucket: ArtifactBucket, source: str, target: str, _stored: StoredObject) -> None:
    """One CopyObject, which copies the metadata."""
    bucket.s3.copy_object(
        Bucket=bucket.name, Key=target, CopySource={"Bucket": bucket.name, "Key": source}, IfNoneMatch="*"
    )


def _in_parts(bucket: ArtifactBucket, source: str, target: str, stored: StoredObject) -> None:
    """A multipart copy; a part is copied within S3."""
    part_bytes = max(PART_BYTES, math.ceil(stored.bytes / MOST_PARTS))

    def copied(part: Mapping[str, Any]) -> dict[str, Any]:
        first = (part["PartNumber"] - 1) * part_bytes
        last = min(first + part_bytes, stored.bytes) - 1
        place = {"Bucket": bucket.name, "Key": source}
        copy = bucket.s3.upload_part_copy(**part, CopySource=place, CopySourceRange=f"bytes={first}-{last}")
        return {"ETag": copy["CopyPartResult"]["ETag"]}

    count = math.ceil(stored.bytes / part_bytes)
    bucket.write_parts(target, stored.metadata, parts=count, at_once=_COPIES, write=copied)
