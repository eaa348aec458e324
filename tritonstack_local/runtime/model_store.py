"""Model archives on this machine: downloaded from the local AWS, unpacked safely, prepared for the CPU, removed."""

from __future__ import annotations

import hashlib
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.untrusted.tar_reading import CHUNK
from tritonstack.untrusted.unpacking import UnpackLimits, UnsafeArchiveError, unpack
from tritonstack_local.runtime.deployed import RoleRefusedError, S3Location
from tritonstack_local.runtime.errors import dependency_failure, model_data_not_found, model_data_unusable

NOT_THERE = frozenset({"NoSuchKey", "NoSuchBucket", "404", "403", "AccessDenied"})


def model_hash(target_model: str) -> str:
    """The name of a TargetModel in the container: opaque, of letters and digits (developer guide,
    mms-container-apis)."""
    return hashlib.sha256(target_model.encode()).hexdigest()[:32]


class S3Objects:
    """Objects of the local AWS."""

    def __init__(self, client: Callable[[], Any]) -> None:
        """``client`` makes a boto3 S3 client, or gives the one that it made."""
        self._client = client

    def chunks(self, location: S3Location) -> Iterator[bytes]:
        """An object's bytes, a chunk at a time. Raises InvokeError as InvokeEndpoint would."""
        try:
            body = self._client().get_object(Bucket=location.bucket, Key=location.key)["Body"]
            try:
                yield from body.iter_chunks(CHUNK)
            finally:
                body.close()
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") in NOT_THERE:
                raise model_data_not_found(bucket=location.bucket, key=location.key) from error
            raise dependency_failure(f"S3 did not give {location}: {error}") from error
        except RoleRefusedError as error:
            raise model_data_not_found(bucket=location.bucket, key=location.key) from error
        except BotoCoreError as error:
            raise dependency_failure(f"S3 did not give {location}: {error}") from error


class DownloadCancelledError(Exception):
    """The download was abandoned."""


@dataclass(kw_only=True)
class ModelStore:
    """The unpacked archives of one container. Methods block; call them in a thread."""

    objects: S3Objects
    prefix: S3Location
    root: Path  # the container's models folder
    limits: UnpackLimits
    download_seconds: float
    prepare: Callable[[Path], None]  # changes an unpacked model in place, to load here

    def path(self, target_model: str) -> Path:
        """Folder that a TargetModel is unpacked into."""
        return self.root / model_hash(target_model) / "model"

    def fetch_target(self, target_model: str, *, cancel: threading.Event) -> float:
        """Download and unpack one model of a multi-model endpoint; see ``fetch``.

        Raises InvokeError: the object is not there, or is no archive that can be unpacked. Raises
        DownloadCancelledError: ``cancel`` was set.
        """
        return self.fetch(self.prefix.below(target_model), self.path(target_model), cancel=cancel)

    def fetch(self, location: S3Location, place: Path, *, cancel: threading.Event) -> float:
        """Download ``location``, unpack and prepare it next to ``place``, then move it there. Returns the seconds."""
        began = time.monotonic()
        temporary = place.parent.with_name(f".{place.parent.name}.{uuid.uuid4().hex[:8]}")
        temporary.mkdir(parents=True)
        try:
            archive, unpacked = temporary / "archive.tar.gz", temporary / "unpacked"
            self._download(location, archive, cancel)
            self._unpack(location, archive, unpacked, cancel)
            archive.unlink()
            shutil.rmtree(place, ignore_errors=True)
            place.parent.mkdir(parents=True, exist_ok=True)
            unpacked.replace(place)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        return time.monotonic() - began

    def _download(self, location: S3Location, archive: Path, cancel: threading.Event) -> None:
        deadline = time.monotonic() + self.download_seconds
        with archive.open("wb") as file:
            for chunk in self.objects.chunks(location):
                if cancel.is_set():
                    raise DownloadCancelledError(str(location))
                if time.monotonic() > deadline:
                    raise model_data_unusable(
                        bucket=location.bucket,
                        key=location.key,
                        reason=f"not downloaded within the variant's {self.download_seconds:.0f} s",
                    )
                file.write(chunk)

    def _unpack(self, location: S3Location, archive: Path, folder: Path, cancel: threading.Event) -> None:
        try:
            unpack(archive, folder, limits=self.limits, cancelled=cancel.is_set)
        except UnsafeArchiveError as error:
            if cancel.is_set():
                raise DownloadCancelledError(str(location)) from error
            raise model_data_unusable(bucket=location.bucket, key=location.key, reason=str(error)) from error
        self.prepare(folder)

    def remove(self, target_model: str) -> None:
        """Delete an unpacked model. A model that is not there is no error."""
        shutil.rmtree(self.path(target_model).parent, ignore_errors=True)
