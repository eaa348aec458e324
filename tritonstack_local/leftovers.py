"""Files and shared memory of killed processes, found by their owner's mark, removed at the next start or by ``clean``.

The names of what a process makes contain a mark: its PID namespace, its id and its start. So neither another process
with the same id, nor one that shares only a file system, is taken for the owner. Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import time
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  the fixed place of POSIX shared memory
REGION, FOLDER = "tritonstack-", "tritonstack-emulator-"
TRITONS_REGION = "triton_python_backend_shm_region_"
"""Regions of a Triton that was started without a prefix of ours: their names have no owner's mark."""
UNPACKED = (Path("/tmp"), "python_env_*")  # noqa: S108  where Triton's Python backend makes them, whatever TMPDIR is
QUIET_SECONDS = 600.0
"""What was made later than this may be of a Triton that starts just now."""
_MARK = re.compile(r"(?P<namespace>\d+)\.(?P<pid>\d+)\.(?P<start>\d+)-")
_FOLDERS_OF_CHILDREN = (b"TMPDIR=", b"HOME=")
"""Variables by which the emulator's children have folders of their own in its temporary folder."""


def owner_mark(pid: int) -> str:
    """The mark of a running process. Raises OSError: there is none."""
    return f"{_namespace()}.{pid}.{_start(pid)}-"


def sweep_shared_memory() -> None:
    """Remove regions of this user whose owner, a container's launcher, was killed."""
    for region in _marked_regions():
        with contextlib.suppress(OSError):  # removed meanwhile
            region.unlink()


def left_regions() -> list[Path]:
    """Regions of this user whose Triton has ended: of ours by the mark, of others that no process maps any more."""
    others = [path for path in sorted(SHARED_MEMORY.glob(f"{TRITONS_REGION}*")) if _is_own_and_quiet(path)]
    mapped = _mapped_files() if others else set()
    unmapped = [] if mapped is None else [path for path in others if _identity(path) not in mapped]
    return [*sorted(_marked_regions()), *unmapped]


def left_environment_folders() -> list[Path]:
    """Empty folders of this user in which Triton's Python backend unpacked an environment; it leaves them there."""
    folder, pattern = UNPACKED
    found = []
    for path in sorted(folder.glob(pattern)):
        with contextlib.suppress(OSError):  # removed meanwhile, or closed to this user
            if path.is_dir() and _is_own_and_quiet(path) and not any(path.iterdir()):
                found.append(path)
    return found


def _marked_regions() -> list[Path]:
    found = []
    for region in SHARED_MEMORY.glob(f"{REGION}*"):
        with contextlib.suppress(OSError):  # removed meanwhile
            if _is_left(region, prefix=REGION):
                found.append(region)
    return found


def _is_own_and_quiet(path: Path) -> bool:
    """Whether this user made it, and some time ago; no link."""
    try:
        status = path.lstat()
    except OSError:
        return False
    quiet = time.time() - status.st_mtime > QUIET_SECONDS
    return status.st_uid == os.getuid() and quiet and not path.is_symlink()


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _mapped_files() -> set[tuple[int, int]] | None:
    """Device and inode of every file that a process maps; None where one that may be Triton cannot be looked at.

    Its Python backend is the server, ``tritonserver`` or a program that embeds it, and ``triton_python_backend_stub``.
    """
    mapped: set[tuple[int, int]] = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            lines = (process / "maps").read_text(errors="replace").splitlines()
        except PermissionError:
            with contextlib.suppress(OSError):  # it has ended
                command = (process / "cmdline").read_bytes()
                if any(word in command for word in (b"triton", b"python")):
                    return None
            continue
        except OSError:  # it has ended
            continue
        for line in lines:  # address, permissions, offset, device (major:minor, hexadecimal), inode, path (proc(5))
            _, _, _, device, inode, *_ = line.split(maxsplit=5)
            major, _, minor = device.partition(":")
            mapped.add((os.makedev(int(major, 16), int(minor, 16)), int(inode)))
    return mapped


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
