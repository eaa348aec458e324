"""The container's outer process: makes the namespaces, starts the server in them, hands out sockets, cleans up.

A program of its own, standard library only, started by ``isolation.py`` as ``python -I launcher.py <file descriptor>``.
The descriptor is one end of a ``SOCK_SEQPACKET`` pair. Messages, in order:

1. → ``{"mount": {<folder>: <path under /opt>}, "namespace": bool}``; ← ``{"isolation": "namespace" | <why not>}``
2. → ``{"argv": […], "env": {…}, "shm_prefix": "…"}``; ← ``{"pid": <the server's pid, as the caller sees it>}``
3. any number of → ``sockets``; ← ``sockets`` with unconnected TCP sockets that belong to the server's network namespace

It ends with the server: exit code as in a shell (128 + signal). It kills the server when its caller is gone,
and the kernel kills the server when the launcher is gone.

Inside the namespaces the server finds what a container has: a network of its own, process numbers of its own (it is
number 1: when it ends, everything that it started ends), a ``/dev/shm`` of its own (half the memory, as SageMaker
gives), and its models and backends under ``/opt``. Nothing on the machine itself is changed.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import struct
import sys
from fcntl import ioctl
from pathlib import Path

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x00020000, 0x10000000, 0x20000000, 0x40000000  # <sched.h>
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 0x2, 0x4, 0x1000, 0x4000, 0x40000  # <sys/mount.h>
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 36, 38  # <sys/prctl.h>
SIOCSIFFLAGS, IFF_UP, IFF_RUNNING = 0x8914, 0x1, 0x40  # <linux/sockios.h>, <net/if.h>
SHARED_MEMORY = "/dev/shm"  # noqa: S108  the fixed place of POSIX shared memory
SOCKETS_AT_ONCE = 16
MESSAGE_BYTES = 1 << 20
_libc = ctypes.CDLL(None, use_errno=True)


def main(descriptor: int) -> int:
    """Serve one container. Returns the server's exit code as a shell would."""
    control = socket.socket(fileno=descriptor)
    control.set_inheritable(False)
    parent = os.pidfd_open(os.getppid())
    place = json.loads(control.recv(MESSAGE_BYTES))
    why_not = "asked for" if not place["namespace"] else try_out(place["mount"])
    if why_not is None:
        enter(place["mount"])
    control.send(json.dumps({"isolation": why_not or "namespace"}).encode())
    message = control.recv(MESSAGE_BYTES)
    if not message:
        return 1
    command = json.loads(message)
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    server = start(command["argv"], command["env"], own_processes=why_not is None)
    control.send(json.dumps({"pid": server}).encode())
    try:
        return serve(control, parent, server)
    finally:
        end_descendants()
        remove_shared_memory(command["shm_prefix"])


