"""A model's tensor table out of its archive's manifest, for callers who may read the bucket."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.client.releases import Release
from tritonstack.client.tables import FileAdapter, TensorSpec, TensorTable
from tritonstack.naming import artifact_parameter

log = logging.getLogger(__name__)


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
            manifest = self._read(release)
            table = read_table(manifest) if manifest is not None else None
        except (ClientError, BotoCoreError, KeyError, TypeError, ValueError) as error:
            log.info("no tensor table of %s: %s", release.archive, error)
            return None
        if table is not None:
            with self._lock:
                self._tables[release] = table
        return table

    def lacks(self, release: Release) -> bool:
        """Whether the bucket certainly has no manifest of an archive: nothing was ever published under its name."""
        try:
            return self._read(release) is None
        except (ClientError, BotoCoreError, KeyError, TypeError, ValueError):
            return False

    def _read(self, release: Release) -> Any:
        name = artifact_parameter(environment=self._environment, value="bucket-name")
        bucket = self._ssm().get_parameter(Name=name)["Parameter"]["Value"]
        prefix = f"manifests/{release.endpoint}/"
        pages = self._s3().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix, Delimiter="/")
        platforms = [common["Prefix"] for page in pages for common in page.get("CommonPrefixes", ())]
        for platform in sorted(platforms, reverse=True):
            key = f"{platform}{release.model}.{release.digest}.json"
            try:
                return json.load(self._s3().get_object(Bucket=bucket, Key=key)["Body"])
            except ClientError as error:
                if error.response.get("Error", {}).get("Code") not in {"NoSuchKey", "404"}:
                    raise
        log.info("no manifest of %s under s3://%s/%s", release.archive, bucket, prefix)
        return None


def read_table(manifest: Any) -> TensorTable:
    """The tensor table that a manifest holds.

    Raises:
        KeyError, TypeError, ValueError: it is no manifest as ``tritonstack publish`` writes them.
    """
    model = manifest["model"]
    return TensorTable(
        inputs=tuple(_spec(tensor) for tensor in model["inputs"]),
        outputs=tuple(_spec(tensor) for tensor in model["outputs"]),
        max_batch_size=int(model["max_batch_size"]),
        optional_inputs=frozenset(tensor["name"] for tensor in model["inputs"] if tensor.get("optional")),
        adapters={
            kind: FileAdapter(input=adapter["input"], encoding=adapter["encoding"])
            for kind, adapter in (manifest.get("adapters") or {}).items()
            if adapter
        },
    )


def _spec(tensor: Any) -> TensorSpec:
    return TensorSpec(name=tensor["name"], datatype=tensor["datatype"], shape=tuple(map(int, tensor["shape"])))
