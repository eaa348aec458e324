"""Connections to a container's SageMaker port: kept alive, pooled, at most one request at a time on each.

Triton's front end answers on the connection's own thread, so a connection is never shared by two requests: a second
one would wait for the first. Sockets come connected (and with TCP_NODELAY) from the container.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import httptools

from tritonstack.local.runtime.messages import Answer, Headers

SWEEP_SECONDS = 0.1
OpenSocket = Callable[[], Awaitable[socket.socket]]


class ContainerGoneError(Exception):
    """The container closed the connection before its answer was whole, or takes no connection."""


class UpstreamConnection(asyncio.Protocol):
    """One connection. ``send`` gives a future of its answer."""

    def __init__(self, pool: ConnectionPool | None = None) -> None:
        """``pool`` is told when the connection is lost."""
        self._pool = pool
        self._loop = asyncio.get_running_loop()
        self._transport: Any = None
        self._parser = httptools.HttpResponseParser(self)
        self._answer: asyncio.Future[Answer] | None = None
        self._headers: Headers = {}
        self._body: list[bytes] = []
        self.deadline = 0.0
        self.closed = False

    def send(self, head: bytes, body: bytes, *, seconds: float) -> asyncio.Future[Answer]:
        """Send one request whose head ends with the blank line.

        Returns:
            a future that ends with the answer, ContainerGoneError, or TimeoutError after ``seconds``: the pool looks
            for that every SWEEP_SECONDS, which costs a request less than a timer of its own.
        """
        answer: asyncio.Future[Answer] = self._loop.create_future()
        if self.closed:
            answer.set_exception(ContainerGoneError("the connection is closed"))
            return answer
        self._answer = answer
        self.deadline = time.monotonic() + seconds
        if len(body) < 65536:
            self._transport.write(head + body)
        else:
            self._transport.writelines((head, body))
        return answer

    @property
    def busy(self) -> bool:
        """Whether an answer is awaited."""
        return self._answer is not None

    def close(self) -> None:
        """Close at once; a request in flight ends with ContainerGoneError."""
        self.closed = True
        if self._transport is not None:
            self._transport.abort()

    def expire(self) -> None:
        """The answer did not come in time: the request ends with TimeoutError, and so does the connection."""
        self._finish(TimeoutError("no answer in time"))
        self.close()

    def _finish(self, error: Exception) -> None:
        answer, self._answer = self._answer, None
        if answer is not None and not answer.done():
            answer.set_exception(error)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        self.closed = True
        self._finish(ContainerGoneError(str(exc) if exc else "the container closed the connection"))
        if self._pool is not None:
            self._pool.forget(self)

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._finish(ContainerGoneError(f"malformed HTTP answer: {error}"))
            self.close()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser."""
        self._headers[name.lower()] = value

    def on_body(self, body: bytes) -> None:
        """Called by the parser."""
        self._body.append(body)

    def on_message_complete(self) -> None:
        """Called by the parser."""
        parts, headers = self._body, self._headers
        self._body, self._headers = [], {}
        answer, self._answer = self._answer, None
        if not self._parser.should_keep_alive():
            self.close()
        if answer is not None and not answer.done():
            body = parts[0] if len(parts) == 1 else b"".join(parts)
            answer.set_result(Answer(self._parser.get_status_code(), headers, body))


class ConnectionPool:
    """The connections to one container. The idle one used last is taken first; callers beyond the limit wait."""

    def __init__(self, *, open_socket: OpenSocket, limit: int) -> None:
        """``open_socket`` gives a connected socket; ``limit`` is the most connections at once."""
        self._open_socket = open_socket
        self._limit = limit
        self._idle: list[UpstreamConnection] = []
        self._all: set[UpstreamConnection] = set()
        self._opening = 0
        self._waiting: deque[asyncio.Future[UpstreamConnection | None]] = deque()
        self._closed = False
        self._sweep: asyncio.TimerHandle | None = None

    @property
    def size(self) -> int:
        """Connections that are open."""
        return len(self._all)

    def take_idle(self) -> UpstreamConnection | None:
        """An idle connection without waiting, or None."""
        while self._idle:
            connection = self._idle.pop()
            if not connection.closed:
                return connection
        return None

    async def take(self) -> UpstreamConnection:
        """A connection for one request; give it back with ``release``.

        Raises:
            ContainerGoneError: the container takes no connection.
        """
        while True:
            connection = self.take_idle()
            if connection is not None:
                return connection
            if len(self._all) + self._opening < self._limit:
                return await self._open()
            turn: asyncio.Future[UpstreamConnection | None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                given = await turn
            except asyncio.CancelledError:
                self._pass_on(turn)
                raise
            if given is not None and not given.closed:
                return given

    def _pass_on(self, turn: asyncio.Future[UpstreamConnection | None]) -> None:
        """A cancelled caller may already have been given a connection: the next one gets it."""
        if turn.done() and not turn.cancelled() and turn.exception() is None:
            given = turn.result()
            if given is not None:
                self.release(given)
            else:
                self._wake(None)

    async def _open(self) -> UpstreamConnection:
        if self._closed:
            raise ContainerGoneError("the container is stopped")
        self._opening += 1
        try:
            connected = await self._open_socket()
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: UpstreamConnection(self), sock=connected
            )
        except OSError as error:
            self._wake(None)
            raise ContainerGoneError(f"the container takes no connection: {error}") from error
        finally:
            self._opening -= 1
        if self._closed:
            connection.close()
            raise ContainerGoneError("the container is stopped")
        self._all.add(connection)
        if self._sweep is None:
            self._look_for_late_answers()
        return connection

    def _look_for_late_answers(self) -> None:
        now = time.monotonic()
        for connection in list(self._all):
            if connection.busy and now > connection.deadline:
                connection.expire()
        again = asyncio.get_running_loop().call_later if self._all and not self._closed else None
        self._sweep = again(SWEEP_SECONDS, self._look_for_late_answers) if again else None

    def release(self, connection: UpstreamConnection) -> None:
        """Give a connection back, whole or closed."""
        if connection.busy:  # its caller went away; an answer would meet the next request
            connection.close()
        if connection.closed:
            self.forget(connection)
            return
        if not self._wake(connection):
            self._idle.append(connection)

    def _wake(self, connection: UpstreamConnection | None) -> bool:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(connection)
                return True
        return False

    def forget(self, connection: UpstreamConnection) -> None:
        """A connection was lost: make room for another."""
        if connection in self._all:
            self._all.discard(connection)
            self._wake(None)

    def close(self) -> None:
        """Close every connection; requests in flight end with ContainerGoneError."""
        self._closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        for connection in list(self._all):
            connection.close()
        self._idle.clear()
        while self._wake(None):
            pass
