"""Sizes of a built archive, from its manifest."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class ArchiveSizes:
    """Bytes: of the file that is downloaded, and of what it unpacks to (its tar)."""

    download: int
    unpacked: int


def read_archive_sizes(manifest: Path) -> ArchiveSizes | str:
    """The sizes that a manifest of ``tritonstack build`` tells, or why it tells none."""
    try:
        document = json.loads(manifest.read_text(encoding="utf-8"))
        archive = document["archive"]
        sizes = ArchiveSizes(download=archive["bytes"], unpacked=archive["tar_bytes"])
    except OSError as error:
        return error.strerror or "unreadable"
    except (ValueError, KeyError, TypeError):
        return "no manifest of an archive"
    if not all(isinstance(size, int) and size > 0 for size in (sizes.download, sizes.unpacked)):
        return "no manifest of an archive"
    return sizes
