"""Connections to a container: reused, bounded, and none with the response to another request.

That requests get responses while a model loads on a thread of the front end is tested on the real Triton.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.tritonstack_local.runtime.fakes import asynchronous, until
from tritonstack_local.runtime.pool import ConnectionPool, ContainerGoneError

GET = b"GET /echo HTTP/1.1\r\nhost: x\r\n\r\n"


class FrontEnd:
    """Sends ``answer`` in response to each request, once ``goes`` is set."""

    def __init__(self) -> None:
        self.accepted = 0
        self.requests = 0
        self.goes = asyncio.Event()
        self.goes.set()
        self.answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, as long as it lasts."""
        self.accepted += 1
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                self.requests += 1
                await self.goes.wait()
                writer.write(self.answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


@asynccontextmanager
async def front_end(limit: int = 64) -> AsyncIterator[tuple[FrontEnd, ConnectionPool]]:
    """The front end and a pool."""
    front = FrontEnd()
    server = await asyncio.start_server(front.connection, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    async def open_sockets(count: int) -> list[socket.socket]:
        made = []
        for _ in range(count):
            one = socket.create_connection(("127.0.0.1", port))
            one.setblocking(False)
            made.append(one)
        return made

    pool = ConnectionPool(open_sockets=open_sockets, limit=limit)
    try:
        yield front, pool
    finally:
        front.goes.set()
        pool.close()
        server.close()


async def send(pool: ConnectionPool, *, seconds: float = 5.0) -> bytes:
    """One request through the pool."""
    connection = pool.take_idle() or await pool.take()
    try:
        return (await connection.send(GET, b"", seconds=seconds)).body
    finally:
        pool.release(connection)


@asynchronous
async def test_a_connection_is_used_again_and_callers_beyond_the_limit_wait_for_one() -> None:
    async with front_end() as (front, pool):
        for _ in range(20):
            assert await send(pool) == b"ok"
        assert front.accepted <= 8
    async with front_end(limit=3) as (front, pool):
        assert await asyncio.gather(*(send(pool) for _ in range(50))) == [b"ok"] * 50
        assert front.accepted == 3


@asynchronous
async def test_a_late_response_ends_its_request_and_its_connection() -> None:
    async with front_end(limit=1) as (front, pool):
        front.goes.clear()
        connection = pool.take_idle() or await pool.take()
        with pytest.raises(TimeoutError):
            await connection.send(GET, b"", seconds=0.1)
        assert connection.closed
        pool.release(connection)
        front.goes.set()
        assert await send(pool) == b"ok"


@asynchronous
async def test_a_container_that_closes_during_a_response_or_sends_nonsense_ends_the_request() -> None:
    async with front_end() as (front, pool):
        front.answer = b"this is no HTTP\r\n\r\n"
        with pytest.raises(ContainerGoneError, match="malformed"):
            await send(pool)
        front.answer = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\npart"
        call = asyncio.create_task(send(pool))
        await until(lambda: front.requests == 2)
        pool.close()
        with pytest.raises(ContainerGoneError):
            await call


@asynchronous
async def test_a_client_that_disconnects_leaves_no_response_for_the_next() -> None:
    async with front_end(limit=1) as (front, pool):
        await send(pool)
        front.goes.clear()
        gone = asyncio.create_task(send(pool))
        await until(lambda: front.requests == 2)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        front.goes.set()
        assert await send(pool) == b"ok"
        assert front.accepted == 2
