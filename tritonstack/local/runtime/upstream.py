"""One kept-alive connection to a container's SageMaker port, with at most one request on it at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import httptools

from tritonstack.local.runtime.messages import Answer, Headers


class ContainerGoneError(Exception):
    """The container closed the connection before its answer was whole, or takes no connection."""


class UpstreamConnection(asyncio.Protocol):
    """One connection. ``send`` gives a future of its answer.

    Attributes:
        apart: connections that keep another thread of the front end busy than the one that serves this connection.
    """

    def __init__(self, lost: Callable[[UpstreamConnection], None] = lambda _connection: None) -> None:
        """``lost`` is called when the connection is lost."""
        self._lost = lost
        self.apart: set[UpstreamConnection] = set()
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
            a future that ends with the answer, ContainerGoneError, or TimeoutError after ``seconds``: whoever holds
            the connections looks for that now and then, which costs a request less than a timer of its own.
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
        self._lost(self)

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
