"""Unpack an archive that somebody else may have made: streaming, and without leaving the target folder."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
import zlib
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO, cast

from isal import igzip_threaded, isal_zlib

from tritonstack.errors import WorkFailedError

if TYPE_CHECKING:
    from typing_extensions import Buffer

CHUNK = 1 << 20
_DAMAGED = (
    tarfile.TarError,
    zlib.error,
    EOFError,
    cast("type[Exception]", isal_zlib.error),
)  # isal's stub: an instance


class UnpackError(WorkFailedError):
    """The archive is damaged, larger than allowed, or holds what an archive of models must not hold."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What an archive may grow to: ``total_bytes`` of all files together, and the number of members."""

    total_bytes: int = 256 << 30
    members: int = 100_000


DEFAULT_LIMITS = Limits()


def unpack(source: BinaryIO | Path, target: Path, *, limits: Limits = DEFAULT_LIMITS) -> None:
    """Unpack a ``.tar.gz`` into the new folder ``target``; memory does not depend on the archive's size.

    ``source`` is a file's path or a stream with ``read(n)`` (an S3 body, for one); a stream is read to its end and not
    closed. ``target`` must not exist, or be an empty folder. The folder appears whole or not at all: work is done
    beside it, under ``<target>.partial``.

    Refused: absolute names, ``..``, names that stand twice, links that lead outside, writing through a link, devices,
    pipes, and more than ``limits`` allow. Owners and times are not restored; of the modes only the owner's right to
    execute is. The gzip checksum is verified.

    Raises :class:`UnpackError`; whatever the source's ``read`` raises passes through.
    """
    partial = target.with_name(f"{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        _unpack_into(source, partial, limits)
        if target.exists():
            target.rmdir()
        partial.rename(target)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _unpack_into(source: BinaryIO | Path, folder: Path, limits: Limits) -> None:
    with ExitStack() as stack:
        try:
            plain = stack.enter_context(_gunzip(source))
            archive = stack.enter_context(tarfile.open(fileobj=plain, mode="r|", bufsize=CHUNK))
            unpacking = _Unpacking(folder, limits)
            for member in archive:
                unpacking.add(archive, member)
            while plain.read(CHUNK):  # to the end, so that gzip's checksum is compared
                pass
        except _DAMAGED as error:
            raise UnpackError(f"the archive is damaged or no .tar.gz: {error}") from error
        except OSError as error:
            if error.errno is None:  # gzip's own complaints (BadGzipFile) carry no number
                raise UnpackError(f"the archive is damaged or no .tar.gz: {error}") from error
            raise


class _Filled(io.RawIOBase):
    """A stream of which only ``read(n)`` is asked, as a file that igzip can read."""

    def __init__(self, source: BinaryIO) -> None:
        self.source = source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        view = memoryview(buffer)
        data = self.source.read(len(view))
        view[: len(data)] = data
        return len(data)


def _gunzip(source: BinaryIO | Path) -> BinaryIO:
    """The decompressed stream, worked out in a thread of its own."""
    opened = source if isinstance(source, Path) else _Filled(source)
    return cast("BinaryIO", igzip_threaded.open(opened, "rb", block_size=CHUNK))  # type: ignore[no-untyped-call]  # isal


@dataclass
class _Unpacking:
    """What has been written so far."""

    folder: Path
    limits: Limits
    files: set[PurePosixPath] = field(default_factory=set)
    links: set[PurePosixPath] = field(default_factory=set)
    members: int = 0
    bytes: int = 0

    def add(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        name = self.checked(member)
        path = self.folder / name
        if member.isdir():
            path.mkdir(parents=True, exist_ok=True)
            return
        if name in self.files or name in self.links or name == PurePosixPath():
            raise UnpackError(f"{member.name!r} stands twice in the archive")
        path.parent.mkdir(parents=True, exist_ok=True)
        if member.isreg():
            self.files.add(name)
            self.write(archive, member, path)
        elif member.issym():
            _inside(member, name.parent / member.linkname)
            self.links.add(name)
            path.symlink_to(member.linkname)
        elif member.islnk():
            origin = _inside(member, PurePosixPath(member.linkname))
            if origin not in self.files:
                raise UnpackError(f"{member.name!r} links to {member.linkname!r}, which is no file before it")
            self.files.add(name)
            path.hardlink_to(self.folder / origin)
        else:
            raise UnpackError(f"{member.name!r} is neither a file nor a folder nor a link")

    def checked(self, member: tarfile.TarInfo) -> PurePosixPath:
        """The member's name below the folder, once it and the limits are in order."""
        self.members += 1
        self.bytes += member.size if member.isreg() else 0
        if self.members > self.limits.members:
            raise UnpackError(f"more than {self.limits.members} members")
        if self.bytes > self.limits.total_bytes:
            raise UnpackError(f"more than {self.limits.total_bytes} bytes unpacked")
        name = _inside(member, PurePosixPath(member.name))
        for part in (name, *name.parents):
            above = part != name
            if (part in self.links and (above or member.isdir())) or (part in self.files and (above or member.isdir())):
                raise UnpackError(f"{member.name!r} lies below {str(part)!r}, which is no folder")
        return name

    def write(self, archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
        mode = 0o755 if member.mode & 0o100 else 0o644
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        content = cast("BinaryIO", archive.extractfile(member))
        try:
            descriptor = os.open(path, flags, mode)
        except FileExistsError:
            raise UnpackError(f"{member.name!r} stands twice in the archive") from None
        with os.fdopen(descriptor, "wb", buffering=0) as stream:
            shutil.copyfileobj(content, stream, CHUNK)
            if stream.tell() != member.size:
                raise UnpackError(f"{member.name!r} is cut off")


def _inside(member: tarfile.TarInfo, path: PurePosixPath) -> PurePosixPath:
    """``path`` without ``.`` and ``..``, which must not lead out of the folder."""
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            if not parts or path == PurePosixPath(member.name):
                raise UnpackError(f"{member.name!r} leads outside the folder")
            parts.pop()
        else:
            parts.append(part)
    if path.is_absolute() or "\0" in str(path):
        raise UnpackError(f"{member.name!r} leads outside the folder")
    return PurePosixPath(*parts)
