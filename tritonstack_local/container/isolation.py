"""A process in namespaces of its own, and sockets that reach into them.

Nothing binds the server's SageMaker port to loopback: it listens on every address. So the server gets a network of its
own, in which only loopback exists, and this process gets sockets made there: a socket keeps its network namespace, so
there is no relay and no cost. Where user namespaces are not permitted the port stays open; log and status report it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import BinaryIO, Self

from tritonstack.errors import WorkFailedError
from tritonstack_local.leftovers import REGION, owner_mark, sweep_shared_memory

LAUNCHER = Path(__file__).with_name("launcher.py")
LAUNCHER_SECONDS = 20.0
CONNECT_SECONDS = 10.0
_MESSAGE_BYTES = 1 << 16
_SOCKETS_AT_ONCE = 64


class Enclosure:
    """One launcher and the process it started. Safe to use from several threads.

    Attributes:
        isolation: ``namespace``, or ``open port: <why>``.
        exited: resolved with the exit code, as in a shell (128 + signal), when the process has ended and all it
            had started too. ``asyncio.shield(asyncio.wrap_future(enclosure.exited))`` awaits it:
            unshielded, giving up waiting cancels the future itself.
    """

    def __init__(self, launcher: subprocess.Popen[bytes], control: socket.socket) -> None:
        """Use ``Enclosure.open``."""
        self._launcher = launcher
        self._mark = owner_mark(launcher.pid)
        self._control = control
        self._lock = threading.Lock()
        self._stock: list[socket.socket] = []
        self._pidfd: int | None = None
        self.isolation = ""
        self.pid = 0
        self.exited: Future[int] = Future()

    @classmethod
    def open(cls, *, mounts: Mapping[Path, str], log: BinaryIO, namespace: bool = True) -> Self:
        """Start the launcher, in namespaces if that is permitted.

        Raises WorkFailedError: the launcher did not start.
        """
        sweep_shared_memory()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            launcher = subprocess.Popen(
                [sys.executable, "-I", str(LAUNCHER), str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=[theirs.fileno()],
                env={name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ},
                start_new_session=True,  # a Ctrl-C in the terminal is the caller's to handle
            )
        ours.settimeout(LAUNCHER_SECONDS)
        enclosure = cls(launcher, ours)
        place = {"mount": {str(folder): path for folder, path in mounts.items()}, "namespace": namespace}
        answer = enclosure._ask(json.dumps(place))["isolation"]
        enclosure.isolation = answer if answer == "namespace" else f"open port: {answer}"
        threading.Thread(target=enclosure._wait, name="triton-exit", daemon=True).start()
        return enclosure

    @property
    def isolated(self) -> bool:
        """Whether the process has a network of its own."""
        return self.isolation == "namespace"

    def launch(self, argv: Sequence[str], *, env: Mapping[str, str]) -> None:
        """Start the process. Its shared memory regions must begin with ``shm_prefix`` to be removed after it.

        Raises WorkFailedError: the launcher ended instead.
        """
        command = {"argv": list(argv), "env": dict(env), "shm_prefix": self.shm_prefix}
        self.pid = int(self._ask(json.dumps(command))["pid"])
        with contextlib.suppress(ProcessLookupError):  # it ended at once; `exited` has the reason
            self._pidfd = os.pidfd_open(self.pid)

    @property
    def shm_prefix(self) -> str:
        """Prefix of the names of the process's regions in ``/dev/shm``."""
        return f"{REGION}{self._mark}"

    def connect(self, port: int) -> socket.socket:
        """A socket connected to a port of the process, TCP_NODELAY set, no timeout. Takes about 50 µs.

        Without TCP_NODELAY a request whose headers and body are two packets takes 44 ms (delayed acknowledgement).

        Raises ConnectionError: nothing listens there (yet), or the process has ended. Raises TimeoutError: the
        process accepts no connection.
        """
        one = self._unconnected()
        try:
            one.settimeout(CONNECT_SECONDS)
            one.connect(("127.0.0.1", port))
            one.settimeout(None)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            one.close()
            raise
        return one

    def signal(self, number: signal.Signals) -> None:
        """Send the process a signal; exactly that process, or none if it has ended."""
        if self._pidfd is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, number)

    def close(self) -> None:
        """End the launcher, and with it the process, at once. Waits until both are gone."""
        with self._lock:
            self._control.close()
        try:
            self._launcher.wait(LAUNCHER_SECONDS)
        except subprocess.TimeoutExpired:
            self._launcher.kill()  # the kernel then kills the process
            self._launcher.wait()
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None

    def _unconnected(self) -> socket.socket:
        if not self.isolated:
            return socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        with self._lock:
            if not self._stock:
                self._stock = self._fetch()
            return self._stock.pop()

    def _fetch(self) -> list[socket.socket]:
        """Request sockets of its network from the launcher."""
        try:
            self._control.send(b"sockets")
            message, descriptors, _, _ = socket.recv_fds(self._control, 64, _SOCKETS_AT_ONCE)
        except OSError as error:
            raise ConnectionResetError("the container has ended") from error
        if not message:
            raise ConnectionResetError("the container has ended")
        return [socket.socket(fileno=descriptor) for descriptor in descriptors]

    def _ask(self, message: str) -> dict[str, str]:
        try:
            self._control.send(message.encode())
            answer = self._control.recv(_MESSAGE_BYTES)
        except OSError as error:
            answer, why = b"", f": {error}"
        else:
            why = ""
        if not answer:
            self.close()
            raise WorkFailedError(f"the container's launcher ended with {self._launcher.returncode}{why}")
        parsed: dict[str, str] = json.loads(answer)
        return parsed

    def _wait(self) -> None:
        code = self._launcher.wait()
        with self._lock:
            for one in self._stock:
                one.close()
            self._stock.clear()
            self._control.close()
        self.exited.set_result(code if code >= 0 else 128 - code)
