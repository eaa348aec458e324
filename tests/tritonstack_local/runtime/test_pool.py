"""Connections to a container: reused, bounded, and kept apart from the thread that loads."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.tritonstack_local.runtime.fakes import asynchronous, until
from tritonstack_local.runtime.pool import ConnectionPool, ContainerGoneError, Lanes, UpstreamConnection

GET = b"GET /echo HTTP/1.1\r\nhost: x\r\n\r\n"


class ThreadedFrontEnd:
    """A front end in which each connection belongs to a thread, and a load keeps that thread from answering.

    ``assign`` decides, in the order of arrival, which thread a connection gets. ``/load`` blocks its thread until
    ``loaded`` is set.
    """

    def __init__(self, assign: list[int]) -> None:
        self.assign = assign
        self.accepted = 0
        self.busy: set[int] = set()
        self.loaded = asyncio.Event()
        self.requests: list[tuple[int, str]] = []
        self.answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, as long as it lasts."""
        thread = self.assign[min(self.accepted, len(self.assign) - 1)]
        self.accepted += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split()[1].decode()
                if path == "/load":
                    self.busy.add(thread)
                    await self.loaded.wait()
                    self.busy.discard(thread)
                elif thread in self.busy:
                    await until(lambda: thread not in self.busy)
                self.requests.append((thread, path))
                writer.write(self.answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


@asynccontextmanager
async def front_end(
    assign: list[int], *, limit: int = 64
) -> AsyncIterator[tuple[ThreadedFrontEnd, ConnectionPool, Lanes]]:
    """The front end, a pool and two lanes."""
    front = ThreadedFrontEnd(assign)
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
    lanes = Lanes(pool=pool, open_sockets=open_sockets, count=2)
    try:
        yield front, pool, lanes
    finally:
        front.loaded.set()
        pool.close()
        lanes.close()
        server.close()


async def ask(pool: ConnectionPool, *, seconds: float = 5.0) -> bytes:
    """One request through the pool."""
    connection = pool.take_idle() or await pool.take()
    try:
        return (await connection.send(GET, b"", seconds=seconds)).body
    finally:
        pool.release(connection)


@asynchronous
async def test_a_connection_is_used_again() -> None:
    async with front_end([0]) as (front, pool, _):
        for _ in range(20):
            assert await ask(pool) == b"ok"
        assert front.accepted <= 8


@asynchronous
async def test_callers_beyond_the_limit_wait_for_a_connection() -> None:
    async with front_end([0], limit=3) as (front, pool, _):
        assert await asyncio.gather(*(ask(pool) for _ in range(50))) == [b"ok"] * 50
        assert front.accepted == 3


@asynchronous
async def test_requests_answer_during_a_load_on_connections_of_other_threads() -> None:
    async with front_end([0, 1, 2]) as (front, pool, lanes):
        await pool.open(1)  # on thread 0, as the lane will not be
        front.assign = [0, 7, 7, 0, 0, 7, 1, 2, 3]
        await lanes.adopt((await pool._open_sockets(1))[0])  # on thread 7
        await pool.open(5)  # on threads 7, 0, 0, 7, 1
        load = asyncio.create_task(lanes.call(b"POST /load HTTP/1.1\r\nhost: x\r\n\r\n", b"", seconds=30))
        await until(lambda: bool(front.busy))
        for _ in range(40):
            assert await ask(pool, seconds=1.0) == b"ok"
        assert not load.done()
        front.loaded.set()
        assert (await load).status == 200
        assert {thread for thread, path in front.requests if path == "/echo"}.isdisjoint({7})


@asynchronous
async def test_a_connection_that_shares_the_loads_thread_is_closed_afterwards() -> None:
    async with front_end([7, 7, 1, 2, 3, 4]) as (front, pool, lanes):
        await lanes.adopt((await pool._open_sockets(1))[0])
        await pool.open(5)
        load = asyncio.create_task(lanes.call(b"POST /load HTTP/1.1\r\nhost: x\r\n\r\n", b"", seconds=30))
        await until(lambda: len(pool._idle) == 4)
        await asyncio.sleep(0.15)
        front.loaded.set()
        await load
        await until(lambda: pool.size == 4)


@asynchronous
async def test_a_late_answer_ends_its_request_and_its_connection() -> None:
    async with front_end([0, 0]) as (front, pool, lanes):
        await pool.open(1)
        load = asyncio.create_task(lanes.call(b"POST /load HTTP/1.1\r\nhost: x\r\n\r\n", b"", seconds=30))
        await until(lambda: bool(front.busy))
        connection = UpstreamConnection()
        await asyncio.get_running_loop().create_connection(lambda: connection, sock=(await pool._open_sockets(1))[0])
        pool._all.add(connection)
        with pytest.raises(TimeoutError):
            await connection.send(GET, b"", seconds=0.1)
        assert connection.closed
        front.loaded.set()
        await load


@asynchronous
async def test_a_container_that_closes_amid_an_answer_or_sends_nonsense_ends_the_request() -> None:
    async with front_end([0]) as (front, pool, _):
        front.answer = b"this is no HTTP\r\n\r\n"
        with pytest.raises(ContainerGoneError, match="malformed"):
            await ask(pool)
        front.answer = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\npart"
        call = asyncio.create_task(ask(pool))
        await until(lambda: len(front.requests) == 2)
        pool.close()
        with pytest.raises(ContainerGoneError):
            await call


@asynchronous
async def test_a_container_that_takes_no_connection_refuses_every_waiting_caller() -> None:
    async def refuse(_count: int) -> list[socket.socket]:
        raise ConnectionRefusedError("nobody listens")

    pool = ConnectionPool(open_sockets=refuse, limit=4)
    found = await asyncio.gather(*(pool.take() for _ in range(5)), return_exceptions=True)
    assert all(isinstance(one, ContainerGoneError) for one in found)


@asynchronous
async def test_a_caller_that_goes_away_leaves_no_answer_to_the_next() -> None:
    async with front_end([0], limit=1) as (front, pool, _):
        await ask(pool)
        front.busy.add(0)
        gone = asyncio.create_task(ask(pool))
        await asyncio.sleep(0.02)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        front.busy.clear()
        assert await ask(pool) == b"ok"
        assert front.accepted == 2
