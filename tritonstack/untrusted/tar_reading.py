"""The members of a tar stream, one after the other; headers are checked against bounds before they are read.

``tarfile`` reads extended headers (GNU long names, pax records, sparse maps) whole, whatever size they state, follows
chains of them by recursion, and keeps every member: a small compressed archive makes it take gigabytes. Its parser of
one plain header (``TarInfo.frombuf``) is used here, and nothing else of it.

Source of the formats: POSIX.1-2017, pax, "pax Interchange Format"; GNU tar's manual, "Basic Tar Format".
"""

from __future__ import annotations

import gzip
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

try:
    from isal import igzip, isal_zlib

    open_gzip: Callable[..., Any] = igzip.open
    IsalError: Any = isal_zlib.error
except ModuleNotFoundError:  # as in the environment of the local AWS's emulator, which unpacks nothing large
    open_gzip, IsalError = gzip.open, zlib.error

BLOCK = tarfile.BLOCKSIZE
CHUNK = 1 << 20
_LONG_NAME, _LONG_LINK = tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK
_PAX = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE)
_GLOBAL = tarfile.XGLTYPE
_EXTENDED = (_LONG_NAME, _LONG_LINK, *_PAX, _GLOBAL)
_RECORD = re.compile(rb"([1-9][0-9]{0,9}) ([^=\n]+)=")
_OF_A_MEMBER = ("path", "linkpath", "size")
_LARGEST_SIZE = 1 << 62


DAMAGED = (zlib.error, IsalError, EOFError, OSError, ValueError, RecursionError, MemoryError)
"""What reading a damaged or hostile .tar.gz raises."""


class TarFormatError(ValueError):
    """The stream is no tar archive, is damaged, or a header is larger than any that is needed."""


class ReadableStream(Protocol):
    """A stream of bytes without a way back."""

    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True, kw_only=True)
class HeaderLimits:
    """The most bytes of extended headers (long names, pax records), each with its own header of 512 bytes."""

    of_a_member: int = 1 << 20  # a path has at most 4,096 on Linux; extended attributes may be larger
    of_all: int = 256 << 20


DEFAULT_HEADERS = HeaderLimits()


@dataclass(kw_only=True)
class TarMember:
    """A member, whose content can be read until the next member is read."""

    name: str
    type: bytes  # of ``tarfile``: ``REGTYPE``, ``SYMTYPE`` and so on
    mode: int
    link: str  # of a link: where it leads to, as the archive states it
    size: int  # bytes of its content; 0 for what has none
    _stream: ReadableStream = field(repr=False)
    _left: int = field(default=0, repr=False)

    @property
    def is_file(self) -> bool:
        return self.type in tarfile.REGULAR_TYPES

    @property
    def is_folder(self) -> bool:
        return self.type == tarfile.DIRTYPE

    @property
    def is_symlink(self) -> bool:
        return self.type == tarfile.SYMTYPE

    @property
    def is_hard_link(self) -> bool:
        return self.type == tarfile.LNKTYPE

    def read(self, most: int = CHUNK) -> bytes:
        """The next bytes of the content, at most ``most``; empty at its end. Raises TarFormatError at a cut."""
        wanted = min(most, self._left)
        content = _exactly(self._stream, wanted) if wanted else b""
        self._left -= len(content)
        return content


@dataclass(kw_only=True)
class _Extended:
    """Facts of the extended headers before a member."""

    fields: dict[str, str] = field(default_factory=dict)  # ``path``, ``linkpath``, ``size``
    bytes: int = 0  # that these headers have


def tar_members(stream: ReadableStream, *, limits: HeaderLimits = DEFAULT_HEADERS) -> Iterator[TarMember]:
    """The members of a plain tar stream (USTAR, GNU, pax). Memory does not grow with the archive.

    The rest of a member's content is skipped when the next one is read. Raises :class:`TarFormatError` for
    archives that are damaged or cut off, for headers over the limits, and for sparse files.
    """
    extended, all_bytes, is_first = _Extended(), 0, True
    while True:
        block = _block(stream)
        if block is None or not any(block):
            if is_first and block is None:
                raise TarFormatError("an empty file")
            if extended.bytes:
                raise TarFormatError("it ends after an extended header, without the member that it is of")
            return
        is_first = False
        header = _header(block)
        if header.type in _EXTENDED:
            cost = BLOCK + header.size
            extended.bytes += cost
            all_bytes += cost
            if extended.bytes > limits.of_a_member:
                raise TarFormatError(
                    f"the extended headers of one member have {extended.bytes:,} bytes, "
                    f"at most {limits.of_a_member:,} are read"
                )
            if all_bytes > limits.of_all:
                raise TarFormatError(f"its extended headers have more than {limits.of_all:,} bytes")
            _extend(extended, header.type, _content(stream, header.size))
            continue
        member = _member(stream, header, extended.fields)
        yield member
        while member.read():
            pass
        if padding := -member.size % BLOCK:
            _exactly(stream, padding)
        extended = _Extended()


