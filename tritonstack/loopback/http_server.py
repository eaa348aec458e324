"""The loopback HTTP server of the proxy and of the local InvokeEndpoint: an asyncio protocol over httptools.

A protocol of our own instead of an ASGI server, as measured with 16 clients of a small ONNX model on two cores that are
shared with Triton and the client (``python -m benchmarks invoke-overhead``): of a direct request's throughput uvicorn
(uvloop, httptools) kept 0.50, this keeps 0.6 to 0.7, by machine. A request takes 50 µs of a processor: 20 are the
kernel's, for four system calls, 23 Python's, the rest the parser's and the event loop's (perf).
"""

from __future__ import annotations

import asyncio
import json
import math
import time
import uuid
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import httptools

from tritonstack.loopback.guard import refusal_of

Headers = dict[bytes, bytes]


@dataclass(slots=True, eq=False)
class Sender:
    """The client of a connection."""

    gone: bool = False  # it has closed the connection, so no response will be read


@dataclass(slots=True, eq=False, kw_only=True)
class Request:
    """A request that arrived whole."""

    method: bytes
    path: bytes
    headers: Headers  # names in lower case
    body: bytes
    received: float  # monotonic time of its first byte, seconds
    id: str
    sender: Sender = field(default_factory=Sender)


@dataclass(slots=True, eq=False)
class HttpResponse:
    """An HTTP response."""

    status: int
    headers: Headers  # names in lower case
    body: bytes

    @classmethod
    def of_json(cls, value: Any, *, status: int = 200) -> HttpResponse:
        """A response with a JSON body."""
        return cls(status, {b"content-type": b"application/json"}, json.dumps(value).encode())


@dataclass(slots=True, eq=False)
class StreamedResponse(HttpResponse):
    """An HTTP response whose body is sent as it comes, chunked. An error in ``parts`` ends the connection.

    ``parts`` are read to their end also where the client is gone.
    """

    parts: AsyncIterator[bytes]


@dataclass(eq=False)
class InvokeError(Exception):
    """An error response, in the form from which an AWS SDK builds its exception."""

    code: str  # the error's name in the service model
    status: int  # the HTTP status that belongs to the code
    message: str  # one sentence
    # further members of the body (OriginalStatusCode, OriginalMessage, LogStreamArn, ErrorCode)
    members: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


def malformed(reason: str) -> InvokeError:
    """The request is no valid HTTP."""
    return InvokeError("ValidationError", 400, f"The request is no valid HTTP/1.1: {reason}")


def foreign(reason: str) -> InvokeError:
    """A web page caused the request."""
    return InvokeError("AccessDeniedException", 403, f"The request is refused: {reason}.")


def internal_failure(message: str) -> InvokeError:
    """The server itself failed."""
    return InvokeError("InternalFailure", 500, message)


Handle = Callable[[Request], Awaitable[HttpResponse]]
Refused = Callable[[bytes, bytes, InvokeError], None]
Done = Callable[[HttpResponse | Exception], None]
HandleAtOnce = Callable[[Request, Done], bool]

DRAINED_BYTES = 256 * 1024 * 1024
"""Bytes that are read and discarded after a refusal, so that the sender gets the response, not a reset."""
RECEIVE_SECONDS = 60.0
"""Time limit for receiving a request, and for discarding the rest of a refused one."""
HEAD_BYTES = 64 * 1024
"""The most bytes of a request's line and headers together, of its trailers, and between two pieces of its body."""
PIPELINED_REQUESTS = 16
"""Requests that wait for their turn on one connection before no more is read from it."""

_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_RUN = str(uuid.uuid4())[:23]  # what the ids of all requests of this process begin with


def render(answer: HttpResponse, *, request_id: str, keep_alive: bool, id_header: bytes) -> tuple[bytes, bytes]:
    """Head and body of a response, as sent; of a streamed one without its parts."""
    lines = [_STATUS_LINES.get(answer.status) or f"HTTP/1.1 {answer.status} Unknown\r\n".encode()]
    lines += [b"%b: %b\r\n" % pair for pair in answer.headers.items()]
    streamed = isinstance(answer, StreamedResponse)
    lines.append(b"transfer-encoding: chunked\r\n" if streamed else b"content-length: %d\r\n" % len(answer.body))
    lines.append(b"%b: %b\r\n" % (id_header, request_id.encode()))
    lines.append(b"\r\n" if keep_alive else b"connection: close\r\n\r\n")
    return b"".join(lines), answer.body


