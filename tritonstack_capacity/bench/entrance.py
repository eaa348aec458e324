"""The way into a local container's network: sockets made there, used here.

A local container has a network of its own that the runtime alone reaches. A process of the same user may enter it: a
small helper does, and hands out sockets over a Unix socket pair; a socket keeps the network in which it was made.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tritonstack.errors import WorkFailedError

AT_ONCE = 16
HELPER_SECONDS = 10.0
HELPER = f"""
import ctypes, os, socket, sys
NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000
control = socket.socket(fileno=int(sys.argv[1]))
libc = ctypes.CDLL(None, use_errno=True)
entered = libc.setns(os.pidfd_open(int(sys.argv[2])), NEW_USER | NEW_NETWORK) == 0
control.send(b"ready" if entered else os.strerror(ctypes.get_errno()).encode())
while entered and control.recv(64):
    made = [socket.socket(socket.AF_INET, socket.SOCK_STREAM) for _ in range({AT_ONCE})]
    socket.send_fds(control, [b"sockets"], [one.fileno() for one in made])
    for one in made:
        one.close()
"""
"""Standard library alone; ends when its caller closes the other end, however it ends."""
RUN_INSIDE = """
import ctypes, os, sys
NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000
libc = ctypes.CDLL(None, use_errno=True)
if libc.setns(os.pidfd_open(int(sys.argv[1])), NEW_USER | NEW_NETWORK):
    sys.exit(f"the network of process {sys.argv[1]} cannot be entered: {os.strerror(ctypes.get_errno())}")
os.execv(sys.argv[2], sys.argv[2:])
"""
"""Becomes the program that it is told, files and user as outside, in the network of a process."""


class Entrance:
    """Makes sockets in the network of a process. Safe to use from several threads."""

    def __init__(self, control: socket.socket) -> None:
        """Use ``entrance``."""
        self._control = control
        self._lock = threading.Lock()
        self._stock: list[socket.socket] = []

    def open_socket(self) -> socket.socket:
        """A TCP socket that is not connected, TCP_NODELAY set. Raises WorkFailedError."""
        with self._lock:
            if not self._stock:
                self._stock = self._fetch()
            made = self._stock.pop()
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made

    def close(self) -> None:
        """Close what was not used."""
        for one in self._stock:
            one.close()
        self._control.close()

    def _fetch(self) -> list[socket.socket]:
        try:
            self._control.send(b"sockets")
            message, descriptors, _, _ = socket.recv_fds(self._control, 64, AT_ONCE)
        except OSError as error:
            raise WorkFailedError(f"the container's network cannot be reached any more: {error}") from error
        if not message:
            raise WorkFailedError("the container's network cannot be reached any more")
        return [socket.socket(fileno=descriptor) for descriptor in descriptors]


@contextmanager
def entrance(pid: int) -> Iterator[Entrance]:
    """The way into the network of the process ``pid``, which must be this user's.

    Raises:
        WorkFailedError: it cannot be entered.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(HELPER_SECONDS)
    with theirs:
        helper = subprocess.Popen(
            [sys.executable, "-I", "-c", HELPER, str(theirs.fileno()), str(pid)],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a Ctrl-C in the terminal is ours to handle
        )
    opened = Entrance(ours)
    try:
        said = ours.recv(200)
        if said != b"ready":
            why = said.decode() or "the helper ended"
            raise WorkFailedError(f"the network of the container (process {pid}) cannot be entered: {why}")
        yield opened
    finally:
        opened.close()
        try:
            helper.wait(HELPER_SECONDS)
        except subprocess.TimeoutExpired:
            helper.kill()
            helper.wait()


def inside(pid: int) -> tuple[str, ...]:
    """What stands before a command (its program by its path) that is to run in the network of the process ``pid``."""
    return (sys.executable, "-I", "-c", RUN_INSIDE, str(pid))
