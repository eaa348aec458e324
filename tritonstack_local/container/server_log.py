"""What is read off the server's log: its version, and the lines that tell why it ended."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

_VERSION = re.compile(rb"\| server_version +\| (\S+)")
_TABLE = ("|", "+--")
# What the server lists after a wrong flag: all flags, indented, in groups with a heading each.
_USAGE = "Usage: tritonserver"
_FLAGS = re.compile(r"\s|[A-Z][A-Za-z/ ]*:$|$")
_HEAD_BYTES = 1 << 20
_TAIL_BYTES = 1 << 17


def server_version(log: Path) -> str | None:
    """The version that the server says in its start log (``2.51.0``); None before that, or with the info log off."""
    with log.open("rb") as file:
        found = _VERSION.findall(file.read(_HEAD_BYTES))
    return found[-1].decode() if found else None


def last_lines(log: Path, lines: int) -> str:
    """The log's last lines, without what hides the reason: tables of settings, and all flags after a wrong one."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
        text = file.read().decode(errors="replace")
    return "\n".join([line for line in _without_flags(text) if line.strip() and not line.startswith(_TABLE)][-lines:])


def _without_flags(text: str) -> Iterator[str]:
    """The lines that are not of a list of flags; after it the server may yet say which argument it did not expect."""
    listing = False
    for line in text.splitlines():
        listing = line.startswith(_USAGE) or (listing and _FLAGS.match(line) is not None)
        if not listing:
            yield line
