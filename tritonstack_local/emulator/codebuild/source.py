"""A build's source and its artifacts in S3."""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path

from tritonstack_local.emulator.codebuild.build import Build, artifact_key, client, failing_as_client_error
from tritonstack_local.emulator.codebuild.buildspec import ArtifactFiles, PhaseError


def download_source(build: Build, target: Path) -> None:
    """Fill ``target``; raises PhaseError where S3 refuses or the source is not what it should be."""
    source = build.plan.source
    if source["type"] == "NO_SOURCE":
        return
    bucket, _, key = source["location"].removeprefix("arn:aws:s3:::").partition("/")
    if key == "" or key.endswith("/"):
        from tritonstack_local.emulator.processing.container import download  # noqa: PLC0415  needs MiniStack
        from tritonstack_local.emulator.processing.request import JobFailedError  # noqa: PLC0415

        try:
            download(f"s3://{bucket}/{key}", target, build.credentials)
        except JobFailedError as error:
            raise PhaseError("CLIENT_ERROR", str(error)) from error
        return
    with failing_as_client_error(f"error while downloading key {key} of bucket {bucket}"):
        content: bytes = client("s3", build.region, build.credentials).get_object(Bucket=bucket, Key=key)["Body"].read()
    unpack(content, key, target)


def unpack(content: bytes, key: str, target: Path) -> None:
    """Unpack a ZIP file's bytes; a name that leads out of ``target`` is cut, as by unzip. Raises PhaseError."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for entry in archive.infolist():
                mode = entry.external_attr >> 16
                if stat.S_ISLNK(mode):
                    raise PhaseError("CLIENT_ERROR", f"{entry.filename!r}: the source has files and folders, no links")
                path = Path(archive.extract(entry, target))
                if mode & 0o111 and path.is_file():
                    path.chmod(0o755)
    except (zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError, IndexError) as error:  # the last: no name
        raise PhaseError("CLIENT_ERROR", f"{key} cannot be unpacked as a ZIP file: {error}") from error


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
            client("s3", build.region, build.credentials).put_object(
                Bucket=artifacts["location"], Key=target, Body=content
            )


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
