"""What is read off the server's log: its version, and the lines that tell why it ended."""

from __future__ import annotations

import re
from pathlib import Path

USAGE = "Usage: tritonserver"
_VERSION = re.compile(rb"\| server_version +\| (\S+)")
_TABLE = ("|", "+--")
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
    told = [line for line in text.partition(USAGE)[0].splitlines() if line.strip() and not line.startswith(_TABLE)]
    return "\n".join(told[-lines:])
