"""A local endpoint's container without the runtime: sockets in its network, its SageMaker port, Triton's counters."""

from __future__ import annotations

import functools
import http.client
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psutil

from tritonstack.client.body import Body
from tritonstack.errors import WorkFailedError
from tritonstack_capacity.bench.http_caller import OpenSocket, ReadyRequest
from tritonstack_capacity.bench.measuring import ServerPart
from tritonstack_capacity.bench.settings import Progress
from tritonstack_capacity.bench.subject import BenchTarget

# A local container has a network of its own that the runtime alone reaches. A process of the same user may enter it: a
# small helper does, and hands out sockets over a Unix socket pair; a socket keeps the network in which it was made.
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
        """Close the sockets that were not used."""
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

    Raises WorkFailedError: it cannot be entered.
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


# Source of the names: Triton's user guide, «Metrics», inference request metrics; durations are cumulative
# microseconds.
_LINE = re.compile(r"^(nv_inference_\w+)\{([^}]*)\} (\S+)$", re.MULTILINE)
_MODEL = re.compile(r'model="([^"]*)"')
DURATIONS = {
    "request_ms": "request",
    "queue_ms": "queue",
    "input_ms": "compute_input",
    "compute_ms": "compute_infer",
    "output_ms": "compute_output",
}
Counters = Mapping[tuple[str, str], float]
"""(metric, Triton model) → value."""


def read_counters(text: str) -> dict[tuple[str, str], float]:
    """The inference counters in Prometheus' text format; of several versions of a model the sum."""
    found: dict[tuple[str, str], float] = {}
    for metric, labels, value in _LINE.findall(text):
        model = _MODEL.search(labels)
        if model is not None:
            key = metric, model[1]
            found[key] = found.get(key, 0.0) + float(value)
    return found


def between(before: Counters, after: Counters) -> list[ServerPart]:
    """Counts between two readings, for each model with responses, the busiest first."""
    found = []
    for model in sorted({name for metric, name in after if metric == "nv_inference_request_success"}):
        gained = {
            metric: after[metric, name] - before.get((metric, name), 0.0) for metric, name in after if name == model
        }
        requests, runs = gained["nv_inference_request_success"], gained.get("nv_inference_exec_count", 0.0)
        if requests <= 0:
            continue

        durations = {
            name: gained.get(f"nv_inference_{part}_duration_us", 0.0) / requests / 1000
            for name, part in DURATIONS.items()
        }
        mean_batch = gained.get("nv_inference_count", 0.0) / runs if runs else 0.0
        found.append(ServerPart(model=model, requests=int(requests), mean_batch=mean_batch, **durations))
    return sorted(found, key=lambda one: -one.requests)


SAGEMAKER_PORT = ("--sagemaker-port=", 8080)
METRICS_PORT = ("--metrics-port=", 8002)
"""Flags of the server, and the ports without them (``tritonserver --help``)."""
TARGET_MODEL = "X-Amzn-SageMaker-Target-Model"
ANSWER_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True)
class LocalContainer:
    """One running container."""

    open_socket: OpenSocket  # gives sockets of its network
    port: int  # of SageMaker's front end
    metrics_port: int  # of Triton's own figures
    server_version: str | None  # as the server logged it; None where it did not
    pid: int | None = None  # of the server, whose utilization is the container's

    def request(self, target: BenchTarget, body: Body, *, name_hash: str | None) -> ReadyRequest:
        """The HTTP request that SageMaker sends to the container; ``name_hash`` None: the one model of its endpoint."""
        path = "/invocations" if name_hash is None else f"/models/{name_hash}/invoke"
        named = {} if target.call.target_model is None else {TARGET_MODEL: target.call.target_model}
        headers = {"Content-Type": body.content_type, **named}
        return ReadyRequest(url=f"http://127.0.0.1:{self.port}{path}", headers=headers, body=body.content)

    def metrics(self) -> str:
        """Triton's figures in Prometheus' text format. Raises WorkFailedError."""
        connection = http.client.HTTPConnection("127.0.0.1", self.metrics_port)
        try:
            made = self.open_socket()
            made.settimeout(ANSWER_SECONDS)
            made.connect(("127.0.0.1", self.metrics_port))
            connection.sock = made
            connection.request("GET", "/metrics")
            return connection.getresponse().read().decode()
        except (OSError, http.client.HTTPException) as error:
            raise WorkFailedError(f"Triton's metrics port {self.metrics_port} does not respond: {error}") from error
        finally:
            connection.close()


@contextmanager
def local_container(status: Mapping[str, Any], endpoint: str) -> Iterator[LocalContainer]:
    """The container that serves a local endpoint.

    ``status`` is ``LocalAws.runtime_status``.

    Raises:
        WorkFailedError: none serves it, or its network cannot be entered.
    """
    fleet = serving_fleet(status, endpoint)
    process = psutil.Process(fleet["pid"])
    parts = {
        "port": _port(process.cmdline(), *SAGEMAKER_PORT),
        "metrics_port": _port(process.cmdline(), *METRICS_PORT),
        "server_version": fleet["server_version"],
        "pid": process.pid,
    }
    if fleet["isolation"] != "namespace":
        yield LocalContainer(open_socket=_plain_socket, **parts)
        return
    with entrance(process.pid) as opened:
        yield LocalContainer(open_socket=opened.open_socket, **parts)


def serving_fleet(status: Mapping[str, Any], endpoint: str) -> Mapping[str, Any]:
    """The runtime's status of the fleet that serves an endpoint's requests. Raises WorkFailedError."""
    fleets = [fleet for one in status["endpoints"] if one["name"] == endpoint for fleet in one["fleets"]]
    serving = [fleet for fleet in fleets if fleet["serving"] and fleet["pid"] is not None]
    if not serving:
        said = f"no container serves endpoint {endpoint} on the local AWS"
        raise WorkFailedError(f"{said}\n  do: tritonstack local status")
    found: Mapping[str, Any] = max(serving, key=lambda fleet: float(fleet["share"]))
    return found


def name_hash_of(fleet: Mapping[str, Any], target_model: str) -> str:
    """The container's name of a loaded archive. Raises WorkFailedError."""
    for model in fleet["models"]:
        if model["target_model"] == target_model:
            return str(model["hash"])
    raise WorkFailedError(f"the container has not loaded {target_model}\n  do: invoke it once through its endpoint")


def _port(command: list[str], flag: str, otherwise: int) -> int:
    given = [word.removeprefix(flag) for word in command if word.startswith(flag)]
    return int(given[-1]) if given else otherwise


_plain_socket = functools.partial(socket.socket, socket.AF_INET, socket.SOCK_STREAM)


ADVICE = "container: {allow_metrics: true} in the environment file"
"""Where they never could be read."""


class ServerCounters:
    """Returns the counts since the last reading; empty where the metrics cannot be read."""

    def __init__(self, container: LocalContainer | None, *, progress: Progress) -> None:
        """Read them for the first time; ``container`` None: there is none, as in the cloud."""
        self._container = container
        self._progress = progress
        self._before: Counters | None = None
        self._before = self._read()

    def since(self) -> list[ServerPart]:
        """Counts since then, the busiest model first."""
        before, after = self._before or {}, self._read()
        self._before = after
        return between(before, after)

    def _read(self) -> Counters:
        """Empty where the metrics are off, which SageMaker's script does by default; noted once."""
        if self._container is None:
            return {}
        try:
            return read_counters(self._container.metrics())
        except WorkFailedError as error:
            self._container = None
            never = "" if self._before is not None else f"\n  do: {ADVICE}"
            self._progress.note(f"without Triton's own figures: {error}{never}")
            return {}
