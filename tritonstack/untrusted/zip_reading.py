"""Members of an untrusted zip file, read up to a bound, whatever sizes the file states."""

from __future__ import annotations

import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

LARGEST_DIRECTORY = 16 << 20
"""Bytes of the list of members: about 160,000 of them, as many as a model has tensors at most."""

DAMAGED_ZIP = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    OSError,
    EOFError,
    ValueError,
    LookupError,
    RuntimeError,  # a password, a compression that Python lacks, RecursionError
    MemoryError,
    OverflowError,
)
"""What reading a damaged or hostile zip file raises."""

_READ = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class ZipLimitError(ValueError):
    """A zip file needs more memory than it is given."""


class _Bounded:
    """A file of which no more than ``LARGEST_DIRECTORY`` bytes are read at once: zipfile reads the list whole."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.seek, self.tell, self.seekable, self.close = stream.seek, stream.tell, stream.seekable, stream.close

    def read(self, size: int = -1) -> bytes:
        """As a file's ``read``. Raises ZipLimitError above the limit."""
        if size < 0:
            place = self._stream.tell()
            size = self._stream.seek(0, os.SEEK_END) - place
            self._stream.seek(place)
        if size > LARGEST_DIRECTORY:
            raise ZipLimitError(f"its list of members has {size:,} bytes, at most {LARGEST_DIRECTORY:,} are read")
        return self._stream.read(size)


@contextmanager
def open_zip(path: Path) -> Iterator[zipfile.ZipFile]:
    """A zip file to be read with :func:`read_member`. Raises one of ``DAMAGED_ZIP``."""
    with path.open("rb") as stream, zipfile.ZipFile(_Bounded(stream)) as archive:
        yield archive


def read_member(archive: zipfile.ZipFile, name: str, *, most: int) -> bytes:
    """The content of a member of at most ``most`` bytes. Raises ZipLimitError for a larger one, and ``DAMAGED_ZIP``."""
    entry = archive.getinfo(name)
    if entry.compress_type not in _READ:  # others are unpacked in pieces of any size
        raise ZipLimitError(f"{name} is compressed by method {entry.compress_type}, only stored and deflate are read")
    with archive.open(entry) as member:
        content = member.read(most + 1)
    if len(content) > most:
        raise ZipLimitError(f"{name} unpacks to more than {most:,} bytes")
    return content
