"""What a killed process left behind, found by its owner's mark and removed at the next start.

A mark stands in the names of what a process makes: its PID namespace, its id and its start. So neither another
process with the same id, nor one that shares only a file system, is taken for it. Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  the fixed place of POSIX shared memory
REGION, FOLDER = "tritonstack-", "tritonstack-emulator-"
_MARK = re.compile(r"(?P<namespace>\d+)\.(?P<pid>\d+)\.(?P<start>\d+)-")
_FOLDERS_OF_CHILDREN = (b"TMPDIR=", b"HOME=")
"""Variables by which the emulator's children have folders of their own in its temporary folder."""


def owner_mark(pid: int) -> str:
    """The mark of a running process. Raises OSError: there is none."""
    return f"{_namespace()}.{pid}.{_start(pid)}-"


def sweep_shared_memory() -> None:
    """Remove regions of this user whose owner, a container's launcher, was killed."""
    for region in SHARED_MEMORY.glob(f"{REGION}*"):
        with contextlib.suppress(OSError):  # removed meanwhile
            if _is_left(region, prefix=REGION):
                region.unlink()


def sweep_emulator(parent: Path) -> None:
    """End the processes of emulators that were killed, builds and functions, and remove their temporary folders."""
    for folder in parent.glob(f"{FOLDER}*"):
        with contextlib.suppress(OSError):
            if not _is_left(folder, prefix=FOLDER):
                continue
            for pid, start in _processes_of(folder).items():
                _kill(pid, start=start)
            shutil.rmtree(folder, ignore_errors=True)


def _is_left(path: Path, *, prefix: str) -> bool:
    """Whether this user made it, by a process that no longer runs. Raises OSError: it is gone."""
    mark = _MARK.match(path.name.removeprefix(prefix))
    if mark is None or path.lstat().st_uid != os.getuid() or mark["namespace"] != str(_namespace()):
        return False
    try:
        return str(_start(int(mark["pid"]))) != mark["start"]
    except FileNotFoundError:
        return True


def _namespace() -> int:
    return Path("/proc/self/ns/pid").stat().st_ino


def _start(pid: int) -> int:
    """When a process started, in clock ticks since the machine did."""
    return _status(pid)[2]


def _status(pid: int) -> tuple[int, int, int]:
    """Parent, session and start of a process (proc(5), fields 4, 6 and 22 of stat). Raises OSError: it has ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1]), int(fields[3]), int(fields[19])


def _processes_of(folder: Path) -> dict[int, int]:
    """Id → start of the processes that have their folders there, of what they started, and of sessions that they lead.

    A process without variables, whose parent has ended, is found by its session alone.
    """
    own = [name + os.fsencode(folder) for name in _FOLDERS_OF_CHILDREN]
    running: dict[int, tuple[int, int, int]] = {}
    found: set[int] = set()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # ended, or another user's
            running[pid := int(entry.name)] = _status(int(entry.name))
            lines = (entry / "environ").read_bytes().split(b"\0")
            if any(line == one or line.startswith(one + b"/") for line in lines for one in own):
                found.add(pid)
    while more := {pid for pid, (parent, session, _) in running.items() if {parent, session} & found} - found:
        found |= more
    return {pid: running[pid][2] for pid in found}


def _kill(pid: int, *, start: int) -> None:
    """SIGKILL exactly this process: its start is compared once its number can no longer become another one's."""
    with contextlib.suppress(OSError):
        held = os.pidfd_open(pid)
        try:
            if _start(pid) == start:
                signal.pidfd_send_signal(held, signal.SIGKILL)
        finally:
            os.close(held)
