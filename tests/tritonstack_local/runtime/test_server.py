"""The HTTP server: what it takes and what it refuses, byte by byte."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.tritonstack_local.runtime.fakes import asynchronous, until
from tritonstack.loopback.http_server import PIPELINED_REQUESTS, Done, HttpResponse, Request, Server, StreamedResponse

Handle = Callable[[Request], Awaitable[HttpResponse]]
Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def echo(request: Request) -> HttpResponse:
    """Method, path and body come back."""
    return HttpResponse(
        200,
        {b"x-header": request.headers.get(b"x-header", b"")},
        request.method + b" " + request.path + b" " + request.body,
    )


@asynccontextmanager
async def client(limit: int = 1000, *, handle: Handle = echo, **options: Any) -> AsyncIterator[Ends]:
    """A server, and a connection to it."""
    server = Server(handle=handle, max_payload_bytes=limit, log=options.pop("log", print), **options)
    reader, writer = await asyncio.open_connection("127.0.0.1", await server.start(port=0))
    try:
        yield reader, writer
    finally:
        writer.close()
        await server.stop(seconds=1)


async def read_response(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """The head and the body of the next response."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:"))
    return head, await reader.readexactly(length)


@asynchronous
async def test_requests_on_one_connection_get_responses_in_order() -> None:
    async with client() as (reader, writer):
        for number in range(3):
            writer.write(b"POST /%d HTTP/1.1\r\nContent-Length: 2\r\nX-Header: v\r\n\r\nhi" % number)
        for number in range(3):
            head, body = await read_response(reader)
            assert head.startswith(b"HTTP/1.1 200 OK\r\n")
            assert b"x-header: v\r\n" in head
            assert b"x-amzn-requestid: " in head
            assert body == b"POST /%d hi" % number


@asynchronous
async def test_expect_continue_gets_its_response_before_the_body_is_sent() -> None:
    async with client() as (reader, writer):
        writer.write(b"POST /a HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"abc")
        assert (await read_response(reader))[1] == b"POST /a abc"


@pytest.mark.parametrize(
    "head_and_body",
    [
        b"Content-Length: 11\r\n\r\n",
        b"Content-Length: 11\r\nExpect: 100-continue\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n8\r\nabcdefgh\r\n8\r\nabcdefgh\r\n",
    ],
)
@asynchronous
async def test_a_body_over_the_limit_is_refused_before_it_comes(head_and_body: bytes) -> None:
    async with client(limit=10) as (reader, writer):
        writer.write(b"POST /a HTTP/1.1\r\n" + head_and_body)
        head, body = await read_response(reader)
        assert head.startswith(b"HTTP/1.1 413 ")
        assert b"connection: close" in head
        assert b"exceeded 10 bytes" in body
        writer.write(b"x" * 11 + b"POST /b HTTP/1.1\r\n\r\n")
        assert await reader.read() == b""


@asynchronous
async def test_a_client_that_goes_on_sending_a_large_body_reads_the_refusal_and_no_reset() -> None:
    async with client(limit=10) as (reader, writer):
        writer.write(b"POST /a HTTP/1.1\r\nContent-Length: 33554432\r\n\r\n")
        for _ in range(32):
            writer.write(bytes(1 << 20))
            await writer.drain()
        assert (await read_response(reader))[0].startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    "sent", [b"POST /slow HTTP/1.1\r\nX-Header: ", b"POST /slow HTTP/1.1\r\nContent-Length: 5\r\n\r\nhal"]
)
@asynchronous
async def test_a_request_that_does_not_arrive_in_time_ends_its_connection(sent: bytes) -> None:
    async with client(receive_seconds=0.05) as (reader, writer):
        writer.write(b"GET /before HTTP/1.1\r\n\r\n")
        await read_response(reader)
        await asyncio.sleep(0.1)  # an idle connection stays
        writer.write(sent)
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""


