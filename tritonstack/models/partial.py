"""Folders for work that is not finished: gone when the work ends, and cleared away by the next one if it was killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tritonstack.disk import naming

_MARK = ".partial-"


@contextmanager
def partial_folder(parent: Path, *, name: str) -> Iterator[Path]:
    """A new folder ``<parent>/<name>.partial-…`` until the block ends; it may be moved away inside the block.

    Its maker holds a lock on it, which the kernel releases when that process dies, however it dies. Folders in
    ``parent`` that nobody holds any longer are what killed builds left behind: they are removed first.
    """
    parent.mkdir(parents=True, exist_ok=True)
    with _locked(parent):  # so that nobody takes a folder for abandoned between its making and its locking
        for folder in parent.glob(f"*{_MARK}*"):
            _remove_abandoned(folder)
        made = Path(tempfile.mkdtemp(dir=parent, prefix=f"{name}{_MARK}"))
        held = os.open(made, os.O_RDONLY)
        fcntl.flock(held, fcntl.LOCK_EX)
    try:
        with naming(made):
            yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
        os.close(held)


def _remove_abandoned(folder: Path) -> None:
    with suppress(FileNotFoundError, BlockingIOError), _locked(folder, wait=False):
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold a folder's lock. Raises BlockingIOError where another process holds it and ``wait`` is off."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(descriptor)