def try_out(mounts: dict[str, str]) -> str | None:
    """Enter the namespaces in a child, since a half-made entry cannot be undone. Returns why it failed, or None."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            enter(mounts)
        except OSError as error:
            os.write(writer, f"{error.strerror}: {error.filename}".encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        why_not = answer.read().decode()
    _, status = os.waitpid(child, 0)
    return why_not or (None if status == 0 else f"the attempt ended with status {status}")


def enter(mounts: dict[str, str]) -> None:
    """Move into new user, network, process and mount namespaces, with loopback up and the mounts in place."""
    user, group = os.getuid(), os.getgid()
    call("unshare", CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWNS, what="user namespaces")
    for name, line in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        Path(f"/proc/self/{name}").write_text(line)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        ioctl(probe, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP | IFF_RUNNING))
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    mount("tmpfs", SHARED_MEMORY, "tmpfs", MS_NOSUID | MS_NODEV, "size=50%,mode=1777")
    mount_under_opt(mounts)


def mount_under_opt(mounts: dict[str, str]) -> None:
    """Put a temporary ``/opt`` over the machine's, with the same entries and those of the mounts besides."""
    ours = {Path(path).relative_to("/opt").parts[0] for path in mounts.values()}
    original = os.open("/opt", os.O_PATH | os.O_DIRECTORY)
    mount("tmpfs", "/opt", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755")
    for source in Path(f"/proc/self/fd/{original}").iterdir():
        target = Path("/opt", source.name)
        if source.is_symlink():
            target.symlink_to(source.readlink())
        elif source.name not in ours:
            target.mkdir() if source.is_dir() else target.touch()
            mount(str(source), str(target), None, MS_BIND | MS_REC)
    os.close(original)
    for folder, path in mounts.items():
        Path(path).mkdir(parents=True)
        mount(folder, path, None, MS_BIND | MS_REC)


def start(argv: list[str], env: dict[str, str], *, own_processes: bool) -> int:
    """Start the server, which ends with this process and gains no privileges. Returns its process id."""
    alive, held = os.pipe()  # `held` closes with this process: the child's check that it was not orphaned at birth
    child = os.fork()
    if child:
        os.close(alive)
        return child
    try:
        os.close(held)
        os.setsid()
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if select.select([alive], [], [], 0)[0]:
            os._exit(1)
        if own_processes:
            call("unshare", CLONE_NEWNS, what="a /proc of its own")
            with contextlib.suppress(OSError):  # refused inside some containers; the machine's /proc stays then
                mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV)
        _libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.execve(argv[0], argv, env)  # noqa: S606  no shell is wanted
    except OSError as error:
        sys.stderr.write(f"{argv[0]}: {error.strerror}\n")
        sys.stderr.flush()
    os._exit(127)


def serve(control: socket.socket, parent: int, server: int) -> int:
    """Hand out sockets until the server ends, or until the caller is gone. Returns the server's exit code."""
    ended = os.pidfd_open(server)
    waiting = select.poll()
    for descriptor in (control.fileno(), parent, ended):
        waiting.register(descriptor, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in waiting.poll()}
        if ended in ready:
            break
        if parent in ready or (control.fileno() in ready and not answer(control)):
            os.kill(server, signal.SIGKILL)  # not reaped yet, so the number is still its own
            break
    _, status = os.waitpid(server, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def answer(control: socket.socket) -> bool:
    """Respond to one request for sockets. False where the caller has closed its end."""
    try:
        if not control.recv(64):
            return False
        made = [socket.socket(socket.AF_INET, socket.SOCK_STREAM) for _ in range(SOCKETS_AT_ONCE)]
        try:
            socket.send_fds(control, [b"sockets"], [one.fileno() for one in made])
        finally:
            for one in made:
                one.close()
    except ConnectionError:
        return False
    return True


def end_descendants() -> None:
    """Kill the server's remaining processes: they became this process's children (a namespace has none left)."""
    while True:
        left = children(os.getpid())
        if not left:
            return
        for number in left:
            os.kill(number, signal.SIGKILL)
            os.waitpid(number, 0)


def children(parent: int) -> list[int]:
    """The process ids of ``parent``'s children, zombies included."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # ended meanwhile
            if int(entry.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(entry.parent.name))
    return found


def remove_shared_memory(prefix: str) -> None:
    """Remove a dead server's regions from ``/dev/shm``. Those of launchers that were killed: ``leftovers.py``."""
    for region in Path(SHARED_MEMORY).glob(f"{prefix}*"):
        with contextlib.suppress(OSError):
            region.unlink()


def mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    """``mount(2)``. Raises OSError that names the target."""
    arguments = (source.encode(), target.encode(), kind and kind.encode(), ctypes.c_ulong(flags), options.encode())
    call("mount", *arguments, what=f"mount on {target}")


def call(name: str, *arguments: object, what: str) -> None:
    """Call a libc function that returns 0 on success. Raises OSError that names the function."""
    if getattr(_libc, name)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
