"""A build's output: the files that the buildspec names, uploaded one by one or as a ZIP file."""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

from tritonstack_local.emulator.codebuild.build import Build, artifact_key
from tritonstack_local.emulator.codebuild.buildspec import ArtifactFiles
from tritonstack_local.emulator.codebuild.failure import PhaseError
from tritonstack_local.emulator.codebuild.store import client, failing_as_client_error


def upload_artifacts(
    build: Build, files: ArtifactFiles | None, *, source: Path, work: Path, between: Callable[[], None]
) -> None:
    """Upload the output and note its place in ``build.artifact``.

    Args:
        build: whose project says where to.
        files: the buildspec's section, None where it has none.
        source: the source folder.
        work: where a ZIP file may be made.
        between: called before each file; whatever it raises ends the upload.

    Raises:
        PhaseError: nothing matches, or S3 refuses.
    """
    artifacts = build.plan.artifacts
    if artifacts["type"] == "NO_ARTIFACTS":
        return
    if files is None:
        raise PhaseError("CLIENT_ERROR", "no artifacts section in the buildspec, and the project has artifacts")
    _choose_name(build, files)
    found = matching_files(files, source)
    key = artifact_key(build)
    if artifacts.get("packaging") == "ZIP":
        found = {"": _packed(build, found, work / "artifacts.zip")}
    for name, path in found.items():
        between()
        target = f"{key}/{name}".strip("/")
        with failing_as_client_error(f"Error in UPLOAD_ARTIFACTS phase: {target}"), path.open("rb") as content:
            client("s3", build.region).put_object(Bucket=artifacts["location"], Key=target, Body=content)
    build.artifact = {**build.artifact, "location": key}


def matching_files(files: ArtifactFiles, source: Path) -> dict[str, Path]:
    """Name in the output → file, sorted; raises PhaseError where nothing matches, as CodeBuild does.

    Links to folders are not followed.
    """
    base = source / files.base_directory
    if not base.is_dir():
        raise PhaseError("CLIENT_ERROR", "no matching base directory path found for " + files.base_directory)
    try:
        excluded = {path for pattern in files.exclude for path in base.glob(pattern)}
        found = {path for pattern in files.files for path in base.glob(pattern) if path.is_file()} - excluded
    except ValueError as error:
        raise PhaseError("CLIENT_ERROR", f"artifacts.files: {error}") from error
    if not found:
        raise PhaseError("CLIENT_ERROR", "no matching artifact paths found")
    inside = [path for path in sorted(found) if not _through_link(path, base)]
    return {path.name if files.discard_paths else path.relative_to(base).as_posix(): path for path in inside}


def _through_link(path: Path, base: Path) -> bool:
    return any(parent.is_symlink() for parent in path.parents if base in parent.parents)


def _choose_name(build: Build, files: ArtifactFiles) -> None:
    """The buildspec's name, where the project leaves it the choice."""
    if not build.plan.artifacts.get("overrideArtifactName") or files.name is None:
        return
    if re.search(r"[$`]", files.name):
        raise PhaseError("CLIENT_ERROR", f"artifacts.name {files.name!r}: the local AWS expands nothing in names")
    build.artifact = {"name": files.name}


def _packed(build: Build, found: dict[str, Path], target: Path) -> Path:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in found.items():
            archive.write(path, name)
    with target.open("rb") as content:
        sha256 = hashlib.file_digest(content, "sha256").hexdigest()
        content.seek(0)
        md5 = hashlib.file_digest(content, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    build.artifact = {**build.artifact, "sha256sum": sha256, "md5sum": md5}
    return target