def first_match(
    archive: Path, pattern: re.Pattern[str], *, most_members: int = 20_000, most_bytes: int = 4 << 30
) -> str | None:
    """The first group of the first member's name of a .tar.gz, or a plain .tar, that a pattern matches.

    None where none does, or the file cannot be read. It is read no further than ``most_members`` or ``most_bytes``.
    """
    try:
        with archive.open("rb") as stream:
            is_gzip = stream.read(2) == b"\x1f\x8b"
        with open_gzip(archive, "rb") if is_gzip else archive.open("rb") as plain:
            seen = 0
            for member in islice(tar_members(plain), most_members):
                seen += member.size
                if found := pattern.search(member.name):
                    return found[1]
                if seen > most_bytes:
                    return None
    except DAMAGED:
        return None
    return None


def _header(block: bytes) -> tarfile.TarInfo:
    try:
        header = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.HeaderError as error:
        raise TarFormatError(f"no tar archive, or a damaged one: {error}") from error
    if header.type == tarfile.GNUTYPE_SPARSE:
        raise _sparse(header.name)
    if not 0 <= header.size <= _LARGEST_SIZE:
        raise TarFormatError(f"member {header.name[:80]!r} states a size of {header.size} bytes")
    return header


def _member(stream: ReadableStream, header: tarfile.TarInfo, given: dict[str, str]) -> TarMember:
    size = header.size
    if text := given.get("size"):
        if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= _LARGEST_SIZE):
            raise TarFormatError(f"a pax record states the size {text[:40]!r}")
        size = int(text)
    if header.type in (tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.DIRTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE):
        size = 0  # such members have no content, whatever the size that is there
    name = given.get("path", header.name)
    return TarMember(
        name=name.rstrip("/") or name,
        type=tarfile.REGTYPE if header.type in tarfile.REGULAR_TYPES else header.type,
        mode=header.mode,
        link=given.get("linkpath", header.linkname),
        size=size,
        _stream=stream,
        _left=size,
    )


def _extend(extended: _Extended, kind: bytes, content: bytes) -> None:
    """Take what an extended header states about the next member."""
    if kind in (_LONG_NAME, _LONG_LINK):
        text = content.partition(b"\0")[0].decode("utf-8", "surrogateescape")
        extended.fields["path" if kind == _LONG_NAME else "linkpath"] = text
        return
    place = 0
    while place < len(content) and content[place]:
        record = _RECORD.match(content, place)
        end = place + int(record[1]) if record else 0
        if record is None or not record.end() < end <= len(content) or content[end - 1 : end] != b"\n":
            raise TarFormatError("a pax header whose records are damaged")
        if record[2].startswith(b"GNU.sparse."):
            raise _sparse("")
        key = record[2].decode("utf-8", "replace")
        if key in _OF_A_MEMBER:
            if kind == _GLOBAL:
                raise TarFormatError(f"a global pax header that states {key} for all members")
            extended.fields[key] = content[record.end() : end - 1].decode("utf-8", "surrogateescape")
        place = end


def _sparse(name: str) -> TarFormatError:
    said = f"member {name[:80]!r}" if name else "a member"
    return TarFormatError(
        f"{said} is a sparse file, which is not read; "
        "pack it again as a whole one (GNU tar: without --sparse; bsdtar: with --no-read-sparse)"
    )


def _block(stream: ReadableStream) -> bytes | None:
    """The next block; None at the end of the stream."""
    block = _up_to(stream, BLOCK)
    if block and len(block) < BLOCK:
        raise TarFormatError("it is cut off within a header")
    return block or None


def _content(stream: ReadableStream, size: int) -> bytes:
    """The content of an extended header, without its padding."""
    return _exactly(stream, size + -size % BLOCK)[:size]


def _exactly(stream: ReadableStream, size: int) -> bytes:
    content = _up_to(stream, size)
    if len(content) < size:
        raise TarFormatError("it is cut off")
    return content


def _up_to(stream: ReadableStream, size: int) -> bytes:
    """``size`` bytes, or fewer at the stream's end."""
    content = stream.read(size)
    if len(content) == size or not content:
        return content
    parts, have = [content], len(content)
    while have < size and (more := stream.read(size - have)):
        parts.append(more)
        have += len(more)
    return b"".join(parts)
