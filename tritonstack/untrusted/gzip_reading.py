"""Text files that are stored compressed: ``request.json.gz``, read within bounds."""

from __future__ import annotations

import zlib
from pathlib import Path

SUFFIX = ".gz"
_WITH_HEADER = 31
"""``wbits`` of a gzip stream."""


def is_compressed(path: Path) -> bool:
    """Whether a file is stored compressed, by its name."""
    return path.suffix.lower() == SUFFIX


def suffix_of(path: Path) -> str:
    """What kind of file it is, compressed or not: ``.json`` of ``request.json.gz``, in lower case."""
    return (path.with_suffix("") if is_compressed(path) else path).suffix.lower()


def uncompressed(content: bytes, *, most: int) -> bytes:
    """The content of a gzip stream. Raises ValueError where it is none, is cut off, or has more than ``most`` bytes."""
    stream = zlib.decompressobj(wbits=_WITH_HEADER)
    try:
        found = stream.decompress(content, most + 1)
    except zlib.error as error:
        raise ValueError(f"no gzip file, or a damaged one: {error}") from error
    if len(found) > most:
        raise ValueError(f"more than {most:,} bytes, uncompressed")
    if not stream.eof:
        raise ValueError("a gzip file that is cut off")
    return found
