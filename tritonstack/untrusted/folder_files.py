"""Reads files of an untrusted model folder: regular files inside it, and nothing else.

Links that stay inside are followed. Links that lead outside or nowhere are refused, and so is everything that is no
regular file: reading a named pipe never returns, and a device never ends.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from tritonstack.errors import InputError, Problem

LARGEST_TEXT = 16 << 20
"""Bytes of a configuration, a program or a sample request in JSON; weights are not read as a whole."""

_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def unfit(path: Path, root: Path) -> str:
    """Why something below ``root`` is neither a regular file nor a folder inside it; empty where it is, or is absent.

    A link counts as what it leads to.
    """
    try:
        real = Path(os.path.realpath(path, strict=True))
        mode = path.stat().st_mode  # not of ``real``: "file/.." is a folder to realpath, and nothing to the kernel
    except FileNotFoundError:
        return f"a link that leads nowhere, to {path.readlink()}" if path.is_symlink() else ""
    except OSError as error:  # a circle of links, a file in a folder's place, no right to look
        return (
            f"a link that leads in a circle, or nowhere, to {path.readlink()}"
            if path.is_symlink()
            else str(error.strerror)
        )
    if not real.is_relative_to(os.path.realpath(root)):
        if path.is_symlink():
            return f"a link that leads outside, to {path.readlink()}"
        return f"outside of {root}, behind a link"
    return next((f"neither a file nor a folder, but {what}" for is_kind, what in _KINDS if is_kind(mode)), "")


def is_fit_file(path: Path, root: Path) -> bool:
    """Whether a regular file inside ``root`` is there."""
    return path.is_file() and not unfit(path, root)


def unfit_problem(path: Path, root: Path, found: str) -> Problem:
    """The problem of what :func:`unfit` found."""
    advice = f"copy the file itself there: cp -L {path} FILE" if "link" in found else "remove it"
    return Problem(file=str(path), found=found, allowed=f"a regular file inside {root}", advice=advice)


def open_inside(path: Path, root: Path) -> BinaryIO:
    """Open a regular file inside ``root`` to be read.

    Raises :class:`InputError` for what is none, OSError where there is none or it may not be read.
    """
    if found := unfit(path, root):
        raise InputError([unfit_problem(path, root, found)])
    # Not waiting for the other end of a pipe that took the file's place in between.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InputError([unfit_problem(path, root, "no regular file")])
    return os.fdopen(descriptor, "rb")


def read_inside(path: Path, root: Path, *, most: int = LARGEST_TEXT) -> bytes:
    """The content of a file inside ``root`` of at most ``most`` bytes. Raises as :func:`open_inside`, and for more."""
    with open_inside(path, root) as stream:
        content = stream.read(most + 1)
    if len(content) > most:
        size = path.stat().st_size
        raise InputError([Problem(file=str(path), found=f"{size:,} bytes", allowed=f"at most {most:,} bytes")])
    return content


def text_inside(path: Path, root: Path) -> str:
    """A file inside ``root`` as text, bytes that are no UTF-8 replaced. Raises as :func:`read_inside`.

    A carriage return alone ends no line: protobuf's text format does not take it for one, so a comment goes on.
    """
    return read_inside(path, root).decode("utf-8", "replace").replace("\r\n", "\n")
