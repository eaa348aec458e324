"""A disk that is full: which file could not be written, how much space is left there, and what to do."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""No space, a quota that is used up, a file larger than the process may write (``ulimit -f``)."""


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let an error of writing ``path``, or below it, name it: of a file that is open the system names none."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno in FULL:
            error.filename = str(path)
        raise


def disk_full(error: BaseException | None) -> OSError | None:
    """The error of a full disk that an error is or came from; None where it is about something else."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in FULL:
            return error
        error = error.__cause__
    return None


def written_file(error: OSError) -> str | None:
    """The file that an error of writing is about: a copy's error names its source first (``shutil.copyfile``)."""
    named = error.filename if error.filename2 is None else error.filename2
    return None if named is None else os.fsdecode(named)


def space_text(error: OSError, *, state: Path) -> str:
    """How much space there is where an error was, once what was unfinished is removed, and what to do.

    Args:
        error: names a file or none.
        state: the folder that TRITONSTACK_HOME names.
    """
    named = written_file(error)
    places = [Path(named)] if named else [state, Path(tempfile.gettempdir())]
    left = []
    for place in dict.fromkeys(map(_existing, places)):
        with suppress(OSError):
            usage = shutil.disk_usage(place)
            left.append(f"{usage.free / 1e6:,.1f} of {usage.total / 1e6:,.1f} MB are free at {place}")
    return (
        f"  found:   {'; '.join(left) or 'no space'}, what was unfinished being removed\n"
        "  do:      free space there, or give another folder (TRITONSTACK_HOME for what is built, TMPDIR for what is\n"
        "           temporary), then the same command again: what is finished stays"
    )


def _existing(path: Path) -> Path:
    """The path itself, or the nearest folder above it that is there."""
    return next((each for each in (path, *path.parents) if each.exists()), Path("/"))
