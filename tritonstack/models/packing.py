"""A folder as a ``.tar.gz``: the same bytes for the same content, compressed in parallel, in bounded memory."""

from __future__ import annotations

import hashlib
import os
import stat
import struct
import tarfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from isal import isal_zlib

from tritonstack.disk import naming
from tritonstack.errors import InputError, Problem, WorkFailedError, refuse
from tritonstack.models.source import is_junk

# A container unpacks its archive at every cold start. Weights hardly compress, and deflate's *stored* blocks (5 bytes
# for each 65,535) unpack at the speed of a copy. Source of the forms: RFC 1951 (deflate, 3.2.4), RFC 1952 (gzip).
STORED_BLOCK = 65_535
PIECE = 16 * STORED_BLOCK
"""Bytes of a piece, compressed or stored: its size decides the archive's bytes, the number of threads does not."""

_LEVEL = 1
_HEADER = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"  # deflate, no flags, no time, no level, operating system unknown
_LAST_BLOCK = b"\x01\x00\x00\xff\xff"  # an empty stored block, marked as the last
_VECTORS = 512  # buffers handed to one writev call; Linux allows 1,024


@dataclass(frozen=True, kw_only=True)
class Written:
    """What a stream came to: bytes before and after compression and both SHA-256 sums (hexadecimal)."""

    plain_bytes: int
    plain_sha256: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class _Piece:
    """A finished piece: what is written for it, and its checksum before compression."""

    buffers: Sequence[bytes | memoryview]
    crc: int
    plain: bytes | memoryview


class GzipWriter:
    """Writes pieces in order into ``stream``, an unbuffered file; ``close`` ends the member."""

    def __init__(self, stream: BinaryIO, *, threads: int | None = None) -> None:
        """``threads``: how many pieces are worked on at once; by default as many as there are cores."""
        self._stream = stream
        self._threads = threads or len(os.sched_getaffinity(0))
        self._workers = ThreadPoolExecutor(self._threads, thread_name_prefix="deflate")
        self._hashers = (ThreadPoolExecutor(1), ThreadPoolExecutor(1))
        self._plain_sum, self._sum = hashlib.sha256(), hashlib.sha256()
        self._hashing: deque[Future[None]] = deque()
        self._pieces: deque[Future[_Piece]] = deque()
        self._crc = self._plain_bytes = self._bytes = 0
        self._emit([_HEADER])

    def add(self, piece: bytes | memoryview, *, compress: bool) -> None:
        """Append at most ``PIECE`` bytes; the buffer must not change afterwards."""
        if len(piece) > PIECE:
            raise ValueError(f"a piece of {len(piece)} bytes, at most {PIECE} allowed")
        self._pieces.append(self._workers.submit(_compressed if compress else _stored, piece))
        while len(self._pieces) > self._threads + 1:
            self._write_oldest()

    def close(self) -> Written:
        """Write what is left and the trailer."""
        while self._pieces:
            self._write_oldest()
        self._emit([_LAST_BLOCK, struct.pack("<II", self._crc, self._plain_bytes & 0xFFFFFFFF)])
        while self._hashing:
            self._hashing.popleft().result()
        return Written(
            plain_bytes=self._plain_bytes,
            plain_sha256=self._plain_sum.hexdigest(),
            bytes=self._bytes,
            sha256=self._sum.hexdigest(),
        )

    def __enter__(self) -> GzipWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pool in (self._workers, *self._hashers):
            pool.shutdown(cancel_futures=True)

    def _write_oldest(self) -> None:
        piece = self._pieces.popleft().result()
        size = len(piece.plain)
        self._crc = isal_zlib.crc32_combine(self._crc, piece.crc, size)
        self._plain_bytes += size
        self._hashing.append(self._hashers[0].submit(self._plain_sum.update, piece.plain))
        self._emit(piece.buffers)
        while len(self._hashing) > 2 * self._threads + 2:  # what waits here keeps its piece in memory
            self._hashing.popleft().result()

    def _emit(self, buffers: Sequence[bytes | memoryview]) -> None:
        self._bytes += sum(map(len, buffers))
        self._hashing.append(self._hashers[1].submit(_update_all, self._sum, buffers))
        for start in range(0, len(buffers), _VECTORS):
            _write_all(self._stream, buffers[start : start + _VECTORS])


def _compressed(piece: bytes | memoryview) -> _Piece:
    compressor = isal_zlib.compressobj(_LEVEL, isal_zlib.DEFLATED, -15)
    start = compressor.compress(piece)
    # A synchronising flush ends on a whole byte without ending the stream: pieces can be laid end to end.
    return _Piece([start, compressor.flush(isal_zlib.Z_SYNC_FLUSH)], isal_zlib.crc32(piece), piece)


def _stored(piece: bytes | memoryview) -> _Piece:
    view = memoryview(piece)
    buffers: list[bytes | memoryview] = []
    for start in range(0, len(view), STORED_BLOCK):
        block = view[start : start + STORED_BLOCK]
        buffers += [struct.pack("<BHH", 0, len(block), len(block) ^ 0xFFFF), block]
    return _Piece(buffers, isal_zlib.crc32(piece), piece)


def _update_all(digest: hashlib._Hash, buffers: Sequence[bytes | memoryview]) -> None:
    for buffer in buffers:
        digest.update(buffer)


