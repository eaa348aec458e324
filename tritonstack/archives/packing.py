"""A folder as a ``.tar.gz``: the same bytes for the same content, compressed in parallel, in bounded memory."""

from __future__ import annotations

import hashlib
import os
import stat
import struct
import tarfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from isal import isal_zlib

from tritonstack.disk import naming
from tritonstack.errors import InputError, Problem, WorkFailedError, refuse
from tritonstack.models.source_files import is_junk
from tritonstack.untrusted.folder_files import unfit

# A container unpacks its archive at every cold start. Weights hardly compress, and deflate's *stored* blocks (5 bytes
# for each 65,535) unpack at the speed of a copy. Source of the forms: RFC 1951 (deflate, 3.2.4), RFC 1952 (gzip).
STORED_BLOCK = 65_535
PIECE = 16 * STORED_BLOCK
"""Bytes of a piece, compressed or stored: its size decides the archive's bytes, the number of threads does not."""

_LEVEL = 1
_HEADER = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"  # deflate, no flags, no time, no level, operating system unknown
_LAST_BLOCK = b"\x01\x00\x00\xff\xff"  # an empty stored block, marked as the last
_BUFFER = 1 << 20


@dataclass(frozen=True)
class _Piece:
    """A finished piece: what is written for it, and its checksum before compression."""

    buffers: Sequence[bytes | memoryview]
    crc: int
    plain: bytes


def _compressed(piece: bytes) -> _Piece:
    compressor = isal_zlib.compressobj(_LEVEL, isal_zlib.DEFLATED, -15)
    start = compressor.compress(piece)
    # A synchronising flush ends on a whole byte without ending the stream: pieces can be laid end to end.
    return _Piece([start, compressor.flush(isal_zlib.Z_SYNC_FLUSH)], isal_zlib.crc32(piece), piece)


def _stored(piece: bytes) -> _Piece:
    view = memoryview(piece)
    buffers: list[bytes | memoryview] = []
    for start in range(0, len(view), STORED_BLOCK):
        block = view[start : start + STORED_BLOCK]
        buffers += [struct.pack("<BHH", 0, len(block), len(block) ^ 0xFFFF), block]
    return _Piece(buffers, isal_zlib.crc32(piece), piece)


STORE_ABOVE = 0.91
"""A file whose sample compresses to more than this share is stored: at most 10 % larger, and unpacked far sooner."""

_SAMPLES = 16
_SAMPLE_BYTES = 32 << 10
_RECORD = 20 * tarfile.BLOCKSIZE  # tar files end on a whole record

Progress = Callable[[int], None]
"""Called with the number of bytes read since the last call."""


@dataclass(frozen=True, kw_only=True)
class PackResult:
    """A packed archive: its file, the sizes and SHA-256 sums of the .tar.gz and of the tar inside."""

    archive: Path
    bytes: int
    sha256: str
    tar_bytes: int
    tar_sha256: str


@dataclass(frozen=True, kw_only=True)
class _Entry:
    name: str
    path: Path
    is_folder: bool
    size: int
    executable: bool

    def header(self) -> bytes:
        """The tar header: everything that is not content is fixed, but the right to execute."""
        info = tarfile.TarInfo(self.name)
        info.type = tarfile.DIRTYPE if self.is_folder else tarfile.REGTYPE
        info.mode = 0o755 if self.is_folder or self.executable else 0o644
        info.size = self.size
        return info.tobuf(tarfile.PAX_FORMAT)


def pack(folder: Path, target: Path, *, threads: int | None = None, progress: Progress | None = None) -> PackResult:
    """Pack the content of ``folder`` into ``target``; the archive's root is the folder's content, not the folder.

    Names are sorted; times, owners and modes are fixed, but a file stays executable. Files that editors leave behind
    are left out (:data:`tritonstack.models.source_files.JUNK`). Links are packed as what they lead to, in the folder
    only. The same content gives the same bytes on one kind of machine, whatever the number of threads. The archive
    appears whole or not at all.

    Raises :class:`InputError` for what cannot be packed (a link that leads outside, a device, an empty folder), and
    :class:`WorkFailedError` where a file changes while it is read.
    """
    pieces = _pieces(_parts(list(_entries(folder)), progress or (lambda _bytes: None)))
    partial = target.with_name(f"{target.name}.partial")
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with naming(partial), partial.open("wb", buffering=_BUFFER) as stream:
            packed = _write(stream, pieces, target, threads=threads or len(os.sched_getaffinity(0)))
        partial.replace(target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return packed


def pack_reporting(folder: Path, target: Path, *, name: str, report: Callable[[str], None]) -> PackResult:
    """:func:`pack`, with the share that is packed reported as ``packing <name>: 42 %``."""
    total = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) or 1
    done = 0

    def progress(read: int) -> None:
        nonlocal done
        done += read
        report(f"packing {name}: {100 * done // total} %")

    return pack(folder, target, progress=progress)


_Pieces = Iterator[tuple[bytes, bool]]
"""Bytes of the tar in their order, each with whether they are compressed or stored."""


