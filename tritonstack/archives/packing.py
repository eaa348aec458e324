"""A folder as a ``.tar.gz``: the same bytes for the same content, in memory that does not depend on its size."""

from __future__ import annotations

import os
import stat
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tritonstack.archives.deflate import PIECE, GzipWriter, compressed_share
from tritonstack.archives.folder import is_junk
from tritonstack.disk import naming
from tritonstack.errors import InputError, Problem, WorkFailedError

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
    are left out (:data:`tritonstack.archives.folder.JUNK`). Links are packed as what they lead to, inside the folder
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


def stores(path: Path) -> bool:
    """Whether a file is stored rather than compressed, decided by samples spread over it."""
    with path.open("rb", buffering=0) as stream:
        return _stores(stream, path.stat().st_size)


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
    if size <= _SAMPLES * _SAMPLE_BYTES:
        sample = _read(stream, size)
    else:
        parts: list[bytes] = []
        for index in range(_SAMPLES):
            stream.seek(index * (size - _SAMPLE_BYTES) // (_SAMPLES - 1))
            parts.append(_read(stream, _SAMPLE_BYTES))
        sample = b"".join(parts)
    stream.seek(0)
    return compressed_share(sample) > STORE_ABOVE


def _entries(folder: Path) -> Iterator[_Entry]:
    """Everything to pack, parents before their content, sorted by name."""
    if not folder.is_dir():
        raise InputError([Problem(file=str(folder), found="no folder", allowed="a folder to pack")])
    found: list[_Entry] = []
    problems: list[Problem] = []
    _collect(folder, folder, "", found, problems)
    if not found and not problems:
        problems.append(Problem(file=str(folder), found="an empty folder", allowed="a folder with models"))
    if problems:
        raise InputError(problems)
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