def error_answer(error: InvokeError) -> HttpResponse:
    """An error in the form from which an AWS SDK builds its exception."""
    headers = {b"content-type": b"application/json", b"x-amzn-errortype": error.code.encode()}
    return HttpResponse(error.status, headers, json.dumps({**error.members, "Message": error.message}).encode())


class ServerConnection(asyncio.Protocol):
    """One client's connection; its requests are handled one after the other."""

    def __init__(self, server: Server) -> None:
        """``server`` handles the requests."""
        self._server = server
        self._sender = Sender()
        self._transport: Any = None
        self._parser = httptools.HttpRequestParser(self)
        self._path = b""
        self._headers: Headers = {}
        self._body: list[bytes] = []
        self._size = 0
        self._head_size = 0
        self._unparsed = 0  # bytes since the request began or its body last grew: the parser may still hold them
        self._in_head = True
        self._receiving = False
        self._paused = False
        self._received = 0.0
        self._refused = False
        self.deadline = math.inf
        self._waiting: deque[tuple[Request | InvokeError, bool]] = deque()
        self._current: tuple[str, bool] | None = None  # the request that is handled: its id, and keep-alive
        self._task: asyncio.Task[None] | None = None
        self._ended: asyncio.Future[None] | None = None
        self._writable = True
        self._drained: asyncio.Future[None] | None = None  # a streamed response waits for its client to read

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        self._transport = transport
        self._server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  (asyncio.Protocol's signature)
        """See asyncio.Protocol. A client that disconnects does not stop its request: neither does SageMaker."""
        self._server.connections.discard(self)
        self._sender.gone = True
        self.resume_writing()

    def pause_writing(self) -> None:
        """See asyncio.Protocol. The next request waits until the client has read."""
        self._writable = False

    def resume_writing(self) -> None:
        """See asyncio.Protocol."""
        self._writable = True
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        self._next()

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        if self._refused:
            self._size += len(data)
            if self._size > DRAINED_BYTES:
                self._transport.abort()
            return
        self._unparsed += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:  # refused in on_headers_complete
            return
        except httptools.HttpParserError as error:
            self._refuse(malformed(str(error)))
        if self._unparsed > HEAD_BYTES + len(data):
            self._head_too_large()
        if len(self._waiting) >= PIPELINED_REQUESTS and not self._paused:
            self._paused, self.deadline = True, math.inf
            self._transport.pause_reading()

    def _refuse(self, error: InvokeError) -> None:
        """Respond with an error at this request's turn; what follows on the connection is discarded."""
        if self._refused:
            return
        self._refused = True
        self._size, self._body = 0, []
        self.deadline = time.monotonic() + self._server.receive_seconds
        self._waiting.append((error, False))
        self._next()

    def expire(self) -> None:
        """The request did not arrive in time."""
        self._transport.abort()

    def under_way(self) -> asyncio.Future[None] | None:
        """Completes when the current requests have responses; None without requests."""
        if self._current is not None or self._waiting:
            self._ended = self._ended or asyncio.get_running_loop().create_future()
        return self._ended

    def close(self) -> None:
        """Close once all written data is sent."""
        if self._transport is not None:
            self._transport.close()

    def on_message_begin(self) -> None:
        """Called by the parser."""
        self._received = time.monotonic()
        if not self._refused:
            self.deadline = self._received + self._server.receive_seconds
        self._path, self._headers, self._body, self._size = b"", {}, [], 0
        self._head_size, self._unparsed, self._in_head, self._receiving = 0, 0, True, True

    def on_url(self, url: bytes) -> None:
        """Called by the parser."""
        self._head_size += len(url)
        if self._head_size <= HEAD_BYTES:
            self._path += url
        else:
            self._head_too_large()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser, for trailers too: these are read and discarded (RFC 9110, 6.5.1)."""
        self._head_size += len(name) + len(value) + 4
        if self._head_size > HEAD_BYTES:
            self._head_too_large()
        elif self._in_head:
            key = name.lower()
            if key == b"host" and key in self._headers:  # one of them could be what was checked, the other what counts
                self._refuse(malformed("more than one header Host"))
            self._headers[key] = value

    def _head_too_large(self) -> None:
        self._refuse(InvokeError("431", 431, f"Request line and headers, or trailers, exceeded {HEAD_BYTES} bytes."))

    def on_headers_complete(self) -> None:
        """Called by the parser, which has checked that Content-Length is a number."""
        self._in_head, self._head_size = False, 0
        if self._refused:
            return
        reason = refusal_of(self._headers)
        if reason is not None:
            self._refuse(foreign(reason))
        elif self._parser.should_upgrade():
            self._refuse(malformed("the connection cannot be upgraded"))
        elif int(self._headers.get(b"content-length", b"0")) > self._server.max_payload_bytes:
            self._too_large()
        elif self._headers.get(b"expect", b"").lower() == b"100-continue":
            self._transport.write(_CONTINUE)

    def on_body(self, body: bytes) -> None:
        """Called by the parser. A chunked body shows only here that it is beyond the limit."""
        self._unparsed = 0
        if self._refused:
            return
        self._size += len(body)
        if self._size <= self._server.max_payload_bytes:
            self._body.append(body)
        else:
            self._too_large()

    def _too_large(self) -> None:
        # The service responds 413 without a modelled error; the code is then the status, as SDK users see it
        # (sagemaker-python-sdk issue 171).
        limit = self._server.max_payload_bytes
        error = InvokeError("413", 413, f"HTTP content length exceeded {limit} bytes.")
        self._server.refused(self._parser.get_method(), self._path, error)
        self._refuse(error)

    def on_message_complete(self) -> None:
        """Called by the parser."""
        self._unparsed, self._receiving = 0, False
        if self._refused:
            return
        self.deadline = math.inf
        keep_alive = self._parser.should_keep_alive()
        request = Request(
            method=self._parser.get_method(),
            path=self._path,
            headers=self._headers,
            body=self._body[0] if len(self._body) == 1 else b"".join(self._body),
            received=self._received,
            id=self._server.next_request_id(),
            sender=self._sender,
        )
        self._body = []
        self._waiting.append((request, keep_alive))
        self._next()

    def _next(self) -> None:
        """Begin to handle the next request: an ordinary one without a task."""
        if not self._waiting or self._current is not None or not self._writable:
            return
        request, keep_alive = self._waiting.popleft()
        if self._paused and len(self._waiting) < PIPELINED_REQUESTS // 2:
            self._paused = False
            self.deadline = time.monotonic() + self._server.receive_seconds if self._receiving else math.inf
            self._transport.resume_reading()
        if isinstance(request, InvokeError):
            self._current = self._server.next_request_id(), keep_alive
            self._done(request)
            return
        self._current = request.id, keep_alive
        try:
            if self._server.handle_at_once(request, self._done):
                return
        except Exception as error:  # noqa: BLE001  (as in Server.answer)
            self._done(error)
            return
        self._task = asyncio.get_running_loop().create_task(self._handle(request))

    async def _handle(self, request: Request) -> None:
        self._done(await self._server.answer(request))

    def _done(self, outcome: HttpResponse | Exception) -> None:
        """Respond to the current request."""
        if self._current is None:
            return
        request_id, keep_alive = self._current
        answer = outcome if isinstance(outcome, HttpResponse) else self._server.failed(outcome, request_id=request_id)
        if isinstance(answer, StreamedResponse):
            streaming = self._stream(answer, request_id=request_id, keep_alive=keep_alive)
            self._task = asyncio.get_running_loop().create_task(streaming)
            return
        self._write(answer, request_id=request_id, keep_alive=keep_alive)
        self._responded()

    async def _stream(self, answer: StreamedResponse, *, request_id: str, keep_alive: bool) -> None:
        """Send a response part by part, no faster than its client reads."""
        id_header, whole = self._server.id_header, True
        self._send(b"".join(render(answer, request_id=request_id, keep_alive=keep_alive, id_header=id_header)))
        try:
            async for part in answer.parts:
                if part:
                    self._send(b"%x\r\n%b\r\n" % (len(part), part))
                if not self._writable and not self._sender.gone:
                    self._drained = asyncio.get_running_loop().create_future()
                    await self._drained
        except Exception as error:  # noqa: BLE001  (the status is sent: only the connection's end can show a failure)
            self._server.failed(error, request_id=request_id)
            whole = False
        if whole:
            self._send(b"0\r\n\r\n")
        if not (whole and keep_alive):
            self._transport.close()
        self._responded()

    def _send(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)

    def _responded(self) -> None:
        """The current request has its response: the next one begins."""
        self._current = None
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._next)
        elif self._ended is not None:
            self._ended.set_result(None)
            self._ended = None

    def _write(self, answer: HttpResponse, *, request_id: str, keep_alive: bool) -> None:
        if self._transport.is_closing():
            return
        id_header = self._server.id_header
        head, body = render(answer, request_id=request_id, keep_alive=keep_alive, id_header=id_header)
        if len(body) < 65536:
            self._transport.write(head + body)
        else:
            self._transport.writelines((head, body))
        if keep_alive:
            return
        if self._refused and not self._waiting:  # closing now would reset the connection under what is still sent
            self._transport.write_eof()
        else:
            self._transport.close()


class Server:
    """Listens on loopback and passes complete requests to ``handle``."""

    def __init__(
        self,
        *,
        handle: Handle,
        max_payload_bytes: int,
        log: Callable[[str], None],
        handle_at_once: HandleAtOnce = lambda _request, _done: False,
        refused: Refused = lambda _method, _path, _error: None,
        receive_seconds: float = RECEIVE_SECONDS,
        name: str = "local runtime",
        error_answer: Callable[[InvokeError], HttpResponse] = error_answer,
        id_header: bytes = b"x-amzn-requestid",
    ) -> None:
        """Does not listen yet.

        Args:
            handle: returns the response to a request, or raises InvokeError.
            max_payload_bytes: the largest body of a request.
            log: called with a line about an internal failure.
            handle_at_once: called first; True: it handles the request, and calls back once with the outcome.
            refused: called with method and path of a request whose body is too large.
            receive_seconds: see RECEIVE_SECONDS.
            name: in the log and in internal failures.
            error_answer: formats an error for the clients.
            id_header: response header with the request's id.
        """
        self._handle = handle
        self._name = name
        self._error_answer = error_answer
        self.id_header = id_header
        self.handle_at_once = handle_at_once
        self.refused = refused
        self.receive_seconds = receive_seconds
        self._sweep: asyncio.TimerHandle | None = None
        self._log = log
        self._server: asyncio.Server | None = None
        self._requests = 0
        self.max_payload_bytes = max_payload_bytes
        self.connections: set[ServerConnection] = set()

    def next_request_id(self) -> str:
        """A request id, unique over all runs."""
        self._requests += 1
        return f"{_RUN}-{self._requests:012x}"

    async def answer(self, request: Request) -> HttpResponse:
        """The response to a request, also where handling it fails."""
        try:
            return await self._handle(request)
        except Exception as error:  # noqa: BLE001  (a fault of ours must reach the caller as InternalFailure, and the log)
            return self.failed(error, request_id=request.id)

    def failed(self, error: Exception, *, request_id: str) -> HttpResponse:
        """The response to a request that failed; an internal failure is logged."""
        if isinstance(error, InvokeError):
            return self._error_answer(error)
        self._log(f"request {request_id} failed inside the {self._name}: {error!r}")
        return self._error_answer(internal_failure(f"The {self._name} failed: {error!r}"))

    async def start(self, *, port: int) -> int:
        """Listen on 127.0.0.1; ``port`` 0 takes a free one. Returns the port."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: ServerConnection(self), host="127.0.0.1", port=port)
        self._look_for_late_requests()
        listening: int = self._server.sockets[0].getsockname()[1]
        return listening

    def _look_for_late_requests(self) -> None:
        """Check all connections periodically, which is cheaper than a timer for each request."""
        now = time.monotonic()
        for connection in [one for one in self.connections if one.deadline < now]:
            connection.expire()
        later = self.receive_seconds / 10
        self._sweep = asyncio.get_running_loop().call_later(later, self._look_for_late_requests)

    async def stop(self, *, seconds: float) -> None:
        """Accept no new connection, give running requests ``seconds`` to end, then close."""
        if self._server is not None:
            self._server.close()
        if self._sweep is not None:
            self._sweep.cancel()
        answers = [answer for one in self.connections if (answer := one.under_way()) is not None]
        if answers:
            await asyncio.wait(answers, timeout=seconds)
        for connection in list(self.connections):
            connection.close()