def _write(stream: BinaryIO, pieces: _Pieces, target: Path, *, threads: int) -> PackResult:
    """Write pieces, which ``threads`` compress, as one gzip member."""
    plain_sum, packed_sum = hashlib.sha256(), hashlib.sha256()
    crc = plain_bytes = 0
    _emit(stream, packed_sum, [_HEADER])
    with ThreadPoolExecutor(threads) as workers, ThreadPoolExecutor(1) as hasher:
        for piece in _finished(pieces, workers, ahead=threads + 1):
            hashing = hasher.submit(plain_sum.update, piece.plain)
            crc = isal_zlib.crc32_combine(crc, piece.crc, len(piece.plain))
            plain_bytes += len(piece.plain)
            _emit(stream, packed_sum, piece.buffers)
            hashing.result()
    _emit(stream, packed_sum, [_LAST_BLOCK, struct.pack("<II", crc, plain_bytes & 0xFFFFFFFF)])
    return PackResult(
        archive=target,
        bytes=stream.tell(),
        sha256=packed_sum.hexdigest(),
        tar_bytes=plain_bytes,
        tar_sha256=plain_sum.hexdigest(),
    )


def _emit(stream: BinaryIO, digest: hashlib._Hash, buffers: Sequence[bytes | memoryview]) -> None:
    for buffer in buffers:
        stream.write(buffer)
        digest.update(buffer)


def _finished(pieces: _Pieces, workers: ThreadPoolExecutor, *, ahead: int) -> Iterator[_Piece]:
    """The pieces in their order, with at most ``ahead`` others in memory."""
    waiting: deque[Future[_Piece]] = deque()
    for data, compress in pieces:
        waiting.append(workers.submit(_compressed if compress else _stored, data))
        if len(waiting) > ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _pieces(parts: _Pieces) -> _Pieces:
    """Parts of the tar as pieces: small things share a compressed one, a stored file begins one of its own."""
    pending = bytearray()
    for data, compress in parts:
        if compress:
            pending += data
            while len(pending) >= PIECE:
                yield bytes(pending[:PIECE]), True
                del pending[:PIECE]
            continue
        if pending:
            yield bytes(pending), True
            pending.clear()
        yield data, False
    if pending:
        yield bytes(pending), True


def _parts(entries: Iterable[_Entry], progress: Progress) -> _Pieces:
    """The headers and contents of a tar, and its end."""
    total = 2 * tarfile.BLOCKSIZE
    for entry in entries:
        header, padding = entry.header(), bytes(-entry.size % tarfile.BLOCKSIZE)
        total += len(header) + entry.size + len(padding)
        yield header, True
        if entry.size:
            yield from _content(entry, progress)
            yield padding, True
    yield bytes(2 * tarfile.BLOCKSIZE + -total % _RECORD), True


def _content(entry: _Entry, progress: Progress) -> _Pieces:
    with entry.path.open("rb") as stream:
        stored = _stores(stream, entry.size)
        left = entry.size
        while left:
            data = stream.read(min(left, PIECE))
            if not data:
                raise WorkFailedError(f"{entry.path} became shorter while it was packed; pack it again")
            left -= len(data)
            yield data, not stored
            progress(len(data))


def _stores(stream: BinaryIO, size: int) -> bool:
    """Whether a file is stored rather than compressed, decided by samples spread over it."""
    if size <= _SAMPLES * _SAMPLE_BYTES:
        sample = stream.read(size)
    else:
        parts: list[bytes] = []
        for index in range(_SAMPLES):
            stream.seek(index * (size - _SAMPLE_BYTES) // (_SAMPLES - 1))
            parts.append(stream.read(_SAMPLE_BYTES))
        sample = b"".join(parts)
    stream.seek(0)
    return not sample or len(isal_zlib.compress(sample, _LEVEL)) / len(sample) > STORE_ABOVE


def _entries(folder: Path) -> Iterator[_Entry]:
    """Everything to pack, parents before their content, sorted by name."""
    if not folder.is_dir():
        raise InputError([Problem(file=str(folder), found="no folder", allowed="a folder to pack")])
    found: list[_Entry] = []
    problems: list[Problem] = []
    _collect(folder, folder, "", found, problems)
    if not found and not problems:
        problems.append(Problem(file=str(folder), found="an empty folder", allowed="a folder with models"))
    refuse(problems)
    yield from sorted(found, key=lambda entry: entry.name.split("/"))


def _collect(root: Path, folder: Path, prefix: str, found: list[_Entry], problems: list[Problem]) -> None:
    for item in os.scandir(folder):
        if is_junk(item.name):
            continue
        path, name = Path(item.path), f"{prefix}{item.name}"
        reason = _unfit(root, path, item)
        if reason:
            problems.append(Problem(file=str(path), found=reason, allowed="files, folders, links inside the folder"))
            continue
        status = path.stat()
        is_folder = stat.S_ISDIR(status.st_mode)
        size = 0 if is_folder else status.st_size
        executable = bool(status.st_mode & stat.S_IXUSR)
        found.append(_Entry(name=name, path=path, is_folder=is_folder, size=size, executable=executable))
        if is_folder:
            _collect(root, path, f"{name}/", found, problems)


def _unfit(root: Path, path: Path, item: os.DirEntry[str]) -> str:
    """Why something cannot be packed, or nothing."""
    found = unfit(path, root)
    if not found and item.is_symlink() and path.is_dir() and path.parent.resolve().is_relative_to(path.resolve()):
        return f"a link to a folder that contains it, {path.readlink()}"
    return found
