"""Unpack an untrusted archive: streamed, inside its folder, of bounded size.

Why not tarfile's data filter, nor tarfile: docs/decisions/0022-unpacking-archives.md.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tritonstack.disk import disk_full
from tritonstack.untrusted.tar_reading import CHUNK, DAMAGED, ReadableStream, TarMember, open_gzip, tar_members


class UnsafeArchiveError(Exception):
    """The archive is damaged, too large, or would write outside its folder; the message names the member."""


@dataclass(frozen=True, kw_only=True)
class UnpackLimits:
    """The most bytes and members that an archive may unpack to."""

    max_bytes: int = 64 << 30
    max_members: int = 200_000  # files, links and folders, those that only a path names included


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
        with open_gzip(archive, "rb") as plain:
            unpacking = _Unpacking(folder, limits, cancelled)
            written = unpacking.run(tar_members(plain))
            unpacking.read_to_end(plain)
            return written
    except DAMAGED as error:
        shutil.rmtree(folder, ignore_errors=True)
        if disk_full(error):
            raise  # the archive may be fine
        said = str(error) or type(error).__name__
        raise UnsafeArchiveError(f"the archive is damaged or cannot be written: {said}") from error
    except BaseException:
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
        self._written = self._members = 0
        self._links: list[tuple[Path, str]] = []

    def run(self, members: Iterable[TarMember]) -> int:
        for member in members:
            self._count(1)
            self._stop_if_cancelled()
            self._member(member)
        for place, target in self._links:
            self._check_inside(place.parent, place, target)  # an earlier link may be on the way to this one
            self._make_folder(place.parent)
            place.unlink(missing_ok=True)
            place.symlink_to(target)
        for place, target in self._links:
            self._check_inside(place, place, target)  # a later link may have changed where an earlier one leads
        return self._written

    def read_to_end(self, plain: ReadableStream) -> None:
        """Read from the archive's end to the end of the gzip stream, which has its checksum."""
        while chunk := plain.read(CHUNK):
            self._count_bytes(len(chunk))
            self._stop_if_cancelled()

    def _member(self, member: TarMember) -> None:
        place = self._folder / member_path(member.name)
        if member.is_folder:
            self._make_folder(place)
        elif member.is_symlink:
            self._links.append((place, member.link))
        elif member.is_hard_link:
            self._make_folder(place.parent)
            source = self._folder / member_path(member.link)
            if not source.is_file():
                raise UnsafeArchiveError(f"member {member.name!r} links to {member.link!r}, which is not unpacked")
            place.unlink(missing_ok=True)
            os.link(source, place)
        elif member.is_file:
            self._make_folder(place.parent)
            self._write(member, place)
        else:
            raise UnsafeArchiveError(f"member {member.name!r} is a device or of an unknown kind")

    def _make_folder(self, place: Path) -> None:
        """Make a folder, and count those above it that no member states: a path of 4,096 bytes names 2,048."""
        missing = 0
        for each in (place, *place.parents):
            if each.is_dir():
                break
            missing += 1
        self._count(max(missing - 1, 0))
        place.mkdir(parents=True, exist_ok=True)

    def _write(self, member: TarMember, place: Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        place.unlink(missing_ok=True)  # a later member of the same name replaces the earlier one, as tar does
        with os.fdopen(os.open(place, flags, 0o755 if member.mode & 0o100 else 0o644), "wb") as file:
            while chunk := member.read(CHUNK):
                self._count_bytes(len(chunk))
                self._stop_if_cancelled()
                file.write(chunk)

    def _count(self, members: int) -> None:
        self._members += members
        if self._members > self._limits.max_members:
            raise UnsafeArchiveError(f"more than {self._limits.max_members} members")

    def _count_bytes(self, size: int) -> None:
        self._written += size
        if self._written > self._limits.max_bytes:
            raise UnsafeArchiveError(f"more than {self._limits.max_bytes} bytes unpacked")

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
