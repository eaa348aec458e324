"""A model's tensor table out of its archive's manifest, for callers who may read the bucket."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.adapters import Adapters, Answers
from tritonstack.client.client_files import ClientFile
from tritonstack.client.releases import Release
from tritonstack.client.tables import TensorSpec, TensorTable
from tritonstack.naming import artifact_parameter

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class _Found:
    """A manifest as JSON reads it, and where it lies: its client files lie under ``folder``."""

    manifest: Any
    bucket: str
    folder: str


class ManifestReader:
    """Reads manifests from the bucket that the environment's SSM parameter names. Thread safe.

    A manifest never changes, so one that was read is kept. The endpoint's platform is not known to a caller; the
    tensor table is the same on each.
    """

    def __init__(self, *, environment: str, ssm: Callable[[], Any], s3: Callable[[], Any]) -> None:
        """Takes functions that give the boto3 clients."""
        self._environment = environment
        self._ssm = ssm
        self._s3 = s3
        self._tables: dict[Release, TensorTable] = {}
        self._lock = threading.Lock()

    def table(self, release: Release) -> TensorTable | None:
        """The tensor table of an archive, or None where it cannot be read; the log says why."""
        with self._lock:
            if release in self._tables:
                return self._tables[release]
        try:
            found = self._read(release)
            table = read_table(found.manifest, bucket=found.bucket, folder=found.folder) if found is not None else None
        except (ClientError, BotoCoreError, KeyError, TypeError, ValueError) as error:
            log.info("no tensor table of %s: %s", release.archive, error)
            return None
        if table is not None:
            with self._lock:
                self._tables[release] = table
        return table

    def manifest(self, release: Release) -> Mapping[str, Any] | None:
        """The whole manifest of an archive as JSON reads it, or None where it cannot be read; the log says why."""
        try:
            found = self._read(release)
        except (ClientError, BotoCoreError, KeyError, TypeError, ValueError) as error:
            log.info("no manifest of %s: %s", release.archive, error)
            return None
        return found.manifest if found is not None and isinstance(found.manifest, dict) else None

    def lacks(self, release: Release) -> bool:
        """Whether the bucket certainly has no manifest of an archive: nothing was ever published under its name."""
        try:
            return self._read(release) is None
        except (ClientError, BotoCoreError, KeyError, TypeError, ValueError):
            return False

    def _read(self, release: Release) -> _Found | None:
        name = artifact_parameter(environment=self._environment, value="bucket-name")
        bucket = self._ssm().get_parameter(Name=name)["Parameter"]["Value"]
        prefix = f"manifests/{release.endpoint}/"
        pages = self._s3().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix, Delimiter="/")
        platforms = [common["Prefix"] for page in pages for common in page.get("CommonPrefixes", ())]
        for platform in sorted(platforms, reverse=True):
            key = f"{platform}{release.model}.{release.digest}.json"
            try:
                manifest = json.load(self._s3().get_object(Bucket=bucket, Key=key)["Body"])
            except ClientError as error:
                if error.response.get("Error", {}).get("Code") not in {"NoSuchKey", "404"}:
                    raise
            else:
                return _Found(manifest=manifest, bucket=bucket, folder=key.removesuffix(".json"))
        log.info("no manifest of %s under s3://%s/%s", release.archive, bucket, prefix)
        return None


def read_table(manifest: Any, *, bucket: str = "", folder: str = "") -> TensorTable:
    """The tensor table that a manifest holds.

    Args:
        manifest: as JSON reads it.
        bucket: where it lies.
        folder: the prefix of its client files: its own key without ``.json``.

    Raises:
        KeyError, TypeError, ValueError: it is no manifest as ``tritonstack publish`` writes them.
    """
    model = manifest["model"]
    return TensorTable(
        inputs=tuple(_spec(tensor) for tensor in model["inputs"]),
        outputs=tuple(_spec(tensor) for tensor in model["outputs"]),
        max_batch_size=int(model["max_batch_size"]),
        optional_inputs=frozenset(tensor["name"] for tensor in model["inputs"] if tensor.get("optional")),
        adapters=Adapters.model_validate(manifest.get("adapters") or {}),
        answers=Answers.model_validate(manifest.get("answers") or {}),
        client_files={
            name: ClientFile(
                name=name, sha256=file["sha256"], bytes=int(file["bytes"]), bucket=bucket, key=f"{folder}/{name}"
            )
            for name, file in dict(manifest.get("client_files") or {}).items()
        },
    )


def _spec(tensor: Any) -> TensorSpec:
    return TensorSpec(name=tensor["name"], datatype=tensor["datatype"], shape=tuple(map(int, tensor["shape"])))
