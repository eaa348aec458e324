"""Inputs from S3 before the entrypoint starts, outputs to S3 while it runs or when it is done."""

from __future__ import annotations

import functools
import os
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import botocore.config
from botocore.exceptions import BotoCoreError, ClientError
from ministack.core.responses import get_account_id, get_region

from tritonstack_local.emulator.processing.failure import JobFailedError


@functools.cache
def _client(account: str, region: str) -> Any:
    return boto3.client(
        "s3",
        endpoint_url=os.environ["AWS_ENDPOINT_URL"],
        region_name=region,
        aws_access_key_id=account,  # MiniStack takes twelve digits for the account
        aws_secret_access_key="testing",  # noqa: S106  the local AWS knows no secret
        config=botocore.config.Config(
            s3={"addressing_style": "path"},
            retries={"mode": "standard", "total_max_attempts": 5},  # a service gives up no sooner than its users' SDKs
        ),
    )


def s3() -> Any:
    """S3 of this emulator, in the context's account and region. Not for the event loop, which would wait for itself."""
    return _client(get_account_id(), get_region())


def download(uri: str, folder: Path) -> int:
    """Every object with the URI's prefix into ``folder``; how many.

    What comes after the prefix and a slash is the path there; an object that is the prefix itself keeps its last name.

    Raises:
        JobFailedError: there is no such object, S3 refuses, or a key leads out of the folder.
    """
    bucket, prefix = _parts(uri)
    count = 0
    try:
        for key in _keys(bucket, prefix):
            target = folder / _relative(key, prefix)
            if not target.resolve().is_relative_to(folder.resolve()):
                raise JobFailedError(f"ClientError: the key {key} leads out of its folder")
            target.parent.mkdir(parents=True, exist_ok=True)
            s3().download_file(bucket, key, str(target))
            count += 1
    except (ClientError, BotoCoreError, OSError) as error:
        raise JobFailedError(f"ClientError: Data download failed: {uri}: {error}") from error
    if count == 0:
        raise JobFailedError(
            f'ClientError: Data download failed: No S3 objects found under S3 URL "{uri}" given in input data source.'
            " Please ensure that the bucket exists in the selected region, that objects exist under that S3 prefix,"
            f' and that the role has "s3:ListBucket" permissions on bucket "{bucket}".'
        )
    return count


@dataclass(kw_only=True)
class Upload:
    """One output: a folder, and where it goes in S3.

    Attributes:
        key_arn: encrypts the objects; None: as the bucket says.
        continuous: also while the entrypoint runs, and whatever becomes of it.
    """

    uri: str
    folder: Path
    key_arn: str | None
    continuous: bool
    _uploaded: dict[Path, tuple[int, int]] = field(default_factory=dict)

    def changed(self) -> int:
        """Upload every file that is new or changed since the last time; how many. Raises JobFailedError."""
        bucket, prefix = _parts(self.uri)
        extra = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": self.key_arn} if self.key_arn else {}
        count = 0
        try:
            for path, state in sorted(_files(self.folder).items()):
                if self._uploaded.get(path) != state:
                    name = path.relative_to(self.folder).as_posix()
                    s3().upload_file(str(path), bucket, f"{prefix.rstrip('/')}/{name}".lstrip("/"), ExtraArgs=extra)
                    self._uploaded[path] = state
                    count += 1
        except (ClientError, BotoCoreError, OSError, boto3.exceptions.S3UploadFailedError) as error:
            raise JobFailedError(f"ClientError: Data upload failed: {self.uri}: {error}") from error
        return count


def _files(folder: Path) -> dict[Path, tuple[int, int]]:
    """The regular files below a folder, with time and size; a link is none."""
    found = {}
    for parent, _folders, names in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            if path.is_file() and not path.is_symlink():
                status = path.stat()
                found[path] = (status.st_mtime_ns, status.st_size)
    return found


def _keys(bucket: str, prefix: str) -> Iterator[str]:
    """Keys with the prefix; those that end in a slash stand for folders in consoles and hold nothing."""
    for page in s3().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        yield from (one["Key"] for one in page.get("Contents", []) if not one["Key"].endswith("/"))


def _relative(key: str, prefix: str) -> str:
    if key == prefix:
        return key.rpartition("/")[2]
    folder = prefix if prefix.endswith("/") or not prefix else prefix + "/"
    return (
        key.removeprefix(folder) if key.startswith(folder) else key.removeprefix(prefix.rpartition("/")[0]).lstrip("/")
    )


def _parts(uri: str) -> tuple[str, str]:
    parts = urllib.parse.urlsplit(uri)
    return parts.netloc, parts.path.removeprefix("/")
