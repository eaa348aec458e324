"""Pretrained files of a model: from Hugging Face's hub, a folder laid out like it, or an object of S3."""

# mypy: disable-error-code="import-not-found"
# huggingface_hub is in the environment that exports run in, not in the one that checks types.

from __future__ import annotations

import hashlib
import os
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from _exporters.script import ExportError, say

FOLDER_VARIABLE = "TRITONSTACK_HUB_FOLDER"
"""The variable of a folder ``<organisation>/<name>/<revision>/…`` that is read instead of the hub."""
TAR_SUFFIXES = (".tar.gz", ".tgz")
ZIP_SUFFIX = ".zip"
MOST_BYTES = 64 << 30
"""The most bytes unpacked of one object."""

_CHUNK = 1 << 20
_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError)
"""Exceptions of the readers for a damaged file; RuntimeError for an encrypted one."""
_REVISION = re.compile(r"[0-9a-f]{40}")
_IDENTIFIER = re.compile(r"[\w.-]+(/[\w.-]+)?", re.ASCII)


def fetch(source: Mapping[str, str] | None, files: Sequence[str]) -> Path:
    """The folder that holds the named files of a model.

    An object of S3 was downloaded by the build. A model of the hub is read from :data:`FOLDER_VARIABLE` where that is
    set; else huggingface_hub downloads it into its own cache, from ``HF_ENDPOINT`` where that is set and with
    ``HF_TOKEN`` for models that need one.

    Args:
        source: ``{"hub": "organisation/name", "revision": 40 hexadecimal digits}``, or ``{"s3": …}``.
        files: names inside the model's repository.

    Raises:
        ExportError: no such source, no pinned revision, the hub cannot be reached, or files are missing: all named.
    """
    if source and "s3" in source:
        return _from_s3(source, files)
    identifier, revision = _pinned(source)
    folder = os.environ.get(FOLDER_VARIABLE)
    place = Path(folder) / identifier / revision if folder else _download(identifier, revision, files)
    missing = [name for name in files if not (place / name).is_file()]
    if missing:
        advice = f" ({FOLDER_VARIABLE} names the folder {folder})" if folder else ""
        raise ExportError(f"{identifier} at {revision} has no {', '.join(missing)} in {place}{advice}")
    say(f"weights of {identifier} at {revision[:12]} from {'a folder' if folder else 'the hub'}")
    return place


