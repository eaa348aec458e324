"""A build's source and its artifacts in S3."""

from __future__ import annotations

import io
import shutil
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from tritonstack_local.emulator.codebuild.build import Build, BuildPlan, artifact_key, client, failing_as_client_error
from tritonstack_local.emulator.codebuild.buildspec import ArtifactFiles, PhaseError


def download_source(plan: BuildPlan, target: Path, *, region: str) -> None:
    """Fill ``target``; raises PhaseError where S3 refuses or the source is not what it should be."""
    if plan.source["type"] == "NO_SOURCE":
        return
    bucket, _, key = plan.source["location"].removeprefix("arn:aws:s3:::").partition("/")
    if key == "" or key.endswith("/"):
        from tritonstack_local.emulator.processing.container import download  # noqa: PLC0415  needs MiniStack
        from tritonstack_local.emulator.processing.request import JobFailedError  # noqa: PLC0415

        try:
            download(f"s3://{bucket}/{key}", target)
        except JobFailedError as error:
            raise PhaseError("CLIENT_ERROR", str(error)) from error
        return
    with failing_as_client_error(f"error while downloading key {key} of bucket {bucket}"):
        content: bytes = client("s3", region).get_object(Bucket=bucket, Key=key)["Body"].read()
    unpack(content, key, target)


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


def upload_artifacts(build: Build, files: ArtifactFiles | None, *, source: Path, between: Callable[[], None]) -> None:
    """Upload the buildspec's artifacts to the project's destination.

    What ``between`` raises, called before each file, ends the upload. Raises PhaseError where nothing matches, or S3
    refuses.
    """
    artifacts = build.plan.artifacts
    if artifacts["type"] == "NO_ARTIFACTS":
        return
    if files is None:
        raise PhaseError("CLIENT_ERROR", "no artifacts section in the buildspec, and the project has artifacts")
    for name, path in matching_files(files, source).items():
        between()
        target = f"{artifact_key(build)}/{name}".strip("/")
        with failing_as_client_error(f"Error in UPLOAD_ARTIFACTS phase: {target}"), path.open("rb") as content:
            client("s3", build.region).put_object(Bucket=artifacts["location"], Key=target, Body=content)


def matching_files(files: ArtifactFiles, source: Path) -> dict[str, Path]:
    """Name in the output → file, sorted; raises PhaseError where nothing matches, as CodeBuild does.

    Links to folders are not followed.
    """
    base = source / files.base_directory
    if not base.is_dir():
        raise PhaseError("CLIENT_ERROR", "no matching base directory path found for " + files.base_directory)
    try:
        found = {path for pattern in files.files for path in base.glob(pattern) if path.is_file()}
    except ValueError as error:
        raise PhaseError("CLIENT_ERROR", f"artifacts.files: {error}") from error
    if not found:
        raise PhaseError("CLIENT_ERROR", "no matching artifact paths found")
    inside = [
        path
        for path in sorted(found)
        if not any(parent.is_symlink() for parent in path.parents if base in parent.parents)
    ]
    return {path.relative_to(base).as_posix(): path for path in inside}
