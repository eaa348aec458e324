"""One kept-alive connection to a container's SageMaker port, with at most one request on it at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import httptools

from tritonstack.http_server import Answer, Headers


class ContainerGoneError(Exception):
    """The container closed the connection before its answer was whole, or takes no connection."""


Outcome = Answer | ContainerGoneError | TimeoutError
"""How a request to the container ends."""


class UpstreamConnection(asyncio.Protocol):
    """One connection. ``start`` calls back with the answer, ``send`` gives a future of it.

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
        self._ended: Callable[[Outcome], None] | None = None
        self._headers: Headers = {}
        self._body: list[bytes] = []
        self.deadline = 0.0
        self.closed = False

    def send(self, head: bytes, body: bytes, *, seconds: float) -> asyncio.Future[Answer]:
        """As ``start``, with a future that ends with the answer, ContainerGoneError or TimeoutError."""
        answer: asyncio.Future[Answer] = self._loop.create_future()

        def ended(outcome: Outcome) -> None:
            if answer.done():  # its caller went away
                return
            if isinstance(outcome, Answer):
                answer.set_result(outcome)
            else:
                answer.set_exception(outcome)

        self.start(head, body, seconds=seconds, ended=ended)
        return answer

    def start(self, head: bytes, body: bytes, *, seconds: float, ended: Callable[[Outcome], None]) -> None:
        """Send one request whose head ends with the blank line.

        ``ended`` is called once: with the answer, ContainerGoneError, or TimeoutError after ``seconds``. Whoever holds
        the connections looks for that now and then, which costs a request less than a timer of its own.
        """
        if self.closed:
            ended(ContainerGoneError("the connection is closed"))
            return
        self._ended = ended
        self.deadline = time.monotonic() + seconds
        if len(body) < 65536:
            self._transport.write(head + body)
        else:
            self._transport.writelines((head, body))

    @property
    def busy(self) -> bool:
        """Whether an answer is awaited."""
        return self._ended is not None

    def close(self) -> None:
        """Close at once; a request in flight ends with ContainerGoneError."""
        self.closed = True
        if self._transport is not None:
            self._transport.abort()

    def expire(self) -> None:
        """The answer did not come in time: the request ends with TimeoutError, and so does the connection."""
        self.close()
        self._finish(TimeoutError("no answer in time"))

    def _finish(self, outcome: Outcome) -> None:
        ended, self._ended = self._ended, None
        if ended is not None:
            ended(outcome)

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
            self.close()
            self._finish(ContainerGoneError(f"malformed HTTP answer: {error}"))

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
        if not self._parser.should_keep_alive():
            self.close()
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        self._finish(Answer(self._parser.get_status_code(), headers, body))