def digests(folder: Path, files: Sequence[str]) -> dict[str, str]:
    """File → its SHA-256."""
    found = {}
    for name in files:
        with (folder / name).open("rb") as file:
            found[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def _pinned(source: Mapping[str, str] | None) -> tuple[str, str]:
    """Identifier and revision, checked: they become a path."""
    if not source or "hub" not in source:
        raise ExportError("pretrained weights need `source` in the recipe: {hub: …, revision: …} or {s3: …, sha256: …}")
    identifier, revision = source["hub"], source.get("revision", "")
    if not _IDENTIFIER.fullmatch(identifier) or ".." in identifier:
        raise ExportError(f"source.hub is {identifier!r}, not an organisation and a name such as google-t5/t5-small")
    if not _REVISION.fullmatch(revision):
        raise ExportError(
            f"source.revision of {identifier} is {revision!r}, not a commit's 40 hexadecimal digits: a branch's "
            f"weights change"
        )
    return identifier, revision


def _download(identifier: str, revision: str, files: Sequence[str]) -> Path:
    import huggingface_hub  # noqa: PLC0415  slow to import
    from huggingface_hub import errors  # noqa: PLC0415
    from huggingface_hub.utils import (  # type: ignore[attr-defined, unused-ignore]  # noqa: PLC0415  a re-export
        disable_progress_bars,
    )

    say(f"fetching {identifier} at {revision[:12]} from the hub")
    disable_progress_bars()
    try:
        return Path(huggingface_hub.snapshot_download(identifier, revision=revision, allow_patterns=list(files)))
    except errors.RepositoryNotFoundError as error:
        raise ExportError(
            f"the hub has no model {identifier}, or it needs a token: HF_TOKEN, which an environment's builds get from "
            f"builds.hub.token_parameter"
        ) from error
    except errors.RevisionNotFoundError as error:
        raise ExportError(f"the hub has no revision {revision} of {identifier}") from error
    except (errors.HfHubHTTPError, OSError) as error:
        first = str(error).strip().splitlines()[0]
        raise ExportError(
            f"{identifier} at {revision} cannot be fetched from the hub: {first}\n"
            f"Where the hub cannot be reached, put its files into <folder>/{identifier}/{revision}/ and set "
            f"{FOLDER_VARIABLE}=<folder>, or build with random weights; all ways: tritonstack docs hub-weights"
        ) from error


# Objects of S3.


@dataclass(frozen=True)
class _Member:
    """A member of a packed folder. ``open`` gives its content, None for a link or a device."""

    name: str
    open: Callable[[], IO[bytes] | None]


def _from_s3(source: Mapping[str, str], files: Sequence[str]) -> Path:
    """Unpack the named files of an object of S3. Returns their folder.

    An object whose key ends in ``.tar.gz``, ``.tgz`` or ``.zip`` is a folder laid out like a model of the hub, packed
    as it is or below one folder. Only the named files are unpacked, each to a name that this function makes: other
    members are ignored. Any other object is the one requested file.

    Args:
        source: ``{"s3": its URI, "file": where the build put it, "folder": an empty folder for what is unpacked}``.
        files: names inside the model's folder.

    Raises:
        ExportError: the object is damaged, or files are missing: all named.
    """
    url = source["s3"]
    if "file" not in source or "folder" not in source:
        raise ExportError(f"{url} is not downloaded: `tritonstack build` does it, an export has no AWS credentials")
    file, folder = Path(source["file"]), Path(source["folder"])
    folder.mkdir(parents=True, exist_ok=True)
    if not url.endswith((*TAR_SUFFIXES, ZIP_SUFFIX)):
        place = _one_file(url, file, folder, files)
    else:
        members = _zip_members if url.endswith(ZIP_SUFFIX) else _tar_members
        try:
            places = _unpack(members(file), folder, files)
        except _DAMAGED as error:
            raise ExportError(f"{url} is damaged or cannot be unpacked: {error}") from error
        place = _chosen(url, places, files)
    say(f"weights from {url}")
    return place


def _one_file(url: str, file: Path, folder: Path, files: Sequence[str]) -> Path:
    """A folder with the object under the requested name."""
    if len(files) != 1:
        raise ExportError(
            f"{url} is one file, and this export needs {', '.join(files)}: pack them into a .tar.gz or .zip"
        )
    place = folder / files[0]
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(file.resolve())
    return folder


def _tar_members(file: Path) -> Iterator[_Member]:
    with tarfile.open(file, "r|gz") as tar:
        for member in tar:
            if not member.isdir():
                yield _Member(member.name, partial(_open_in_tar, tar, member))


def _open_in_tar(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes] | None:
    return tar.extractfile(member) if member.isreg() else None


def _zip_members(file: Path) -> Iterator[_Member]:
    with zipfile.ZipFile(file) as packed:
        for info in packed.infolist():
            if not info.is_dir():
                yield _Member(info.filename, partial(_open_in_zip, packed, info))


def _open_in_zip(packed: zipfile.ZipFile, info: zipfile.ZipInfo) -> IO[bytes] | None:
    return None if stat.S_ISLNK(info.external_attr >> 16) else packed.open(info)  # the high half: Unix's file mode


def _unpack(members: Iterator[_Member], folder: Path, files: Sequence[str]) -> dict[str, Path]:
    """Folder in the archive, "" for its root → where its requested files were written."""
    wanted = {PurePosixPath(name).parts: name for name in files}
    places: dict[str, Path] = {}
    left = MOST_BYTES
    for member in members:
        parts = PurePosixPath(member.name).parts
        for base, name in (("", wanted.get(parts)), (parts[0] if parts else "", wanted.get(parts[1:]))):
            if name is None:
                continue
            place = places.setdefault(base, folder / str(len(places))) / name
            left -= _write_member(member, place, most=left)
            break
    return places


def _write_member(member: _Member, place: Path, *, most: int) -> int:
    """Write a member's content to a file. Returns its bytes."""
    content = member.open()
    if content is None:
        raise ExportError(f"{member.name} is packed as a link or a device: pack the files themselves (tar -h)")
    place.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with content, place.open("wb") as file:
        while chunk := content.read(_CHUNK):
            written += len(chunk)
            if written > most:
                raise ExportError(f"{member.name} and the members before it unpack to more than {MOST_BYTES} bytes")
            file.write(chunk)
    return written


def _chosen(url: str, places: Mapping[str, Path], files: Sequence[str]) -> Path:
    """The root or the one folder of the archive that has all files."""
    whole = [base for base, place in places.items() if all((place / name).is_file() for name in files)]
    if "" in whole:
        return places[""]
    if len(whole) > 1:
        raise ExportError(f"{url} has {', '.join(files)} in several folders: {', '.join(sorted(whole))}")
    if whole:
        return places[whole[0]]
    fullest = max(places.values(), key=lambda place: sum((place / name).is_file() for name in files), default=None)
    missing = [name for name in files if fullest is None or not (fullest / name).is_file()]
    raise ExportError(f"{url} has no {', '.join(missing)}, at its root or in one folder below it")
