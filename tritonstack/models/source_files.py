"""Files of a model folder that count: sources without junk, and the directories of its Triton models."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator
from pathlib import Path

from tritonstack.errors import refuse
from tritonstack.untrusted.folder_files import unfit, unfit_problem

CONFIG = "config.pbtxt"

JUNK = ("__pycache__", ".ipynb_checkpoints", ".git", "*.pyc", ".DS_Store", "*~", "*.swp", ".mypy_cache", ".ruff_cache")
"""What editors and interpreters leave behind: never a source, never packed. Triton would read some of it as a model."""


def is_junk(name: str) -> bool:
    """Whether a file or directory of this name is never part of an archive."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in JUNK)


def files_below(folder: Path, *, within: Path | None = None) -> Iterator[tuple[str, Path]]:
    """Every file below ``folder`` but junk, as (relative name with forward slashes, path), sorted by the name.

    Raises :class:`InputError` with all that is no regular file inside ``within``, the folder itself where it is None:
    see :mod:`tritonstack.untrusted.folder_files`.
    """
    listed = tuple(listed_below(folder, within=within))
    root = within or folder
    refuse([unfit_problem(path, root, reason) for _, path, reason in listed if reason])
    yield from ((name, path) for name, path, _ in listed)


def listed_below(folder: Path, *, within: Path | None = None) -> Iterator[tuple[str, Path, str]]:
    """The same with why each is unfit, empty where it is not; links to folders inside are followed."""
    root = within or folder
    found: list[tuple[str, Path, str]] = []
    waiting = [folder]
    while waiting:
        current = waiting.pop()
        try:
            entries = list(os.scandir(current))
        except (FileNotFoundError, NotADirectoryError):
            continue  # there is none, or it is gone in between
        except PermissionError as error:
            found.append((current.relative_to(folder).as_posix(), current, str(error.strerror)))
            continue
        for entry in entries:
            path = Path(entry.path)
            if is_junk(entry.name):
                continue
            reason = unfit(path, root)
            if reason or not entry.is_dir():
                found.append((path.relative_to(folder).as_posix(), path, reason))
            elif not (entry.is_symlink() and _contains(path, current)):
                waiting.append(path)
            else:
                reason = f"a link to a folder that contains it, {path.readlink()}"
                found.append((path.relative_to(folder).as_posix(), path, reason))
    yield from sorted(found)


def _contains(link: Path, current: Path) -> bool:
    """Whether a link in ``current`` leads to a folder on the way there, so that following it would not end."""
    return Path(os.path.realpath(current)).is_relative_to(os.path.realpath(link))


def model_directories(folder: Path) -> tuple[Path, ...]:
    """The directories of ``folder`` that hold a ``config.pbtxt``: its Triton models, sorted by name."""
    return tuple(sorted(path.parent for path in folder.glob(f"*/{CONFIG}") if not is_junk(path.parent.name)))
