"""Pretrained weights out of an object of S3, which a build has downloaded: one file, or a packed folder of them."""

from __future__ import annotations

import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from tritonstack.errors import WorkFailedError
from tritonstack.exporters.progress import say

TAR_SUFFIXES = (".tar.gz", ".tgz")
ZIP_SUFFIX = ".zip"
MOST_BYTES = 64 << 30
"""The most that is unpacked of one object."""

_CHUNK = 1 << 20
_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError)
"""What the readers raise for a damaged file; RuntimeError for an encrypted one."""


@dataclass(frozen=True)
class _Member:
    """A member of a packed folder. ``open`` gives its content, None for a link or a device."""

    name: str
    open: Callable[[], IO[bytes] | None]


def lay_out(source: Mapping[str, str], files: Sequence[str]) -> Path:
    """The folder that holds the named files of a model.

    An object whose key ends in ``.tar.gz``, ``.tgz`` or ``.zip`` is a folder laid out like a model of the hub, packed
    as it is or below one folder. Only the named files are unpacked, each to a name that this function makes: what the
    other members are called does not matter. Any other object is the one file that is asked for.

    Args:
        source: ``{"s3": its URI, "file": where the build put it, "folder": an empty folder for what is unpacked}``.
        files: names inside the model's folder.

    Raises:
        WorkFailedError: the object is damaged, or files are missing: all named.
    """
    url = source["s3"]
    if "file" not in source or "folder" not in source:
        raise WorkFailedError(f"{url} is not downloaded: `tritonstack build` does it, an export has no AWS credentials")
    file, folder = Path(source["file"]), Path(source["folder"])
    folder.mkdir(parents=True, exist_ok=True)
    if not url.endswith((*TAR_SUFFIXES, ZIP_SUFFIX)):
        place = _one_file(url, file, folder, files)
    else:
        members = _zip_members if url.endswith(ZIP_SUFFIX) else _tar_members
        try:
            places = _unpack(members(file), folder, files)
        except _DAMAGED as error:
            raise WorkFailedError(f"{url} is damaged or cannot be unpacked: {error}") from error
        place = _chosen(url, places, files)
    say(f"weights from {url}")
    return place


def _one_file(url: str, file: Path, folder: Path, files: Sequence[str]) -> Path:
    """The object under the name that is asked for."""
    if len(files) != 1:
        raise WorkFailedError(
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
    """Folder in the packed one, "" for its root → where the wanted files of that folder were put."""
    wanted = {PurePosixPath(name).parts: name for name in files}
    places: dict[str, Path] = {}
    left = MOST_BYTES
    for member in members:
        parts = PurePosixPath(member.name).parts
        for base, name in (("", wanted.get(parts)), (parts[0] if parts else "", wanted.get(parts[1:]))):
            if name is None:
                continue
            place = places.setdefault(base, folder / str(len(places))) / name
            left -= _write(member, place, most=left)
            break
    return places


def _write(member: _Member, place: Path, *, most: int) -> int:
    """Put a member's content into a file; its bytes."""
    content = member.open()
    if content is None:
        raise WorkFailedError(f"{member.name} is packed as a link or a device: pack the files themselves (tar -h)")
    place.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with content, place.open("wb") as file:
        while chunk := content.read(_CHUNK):
            written += len(chunk)
            if written > most:
                raise WorkFailedError(f"{member.name} and what stands before it unpack to more than {MOST_BYTES} bytes")
            file.write(chunk)
    return written


def _chosen(url: str, places: Mapping[str, Path], files: Sequence[str]) -> Path:
    """The packed folder's root where all files are, or the one folder in it where they are."""
    whole = [base for base, place in places.items() if all((place / name).is_file() for name in files)]
    if "" in whole:
        return places[""]
    if len(whole) > 1:
        raise WorkFailedError(f"{url} has {', '.join(files)} in several folders: {', '.join(sorted(whole))}")
    if whole:
        return places[whole[0]]
    fullest = max(places.values(), key=lambda place: sum((place / name).is_file() for name in files), default=None)
    missing = [name for name in files if fullest is None or not (fullest / name).is_file()]
    raise WorkFailedError(f"{url} has no {', '.join(missing)}, at its root or in one folder below it")
