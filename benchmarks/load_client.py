"""A small asynchronous HTTP/1.1 load client: kept-alive connections, one request at a time on each.

It is told how to get a connected socket, so that the same code calls a container inside its own network namespace and
a server on loopback.
"""

from __future__ import annotations

import asyncio
import socket
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import httptools


class WrongAnswerError(Exception):
    """An answer that is none, or not the right one: the figures would mean nothing."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """Who is called, and with what."""

    name: str  # for messages
    connect: Callable[[], socket.socket]  # gives a new connected socket with TCP_NODELAY; may block
    request: bytes  # the whole request, head and body
    right: Callable[[bytes], bool]  # whether an answer's body is the expected one


def http_request(path: str, body: bytes, headers: dict[str, str]) -> bytes:
    """A POST as it goes over the wire."""
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def connect_loopback(port: int) -> socket.socket:
    """A socket connected to a loopback port."""
    connected = socket.create_connection(("127.0.0.1", port))
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connected


class Connection(asyncio.Protocol):
    """One kept-alive connection."""

    def __init__(self) -> None:
        """Not connected yet."""
        self._transport: Any = None
        self._parser = httptools.HttpResponseParser(self)
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None
        self._body: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(WrongAnswerError(f"the connection was closed: {exc}"))

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        """Called by the parser."""
        self._body.append(body)

    def on_message_complete(self) -> None:
        """Called by the parser."""
        body, self._body = b"".join(self._body), []
        if self._answer is not None and not self._answer.done():
            self._answer.set_result((self._parser.get_status_code(), body))

    async def call(self, target: Target) -> None:
        """Send the target's request and wait for its answer.

        Raises WrongAnswerError: not 200, or not the right answer.
        """
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(target.request)
        status, body = await self._answer
        if status != 200 or not target.right(body):
            raise WrongAnswerError(f"{target.name} answered {status}: {body[:300]!r}")

    def close(self) -> None:
        """Close at once."""
        self._transport.abort()


async def open_connections(target: Target, count: int) -> list[Connection]:
    """So many connections to a target, each of which has answered once."""
    connections = []
    for _ in range(count):
        connected = await asyncio.to_thread(target.connect)
        connected.setblocking(False)
        _, connection = await asyncio.get_running_loop().create_connection(Connection, sock=connected)
        await connection.call(target)
        connections.append(connection)
    return connections


async def latencies(target: Target, connection: Connection, *, calls: int) -> list[float]:
    """Milliseconds of each of so many calls, one after the other."""
    times = []
    for _ in range(calls):
        started = time.perf_counter()
        await connection.call(target)
        times.append((time.perf_counter() - started) * 1000)
    return times


async def throughput(target: Target, connections: Sequence[Connection], *, seconds: float) -> float:
    """Answers a second with one caller on each connection, each calling again as soon as it is answered."""
    started = time.perf_counter()
    answered = 0

    async def caller(connection: Connection) -> None:
        nonlocal answered
        while time.perf_counter() - started < seconds:
            await connection.call(target)
            answered += 1

    await asyncio.gather(*(caller(connection) for connection in connections))
    return answered / (time.perf_counter() - started)


@dataclass(frozen=True, kw_only=True)
class Round:
    """One round: the median latency in ms and the answers a second, directly and through what is measured."""

    direct_ms: float
    through_ms: float
    direct_rate: float
    through_rate: float


Measured = Callable[[], tuple[float, float]]
"""The median latency of one caller in ms, and the answers a second of several."""


def in_turns(direct: Measured, through: Measured, *, rounds: int) -> list[Round]:
    """So many rounds of both ways; which one comes first changes from round to round."""
    found = []
    for number in range(rounds):
        if number % 2:
            second, first = through(), direct()
        else:
            first, second = direct(), through()
        found.append(Round(direct_ms=first[0], through_ms=second[0], direct_rate=first[1], through_rate=second[1]))
    return found


async def measured(target: Target, *, callers: int, calls: int, seconds: float) -> tuple[float, float]:
    """The median of so many calls of one caller in ms, and the answers a second of several."""
    connections = await open_connections(target, callers)
    median = statistics.median(await latencies(target, connections[0], calls=calls))
    rate = await throughput(target, connections, seconds=seconds)
    for connection in connections:
        connection.close()
    return median, rate
