"""A build's source: a ZIP object or a folder of S3, put into an empty folder without path tricks."""

from __future__ import annotations

import io
import shutil
import stat
import zipfile
from pathlib import Path, PurePosixPath

from tritonstack_local.emulator.codebuild.failure import PhaseError
from tritonstack_local.emulator.codebuild.plan import BuildPlan
from tritonstack_local.emulator.codebuild.store import client, failing_as_client_error


def download_source(plan: BuildPlan, target: Path, *, region: str) -> None:
    """Fill ``target``; raises PhaseError where S3 refuses or the source is not what it should be."""
    if plan.source["type"] == "NO_SOURCE":
        return
    bucket, _, key = plan.source["location"].removeprefix("arn:aws:s3:::").partition("/")
    if key == "" or key.endswith("/"):
        _download_folder(bucket, key, target, region=region)
    else:
        unpack(_download(bucket, key, plan.source_version, region=region), key, target)


def read_object(arn: str, *, region: str) -> str:
    """The text of an object that a buildspec's ARN names."""
    bucket, _, key = arn.removeprefix("arn:aws:s3:::").partition("/")
    return _download(bucket, key, None, region=region).decode("utf-8", errors="replace")


def _download(bucket: str, key: str, version: str | None, *, region: str) -> bytes:
    request = {"Bucket": bucket, "Key": key, **({"VersionId": version} if version else {})}
    with failing_as_client_error(f"error while downloading key {key} of bucket {bucket}"):
        content: bytes = client("s3", region).get_object(**request)["Body"].read()
    return content


def _download_folder(bucket: str, prefix: str, target: Path, *, region: str) -> None:
    store, found = client("s3", region), 0
    with failing_as_client_error(f"error while downloading folder {prefix} of bucket {bucket}"):
        for page in store.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
            for entry in page.get("Contents", ()):
                found += 1
                name = entry["Key"].removeprefix(prefix)
                if not name or name.endswith("/"):
                    continue
                path = _safe(name, target)
                path.parent.mkdir(parents=True, exist_ok=True)
                store.download_file(bucket, entry["Key"], str(path))
    if not found:
        raise PhaseError("CLIENT_ERROR", f"folder {prefix} of bucket {bucket} has no objects")


def unpack(content: bytes, key: str, target: Path) -> None:
    """Unpack a ZIP file's bytes; nothing where any name in it leads out of ``target``. Raises PhaseError."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = [(entry, _safe(entry.filename, target)) for entry in archive.infolist()]
            for entry, path in entries:
                _unpack_entry(archive, entry, path)
    except (zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError) as error:
        raise PhaseError("CLIENT_ERROR", f"{key} cannot be unpacked as a ZIP file: {error}") from error


def _unpack_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, path: Path) -> None:
    mode = entry.external_attr >> 16
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise PhaseError("CLIENT_ERROR", f"{entry.filename!r}: the source has files and folders only, no links")
    if entry.is_dir():
        path.mkdir(parents=True, exist_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(entry) as packed, path.open("wb") as unpacked:
        shutil.copyfileobj(packed, unpacked)
    if mode & 0o111:
        path.chmod(0o755)


def _safe(name: str, target: Path) -> Path:
    """Where a file of this name goes; raises PhaseError where that is not within ``target``."""
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or "\\" in name or "\0" in name or ".." in parts:
        raise PhaseError("CLIENT_ERROR", f"{name!r}: a name in the source leads out of its folder")
    return target.joinpath(*parts)