def _write_all(stream: BinaryIO, buffers: Sequence[bytes | memoryview]) -> None:
    """``writev`` until everything is written: the kernel may take less than it was given."""
    left = deque(memoryview(buffer) for buffer in buffers if len(buffer))
    while left:
        written = os.writev(stream.fileno(), list(left))
        while left and written >= len(left[0]):
            written -= len(left.popleft())
        if written:
            left[0] = left[0][written:]


STORE_ABOVE = 0.91
"""A file whose sample compresses to more than this share is stored: at most 10 % larger, and unpacked far sooner."""

_SAMPLES = 16
_SAMPLE_BYTES = 32 << 10
_RECORD = 20 * tarfile.BLOCKSIZE  # tar files end on a whole record

Progress = Callable[[int], None]
"""Called with the number of bytes read since the last call."""


@dataclass(frozen=True, kw_only=True)
class PackResult:
    """A packed archive: its file, the sizes and SHA-256 sums of the .tar.gz and of the tar inside, and its members."""

    archive: Path
    bytes: int
    sha256: str
    tar_bytes: int
    tar_sha256: str
    members: tuple[str, ...]


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
    are left out (:data:`tritonstack.models.source.JUNK`). Links are packed as what they lead to, inside the folder
    only. The same content gives the same bytes on one kind of machine, whatever the number of threads. The archive
    appears whole or not at all.

    Raises :class:`InputError` for what cannot be packed (a link that leads outside, a device, an empty folder), and
    :class:`WorkFailedError` where a file changes while it is read.
    """
    entries = list(_entries(folder))
    partial = target.with_name(f"{target.name}.partial")
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with (
            naming(partial),
            partial.open("wb", buffering=0) as stream,
            GzipWriter(stream, threads=threads) as writer,
        ):
            _Packing(writer, progress or (lambda _bytes: None)).run(entries)
            written = writer.close()
        partial.replace(target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return PackResult(
        archive=target,
        bytes=written.bytes,
        sha256=written.sha256,
        tar_bytes=written.plain_bytes,
        tar_sha256=written.plain_sha256,
        members=tuple(entry.name for entry in entries),
    )


def pack_reporting(folder: Path, target: Path, *, name: str, report: Callable[[str], None]) -> PackResult:
    """:func:`pack`, with the share that is packed reported as ``packing <name>: 42 %``."""
    total = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) or 1
    done = 0

    def progress(read: int) -> None:
        nonlocal done
        done += read
        report(f"packing {name}: {100 * done // total} %")

    return pack(folder, target, progress=progress)


class _Packing:
    """Turns entries into pieces: small things share a compressed piece, a stored file begins one of its own."""

    def __init__(self, writer: GzipWriter, progress: Progress) -> None:
        self.writer = writer
        self.progress = progress
        self.pending = bytearray()
        self.total = 0

    def run(self, entries: list[_Entry]) -> None:
        for entry in entries:
            self.compress(entry.header())
            if not entry.is_folder and entry.size:
                self.file(entry)
                self.compress(bytes(-entry.size % tarfile.BLOCKSIZE))
        end = 2 * tarfile.BLOCKSIZE
        self.compress(bytes(end + -(self.total + end) % _RECORD))
        self.flush()

    def compress(self, data: bytes | memoryview) -> None:
        self.total += len(data)
        self.pending += data
        while len(self.pending) >= PIECE:
            self.writer.add(bytes(self.pending[:PIECE]), compress=True)
            del self.pending[:PIECE]

    def flush(self) -> None:
        if self.pending:
            self.writer.add(bytes(self.pending), compress=True)
            self.pending.clear()

    def file(self, entry: _Entry) -> None:
        with entry.path.open("rb", buffering=0) as stream:
            stored = _stores(stream, entry.size)
            if stored:
                self.flush()
            left = entry.size
            while left:
                data = _read(stream, min(left, PIECE))
                if not data:
                    raise WorkFailedError(f"{entry.path} became shorter while it was packed; pack it again")
                left -= len(data)
                if stored:
                    self.total += len(data)
                    self.writer.add(data, compress=False)
                else:
                    self.compress(data)
                self.progress(len(data))


def _read(stream: BinaryIO, size: int) -> bytes:
    """Exactly ``size`` bytes, or fewer at the end of the file: the split into pieces must not depend on the kernel."""
    data = stream.read(size)
    while data and len(data) < size:
        more = stream.read(size - len(data))
        if not more:
            break
        data += more
    return data


def _stores(stream: BinaryIO, size: int) -> bool:
    """Whether a file is stored rather than compressed, decided by samples spread over it."""
    if size <= _SAMPLES * _SAMPLE_BYTES:
        sample = _read(stream, size)
    else:
        parts: list[bytes] = []
        for index in range(_SAMPLES):
            stream.seek(index * (size - _SAMPLE_BYTES) // (_SAMPLES - 1))
            parts.append(_read(stream, _SAMPLE_BYTES))
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
    if item.is_symlink():
        try:
            real = path.resolve(strict=True)
        except (OSError, RuntimeError):
            return f"a link that leads nowhere, {path.readlink()}"
        if not real.is_relative_to(root.resolve()):
            return f"a link that leads outside, {path.readlink()}"
        if real.is_dir() and path.parent.resolve().is_relative_to(real):
            return f"a link to a folder that contains it, {path.readlink()}"
    if not (item.is_file() or item.is_dir()):
        return "neither a file nor a folder"
    return ""
