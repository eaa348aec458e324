"""An archive that serves elsewhere too → copied within the bucket: client files, its manifest, and the archive last."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.archives.bucket import ArtifactBucket, StoredObject, written_once
from tritonstack.archives.manifest import Manifest
from tritonstack.engines.stored import Place, belongs
from tritonstack.errors import WorkFailedError
from tritonstack.naming import ArchiveName

ONE_COPY_BYTES = 1 << 30
"""Larger objects are copied in parts, several at once. CopyObject itself ends at 5 GiB (S3 API reference)."""
PART_BYTES = 256 << 20
_MOST_PARTS = 10_000
_COPIES = 8


def copy_archive(
    bucket: ArtifactBucket, name: ArchiveName, manifest: Manifest, *, source: Place, target: Place
) -> bool:
    """Copy an archive with what belongs to it to another place in the bucket; False where another was first.

    Nothing is downloaded but the manifest, which the caller has read. The archive's key is the commit point: it is
    written last, and only if nothing lies there (``If-None-Match: *``). Objects are encrypted as the bucket says.

    Raises :class:`WorkFailedError` where AWS refuses, or the source is gone.
    """
    for file in manifest.client_files:
        _copy(bucket, source.client_file(name, file), target.client_file(name, file))
    bucket.put_once(target.manifest(name), manifest.to_json().encode())
    first = _copy(bucket, source.archive(name), target.archive(name))
    _mend(bucket, name, manifest, target=target)
    return first


def _copy(bucket: ArtifactBucket, source: str, target: str) -> bool:
    """Copy one object unless something lies there; whether it was copied."""
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
    """One CopyObject, which takes the metadata along."""
    bucket.s3.copy_object(
        Bucket=bucket.name, Key=target, CopySource={"Bucket": bucket.name, "Key": source}, IfNoneMatch="*"
    )


def _in_parts(bucket: ArtifactBucket, source: str, target: str, stored: StoredObject) -> None:
    """A multipart copy; a part is copied within S3."""
    place = {"Bucket": bucket.name, "Key": target}
    part_bytes = max(PART_BYTES, math.ceil(stored.bytes / _MOST_PARTS))
    upload = bucket.s3.create_multipart_upload(**place, Metadata=dict(stored.metadata))["UploadId"]
    try:
        with ThreadPoolExecutor(_COPIES) as pool:
            copied = _part_copier(bucket, source, target, upload)
            ranges = [
                (number, start, min(start + part_bytes, stored.bytes) - 1)
                for number, start in enumerate(range(0, stored.bytes, part_bytes), start=1)
            ]
            parts = list(pool.map(lambda part: copied(*part), ranges))
        bucket.s3.complete_multipart_upload(**place, UploadId=upload, MultipartUpload={"Parts": parts}, IfNoneMatch="*")
    except BaseException:
        bucket.s3.abort_multipart_upload(**place, UploadId=upload)
        raise


def _part_copier(
    bucket: ArtifactBucket, source: str, target: str, upload: str
) -> Callable[[int, int, int], dict[str, Any]]:
    def copied(number: int, first: int, last: int) -> dict[str, Any]:
        answer = bucket.s3.upload_part_copy(
            Bucket=bucket.name,
            Key=target,
            UploadId=upload,
            PartNumber=number,
            CopySource={"Bucket": bucket.name, "Key": source},
            CopySourceRange=f"bytes={first}-{last}",
        )
        return {"PartNumber": number, "ETag": answer["CopyPartResult"]["ETag"]}

    return copied


def _mend(bucket: ArtifactBucket, name: ArchiveName, manifest: Manifest, *, target: Place) -> None:
    """Let the manifest at the target tell of the archive that lies there, whoever wrote which of the two first."""
    stored = bucket.look(target.archive(name))
    content = bucket.read(target.manifest(name))
    try:
        kept = Manifest.model_validate_json(content) if content is not None else None
    except ValueError:
        kept = None
    if stored is not None and belongs(manifest, stored) and (kept is None or not belongs(kept, stored)):
        bucket.put(target.manifest(name), manifest.to_json().encode())
