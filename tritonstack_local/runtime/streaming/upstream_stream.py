"""One request to a container on a connection of its own, whose response is read as it comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httptools

from tritonstack.loopback.http_server import Headers, HttpResponse
from tritonstack_local.runtime.pool import ContainerGoneError

HELD_BYTES = 1 << 20
"""Bytes that were received and not yet taken, from which on no more is read."""


class UpstreamStream(asyncio.Protocol):
    """Sends a request; gives the response's head, then its parts.

    Attributes:
        head: status and headers; ContainerGoneError where none came.
        ended: done once the response is whole or the connection is lost.
    """

    def __init__(self, request: bytes) -> None:
        """``request``: head and body, sent once connected."""
        self._request = request
        self._parser = httptools.HttpResponseParser(self)
        self._transport: Any = None
        self._headers: Headers = {}
        self._parts: asyncio.Queue[bytes | ContainerGoneError | None] = asyncio.Queue()
        self._held = 0
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.head: asyncio.Future[tuple[int, Headers]] = asyncio.get_running_loop().create_future()

    async def parts(self) -> AsyncIterator[bytes]:
        """The body as it comes. Raises ContainerGoneError: it is cut off."""
        while (part := await self._parts.get()) is not None:
            if isinstance(part, ContainerGoneError):
                raise part
            self._held -= len(part)
            if self._held < HELD_BYTES:
                self._transport.resume_reading()
            yield part

    async def response(self) -> HttpResponse:
        """The whole response. Raises ContainerGoneError."""
        status, headers = await self.head
        return HttpResponse(status, headers, b"".join([part async for part in self.parts()]))

    def close(self) -> None:
        """Close at once: Triton then cancels the request; what was not taken yet ends with ContainerGoneError."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._transport.write(self._request)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(ContainerGoneError(str(exc) if exc else "the container closed the connection"))

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._end(ContainerGoneError(f"malformed HTTP response: {error}"))
            self.close()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        if not self.head.done():
            self.head.set_result((self._parser.get_status_code(), self._headers))

    def on_body(self, body: bytes) -> None:
        self._parts.put_nowait(body)
        self._held += len(body)
        if self._held >= HELD_BYTES:
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        self._end(None)
        self.close()

    def _end(self, outcome: ContainerGoneError | None) -> None:
        if self.ended.done():
            return
        self.ended.set_result(None)
        self._parts.put_nowait(outcome)
        if outcome is not None and not self.head.done():
            self.head.set_exception(outcome)
            self.head.exception()  # retrieved: its caller may be gone