@pytest.mark.parametrize(
    "sent",
    [
        b"POST /a HTTP/1.1\r\nContent-Length: many\r\n\r\n",
        b"POST /a HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /a HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
        b"POST /a HTTP/1.1\r\nno header\r\n\r\n",
        b"GET /a HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        b"\x16\x03\x01 hello TLS\r\n\r\n",
    ],
)
@asynchronous
async def test_invalid_http_gets_400_after_the_responses_to_earlier_requests(sent: bytes) -> None:
    async with client() as (reader, writer):
        writer.write(b"GET /before HTTP/1.1\r\n\r\n" + sent)
        assert (await read_response(reader))[1] == b"GET /before "
        head, body = await read_response(reader)
        assert head.startswith(b"HTTP/1.1 400 ")
        assert b"connection: close" in head
        assert b"The request is no valid HTTP/1.1" in body
        assert await reader.read() == b""


@asynchronous
async def test_only_loopback_reaches_the_server() -> None:
    server = Server(handle=echo, max_payload_bytes=10, log=print)
    await server.start(port=0)
    assert server._server is not None
    assert [one.getsockname()[0] for one in server._server.sockets] == ["127.0.0.1"]
    await server.stop(seconds=0)


class AtOnce:
    """Processes at once every request whose path is not ``/long``; the test sends the response."""

    def __init__(self) -> None:
        self.taken: list[tuple[Request, Done]] = []

    def __call__(self, request: Request, done: Done) -> bool:
        """See HandleAtOnce."""
        if request.path == b"/long":
            return False
        self.taken.append((request, done))
        return True


@asynchronous
async def test_a_request_behind_one_that_is_processed_at_once_waits_for_its_response() -> None:
    at_once = AtOnce()
    async with client(handle_at_once=at_once) as (reader, writer):
        writer.write(b"POST /short HTTP/1.1\r\nContent-Length: 0\r\n\r\n" * 1)
        writer.write(b"POST /long HTTP/1.1\r\nContent-Length: 0\r\n\r\n" * 2)
        await until(lambda: bool(at_once.taken))
        at_once.taken[0][1](HttpResponse(200, {}, b"short"))
        assert [(await read_response(reader))[1] for _ in range(3)] == [b"short", b"POST /long ", b"POST /long "]
        assert len(at_once.taken) == 1


