"""Unpack an untrusted archive: streamed, inside its folder, of bounded size.

Why not tarfile's data filter: docs/decisions/0022-unpacking-archives.md.
"""

from __future__ import annotations

import os
import shutil
import tarfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from isal import igzip, isal_zlib

from tritonstack.disk import disk_full

CHUNK = 1024 * 1024
open_gzip: Callable[..., Any] = igzip.open
IsalError: Any = isal_zlib.error


class UnsafeArchiveError(Exception):
    """The archive is damaged, too large, or would write outside its folder; the message names the member."""


@dataclass(frozen=True, kw_only=True)
class UnpackLimits:
    """The most bytes and members that an archive may unpack to."""

    max_bytes: int = 64 << 30
    max_members: int = 200_000


DEFAULT_LIMITS = UnpackLimits()


def unpack(
    archive: Path, folder: Path, *, limits: UnpackLimits = DEFAULT_LIMITS, cancelled: Callable[[], bool] = lambda: False
) -> int:
    """Unpack a gzip-compressed tar archive into ``folder``, which must not exist yet. Memory does not grow with it.

    Files and folders are written first and symbolic links last, so that nothing is ever written through a link; then
    every link is resolved and must lead to something inside. Owners, set-id bits and times are not taken over.

    Returns:
        the bytes written.

    Raises:
        UnsafeArchiveError: a member leaves the folder, is a device, or the archive is damaged or over the limits. What
            was unpacked is removed.
    """
    folder.mkdir(parents=True)
    try:
        with open_gzip(archive, "rb") as plain, tarfile.open(fileobj=plain, mode="r|") as tar:
            written = _Unpacking(folder, limits, cancelled).run(tar)
            while plain.read(CHUNK):  # to the end, where gzip's checksum stands
                pass
            return written
    except (tarfile.TarError, zlib.error, IsalError, EOFError, OSError, ValueError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        if disk_full(error):
            raise  # the archive may be fine
        raise UnsafeArchiveError(f"the archive is damaged or cannot be written: {error}") from error
    except UnsafeArchiveError:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def member_path(name: str) -> PurePosixPath:
    """A member's path inside the folder. Raises UnsafeArchiveError for a path that leaves it."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or any(ord(letter) < 32 for letter in name):
        raise UnsafeArchiveError(f"member {name!r} is no path inside the archive")
    return path


class _Unpacking:
    def __init__(self, folder: Path, limits: UnpackLimits, cancelled: Callable[[], bool]) -> None:
        self._folder = folder
        self._limits = limits
        self._cancelled = cancelled
        self._written = 0
        self._links: list[tuple[Path, str]] = []

    def run(self, tar: tarfile.TarFile) -> int:
        for count, member in enumerate(tar, start=1):
            if count > self._limits.max_members:
                raise UnsafeArchiveError(f"more than {self._limits.max_members} members")
            self._stop_if_cancelled()
            self._member(tar, member)
        for place, target in self._links:
            self._check_inside(place.parent, place, target)  # an earlier link may be on the way to this one
            place.parent.mkdir(parents=True, exist_ok=True)
            place.unlink(missing_ok=True)
            place.symlink_to(target)
        for place, target in self._links:
            self._check_inside(place, place, target)  # a later link may have changed where an earlier one leads
        return self._written

    def _member(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        place = self._folder / member_path(member.name)
        if member.isdir():
            place.mkdir(parents=True, exist_ok=True)
            return
        if member.issym():
            self._links.append((place, member.linkname))
            return
        if not (member.isreg() or member.islnk()):
            raise UnsafeArchiveError(f"member {member.name!r} is a device or of an unknown kind")
        place.parent.mkdir(parents=True, exist_ok=True)
        if member.islnk():
            source = self._folder / member_path(member.linkname)
            if not source.is_file():
                raise UnsafeArchiveError(f"member {member.name!r} links to {member.linkname!r}, which is not unpacked")
            place.unlink(missing_ok=True)
            os.link(source, place)
        else:
            content = tar.extractfile(member)
            if content is None:
                raise UnsafeArchiveError(f"member {member.name!r} has no content")
            self._write(content, place, executable=bool(member.mode & 0o100))

    def _write(self, source: IO[bytes], place: Path, *, executable: bool) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        place.unlink(missing_ok=True)  # a later member of the same name replaces the earlier one, as tar does
        with os.fdopen(os.open(place, flags, 0o755 if executable else 0o644), "wb") as file:
            while chunk := source.read(CHUNK):
                self._written += len(chunk)
                if self._written > self._limits.max_bytes:
                    raise UnsafeArchiveError(f"more than {self._limits.max_bytes} bytes unpacked")
                self._stop_if_cancelled()
                file.write(chunk)

    def _stop_if_cancelled(self) -> None:
        if self._cancelled():
            raise UnsafeArchiveError("unpacking was given up")

    def _check_inside(self, resolved: Path, link: Path, target: str) -> None:
        try:
            real = Path(os.path.realpath(resolved, strict=True))
        except FileNotFoundError:
            real = Path(os.path.realpath(resolved))
        # Any other error, as of a path that is too long, is raised: without ``strict`` realpath would go on unresolved.
        if not real.is_relative_to(self._folder.resolve()) or PurePosixPath(target).is_absolute():
            raise UnsafeArchiveError(f"link {link.relative_to(self._folder)} leads outside, to {target!r}")
