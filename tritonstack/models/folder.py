"""A model folder as people write it: which of its files are sources, and which directories are Triton models."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator
from pathlib import Path

CONFIG = "config.pbtxt"

JUNK = ("__pycache__", ".ipynb_checkpoints", ".git", "*.pyc", ".DS_Store", "*~", "*.swp", ".mypy_cache", ".ruff_cache")
"""What editors and interpreters leave behind: never a source, never packed. Triton would read some of it as a model."""


def is_junk(name: str) -> bool:
    """Whether a file or directory of this name is never part of an archive."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in JUNK)


def files_below(folder: Path) -> Iterator[tuple[str, Path]]:
    """Every file below ``folder`` but junk, as (relative name with forward slashes, path), sorted by the name."""
    found: list[tuple[str, Path]] = []
    for current, directories, files in os.walk(folder):
        directories[:] = [name for name in directories if not is_junk(name)]
        paths = [Path(current) / name for name in files if not is_junk(name)]
        found += [(path.relative_to(folder).as_posix(), path) for path in paths]
    yield from sorted(found)


def model_directories(folder: Path) -> tuple[Path, ...]:
    """The directories of ``folder`` that hold a ``config.pbtxt``: its Triton models, sorted by name."""
    return tuple(sorted(path.parent for path in folder.glob(f"*/{CONFIG}") if not is_junk(path.parent.name)))