@asynchronous
async def test_stopping_waits_for_a_request_taken_at_once() -> None:
    at_once = AtOnce()
    server = Server(handle=echo, max_payload_bytes=1000, log=print, handle_at_once=at_once)
    reader, writer = await asyncio.open_connection("127.0.0.1", await server.start(port=0))
    writer.write(b"POST /short HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
    await until(lambda: bool(at_once.taken))
    stopping = asyncio.create_task(server.stop(seconds=30))
    await asyncio.sleep(0)
    at_once.taken[0][1](HttpResponse(200, {}, b"last"))
    await stopping
    assert (await read_response(reader))[1] == b"last"
    writer.close()


@asynchronous
async def test_a_request_shows_that_its_sender_has_gone() -> None:
    taken: list[Request] = []
    go_on = asyncio.Event()

    async def handle(request: Request) -> HttpResponse:
        taken.append(request)
        await go_on.wait()
        return HttpResponse(200, {}, b"")

    async with client(handle=handle) as (_, writer):
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        await until(lambda: bool(taken))
        assert not taken[0].sender.gone
        writer.close()
        await until(lambda: taken[0].sender.gone)
        go_on.set()


@asynchronous
async def test_a_server_words_its_refusals_in_its_own_manner() -> None:
    async def fails(_request: Request) -> HttpResponse:
        raise KeyError("x")

    manner: dict[str, Any] = {
        "name": "teapot",
        "error_answer": lambda error: HttpResponse(error.status, {}, error.code.encode()),
        "id_header": b"x-id",
    }
    messages: list[str] = []
    async with client(10, handle=fails, log=messages.append, **manner) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\n\r\nPOST / HTTP/1.1\r\nContent-Length: 11\r\n\r\n")
        head, body = await read_response(reader)
        assert body == b"InternalFailure"
        assert b"\r\nx-id: " in head
        assert b"amzn" not in head
        assert "inside the teapot" in messages[0]
        assert (await read_response(reader))[1] == b"413"


ENDLESS = {
    "line": [b"GET /" + b"a" * 70_000],
    "header": [b"GET / HTTP/1.1\r\nX-Header: ", *[b"a" * 10_000] * 80],
    "headers": [b"GET / HTTP/1.1\r\n", *[b"X-%d: a\r\n" % number for number in range(10_000)]],
    "trailer": [b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX: ", *[b"a" * 10_000] * 80],
    "chunk extension": [b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;", *[b"a" * 10_000] * 80],
}


@pytest.mark.parametrize("part", ENDLESS)
@asynchronous
async def test_a_head_or_trailer_without_end_is_refused(part: str) -> None:
    async with client() as (reader, writer):
        for piece in ENDLESS[part]:
            writer.write(piece)
            await writer.drain()
        head, _ = await read_response(reader)
        assert head.split(b"\r\n")[0] in (b"HTTP/1.1 431 Request Header Fields Too Large", b"HTTP/1.1 400 Bad Request")


@asynchronous
async def test_a_trailer_overrides_no_header() -> None:
    async with client() as (reader, writer):
        writer.write(b"POST /a HTTP/1.1\r\nX-Header: head\r\nTransfer-Encoding: chunked\r\n\r\n")
        writer.write(b"2\r\nhi\r\n0\r\nX-Header: trailer\r\nHost: evil.example\r\n\r\n")
        head, body = await read_response(reader)
        assert b"x-header: head\r\n" in head
        assert body == b"POST /a hi"


@asynchronous
async def test_two_hosts_are_refused() -> None:
    async with client() as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")
        assert (await read_response(reader))[0].startswith(b"HTTP/1.1 400 ")


@asynchronous
async def test_pipelined_requests_are_held_up_to_a_bound_and_all_get_responses_in_order() -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow(request: Request) -> HttpResponse:
        begun.set()
        await go_on.wait()
        return await echo(request)

    body, count = bytes(100_000), 200
    server = Server(handle=slow, max_payload_bytes=200_000, log=print)
    reader, writer = await asyncio.open_connection("127.0.0.1", await server.start(port=0))

    async def send() -> None:
        for number in range(count):
            writer.write(b"POST /%d HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (number, len(body)) + body)
            await writer.drain()

    sending = asyncio.create_task(send())
    await begun.wait()
    [connection] = server.connections
    await until(lambda: connection._paused)
    assert len(connection._waiting) < 2 * PIPELINED_REQUESTS
    go_on.set()
    for number in range(count):
        assert (await read_response(reader))[1].startswith(b"POST /%d " % number)
    await sending
    writer.close()
    await server.stop(seconds=1)


def streaming(*parts: bytes, error: Exception | None = None) -> Handle:
    """Responds with these parts, then with an error in them."""

    async def body() -> AsyncIterator[bytes]:
        for part in parts:
            yield part
        if error is not None:
            raise error

    async def handle(_request: Request) -> HttpResponse:
        return StreamedResponse(200, {}, b"", body())

    return handle


@asynchronous
async def test_a_streamed_response_is_chunked_and_the_next_request_gets_its_own() -> None:
    async with client(handle=streaming(b"one", b"", b"three")) as (reader, writer):
        for _ in range(2):
            writer.write(b"POST /a HTTP/1.1\r\n\r\n")
        for _ in range(2):
            assert b"transfer-encoding: chunked\r\n" in await reader.readuntil(b"\r\n\r\n")
            assert await reader.readuntil(b"0\r\n\r\n") == b"3\r\none\r\n5\r\nthree\r\n0\r\n\r\n"


@asynchronous
async def test_an_error_within_a_stream_ends_the_connection_without_its_last_chunk() -> None:
    lines: list[str] = []
    async with client(handle=streaming(b"one", error=ValueError("no more")), log=lines.append) as (reader, writer):
        writer.write(b"POST /a HTTP/1.1\r\n\r\n")
        assert (await reader.read()).endswith(b"3\r\none\r\n")
    assert any("no more" in line for line in lines)
