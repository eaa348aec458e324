"""Straight at a local endpoint's container, past the runtime: the server's SageMaker port and its metrics port."""

from __future__ import annotations

import functools
import http.client
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psutil

from tritonstack.client.body import Body
from tritonstack.errors import WorkFailedError
from tritonstack_capacity.bench.entrance import entrance, inside
from tritonstack_capacity.bench.http_caller import OpenSocket
from tritonstack_capacity.bench.request import ReadyRequest
from tritonstack_capacity.bench.target import BenchTarget

SAGEMAKER_PORT = ("--sagemaker-port=", 8080)
METRICS_PORT = ("--metrics-port=", 8002)
"""Flags of the server, and the ports without them (``tritonserver --help``)."""
TARGET_MODEL = "X-Amzn-SageMaker-Target-Model"
ANSWER_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True)
class LocalContainer:
    """One running container.

    Attributes:
        open_socket: gives sockets of its network.
        enter: what stands before a command that is to run in its network; nothing where it shares this one.
        port: of SageMaker's front end.
        metrics_port: of Triton's own figures.
        server_version: as the server logged it; None where it did not.
    """

    open_socket: OpenSocket
    enter: tuple[str, ...]
    port: int
    metrics_port: int
    server_version: str | None

    def request(self, target: BenchTarget, body: Body, *, name_hash: str | None) -> ReadyRequest:
        """What SageMaker sends to the container for a call; ``name_hash`` None: the one model of its endpoint."""
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
            raise WorkFailedError(f"Triton's metrics port {self.metrics_port} does not answer: {error}") from error
        finally:
            connection.close()


@contextmanager
def local_container(status: Mapping[str, Any], endpoint: str) -> Iterator[LocalContainer]:
    """The container that serves a local endpoint.

    Args:
        status: the runtime's account of itself (``LocalAws.runtime_status``).
        endpoint: its SageMaker name.

    Raises:
        WorkFailedError: none serves it, or its network cannot be entered.
    """
    fleet = serving_fleet(status, endpoint)
    process = psutil.Process(fleet["pid"])
    parts = {
        "port": _port(process.cmdline(), *SAGEMAKER_PORT),
        "metrics_port": _port(process.cmdline(), *METRICS_PORT),
        "server_version": fleet["server_version"],
    }
    if fleet["isolation"] != "namespace":
        yield LocalContainer(open_socket=_plain_socket, enter=(), **parts)
        return
    with entrance(process.pid) as opened:
        yield LocalContainer(open_socket=opened.open_socket, enter=inside(process.pid), **parts)


def serving_fleet(status: Mapping[str, Any], endpoint: str) -> Mapping[str, Any]:
    """The runtime's account of the fleet that answers an endpoint's calls. Raises WorkFailedError."""
    fleets = [fleet for one in status["endpoints"] if one["name"] == endpoint for fleet in one["fleets"]]
    serving = [fleet for fleet in fleets if fleet["serving"] and fleet["pid"] is not None]
    if not serving:
        raise WorkFailedError(
            f"no container serves endpoint {endpoint} on the local AWS\n  do: tritonstack local status"
        )
    found: Mapping[str, Any] = max(serving, key=lambda fleet: float(fleet["share"]))
    return found


def name_hash_of(fleet: Mapping[str, Any], target_model: str) -> str:
    """Under which name the container knows a loaded archive. Raises WorkFailedError."""
    for model in fleet["models"]:
        if model["target_model"] == target_model:
            return str(model["hash"])
    raise WorkFailedError(f"the container has not loaded {target_model}\n  do: call it once through its endpoint")


def _port(command: list[str], flag: str, otherwise: int) -> int:
    given = [word.removeprefix(flag) for word in command if word.startswith(flag)]
    return int(given[-1]) if given else otherwise


_plain_socket = functools.partial(socket.socket, socket.AF_INET, socket.SOCK_STREAM)
