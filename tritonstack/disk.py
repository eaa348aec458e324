"""Full disks and their messages, folders for unfinished work, links in place of copies."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tritonstack.errors import WorkFailedError

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


NO_SPACE = (
    "  do:      free space there, or give another folder (TRITONSTACK_HOME for what is built, TMPDIR for what is\n"
    "           temporary), then the same command again: what is finished stays"
)
"""What to do where a disk is full; what was unfinished is removed by then."""

_MARK = ".partial-"


@contextmanager
def partial_folder(parent: Path, *, name: str) -> Iterator[Path]:
    """A new folder ``<parent>/<name>.partial-…`` until the block ends; it may be moved away inside the block.

    Its maker holds a lock on it, which the kernel releases when that process dies, however it dies. Folders in
    ``parent`` whose lock is free were left by killed builds: they are removed first.
    """
    parent.mkdir(parents=True, exist_ok=True)
    for folder in parent.glob(f"*{_MARK}*"):
        with suppress(FileNotFoundError, NotADirectoryError, BlockingIOError), _locked(folder):
            shutil.rmtree(folder, ignore_errors=True)
    made, held = _held_folder(parent, prefix=f"{name}{_MARK}")
    try:
        with naming(made):
            yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
        os.close(held)


@contextmanager
def temporary_folder(name: str) -> Iterator[Path]:
    """A new folder for temporary files until the block ends, as of :func:`partial_folder`.

    Unlike those of ``tempfile``, what a killed process left is removed by the next one. They are in a folder of the
    user's own below the system's for temporary files, so that nothing of another program is looked at.

    Raises WorkFailedError: the user's folder belongs to another user, or others may write into it.
    """
    own = Path(tempfile.gettempdir(), f"tritonstack-{os.getuid()}")
    try:
        with ExitStack() as held:
            yield _entered(held, own, name=name)
    finally:
        with suppress(OSError):  # another process has its folder there
            own.rmdir()


def _entered(held: ExitStack, own: Path, *, name: str) -> Path:
    while True:
        own.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = own.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
            raise WorkFailedError(
                f"{own}: not a folder of your own that others cannot write into, which temporary files need; remove "
                "it, or set TMPDIR to a folder of your own, then run the same command again"
            )
        with suppress(FileNotFoundError):  # the last process that used it removed it just now
            return held.enter_context(partial_folder(own, name=name))


def _held_folder(parent: Path, *, prefix: str) -> tuple[Path, int]:
    """A new folder, and the descriptor that holds its lock.

    ``parent`` itself is not locked: it may be such a folder of this process. Another process may take the new one for
    abandoned, and remove it, before it is locked: then another is made.
    """
    while True:
        made = Path(tempfile.mkdtemp(dir=parent, prefix=prefix))
        try:
            held = os.open(made, os.O_RDONLY)
        except FileNotFoundError:
            continue
        fcntl.flock(held, fcntl.LOCK_EX)
        if made.is_dir():
            return made, held
        os.close(held)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a folder's lock. Raises BlockingIOError where another process holds it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def link_or_copy(source: Path | str, target: Path | str) -> None:
    """A hard link, or a copy where the file system has none: a ``copy_function`` of :func:`shutil.copytree`."""
    try:
        os.link(os.path.realpath(source), target)
    except OSError:  # another file system
        shutil.copy2(source, target)


_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
"""``<fcntl.h>`` and ``<linux/fs.h>``."""


def exchange(one: Path, other: Path) -> None:
    """Swap two folders of a file system in one step: a process that is killed has swapped them, or has not.

    Where the system has no such step (``renameat2``), ``other`` is ``<other>.before`` next to it meanwhile: a killed
    process then leaves it under that name.
    """
    swap = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    arguments = (_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE)
    if swap is not None and swap(*arguments) == 0:
        return
    if swap is not None and ctypes.get_errno() not in (errno.EINVAL, errno.ENOSYS):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(one), None, str(other))
    aside = other.with_name(f"{other.name}.before")
    other.rename(aside)
    try:
        one.rename(other)
    except BaseException:
        aside.rename(other)
        raise
    aside.rename(one)
