"""One gzip member out of pieces that are compressed in parallel, or stored where compression would gain nothing.

A container unpacks its archive at every cold start. Weights hardly compress, and deflate's *stored* blocks (5 bytes for
each 65,535) unpack at the speed of a copy. Source of the forms: RFC 1951 (deflate, 3.2.4), RFC 1952 (gzip).
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import BinaryIO

from isal import isal_zlib

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


def compressed_share(sample: bytes | memoryview) -> float:
    """The size of ``sample`` compressed as this module compresses, as a share of its size (1 for nothing)."""
    return len(isal_zlib.compress(sample, _LEVEL)) / len(sample) if sample else 1.0


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
