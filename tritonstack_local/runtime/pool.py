"""Connections to containers: opened, kept, lent to one request at a time."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import httptools

from tritonstack.loopback.http_server import Headers, HttpResponse


class ContainerGoneError(Exception):
    """The container closed the connection before its response was whole, or accepts no connection."""


RequestOutcome = HttpResponse | ContainerGoneError | TimeoutError
"""How a request to the container ends."""


class UpstreamConnection(asyncio.Protocol):
    """One connection. ``start`` calls back with the response, ``send`` gives a future of it.

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
        self._ended: Callable[[RequestOutcome], None] | None = None
        self._headers: Headers = {}
        self._body: list[bytes] = []
        self.deadline = 0.0
        self.closed = False

    def send(self, head: bytes, body: bytes, *, seconds: float) -> asyncio.Future[HttpResponse]:
        """Same as ``start``, with a future that ends with the response, ContainerGoneError or TimeoutError."""
        answer: asyncio.Future[HttpResponse] = self._loop.create_future()

        def ended(outcome: RequestOutcome) -> None:
            if answer.done():  # its caller went away
                return
            if isinstance(outcome, HttpResponse):
                answer.set_result(outcome)
            else:
                answer.set_exception(outcome)

        self.start(head, body, seconds=seconds, ended=ended)
        return answer

    def start(self, head: bytes, body: bytes, *, seconds: float, ended: Callable[[RequestOutcome], None]) -> None:
        """Send one request whose head ends with the blank line.

        ``ended`` is called once: with the response, ContainerGoneError, or TimeoutError after ``seconds``. Time-outs of
        all connections are checked periodically, which is cheaper than a timer for each request.
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
        """Whether a response is awaited."""
        return self._ended is not None

    def close(self) -> None:
        """Close at once; a request in flight ends with ContainerGoneError."""
        self.closed = True
        if self._transport is not None:
            self._transport.abort()

    def expire(self) -> None:
        """The response did not come in time: the request ends with TimeoutError, and so does the connection."""
        self.close()
        self._finish(TimeoutError("no response in time"))

    def _finish(self, outcome: RequestOutcome) -> None:
        ended, self._ended = self._ended, None
        if ended is not None:
            ended(outcome)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        self._finish(ContainerGoneError(str(exc) if exc else "the container closed the connection"))
        self._lost(self)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self.close()
            self._finish(ContainerGoneError(f"malformed HTTP response: {error}"))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.lower()] = value

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        parts, headers = self._body, self._headers
        self._body, self._headers = [], {}
        if not self._parser.should_keep_alive():
            self.close()
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        self._finish(HttpResponse(self._parser.get_status_code(), headers, body))


# Triton's front end (libevhtp) binds a connection to one of its 8 threads when it accepts it, and a load or an unload
# keeps that thread busy until it is done. Measured: connections that are opened one after the other all get the first
# thread, and then no model responds while another one loads. Therefore:
#
# - several connections are opened at once, which spreads them over the threads: as many as this machine can use, and
#   more while a load goes on, to reach other threads;
# - a load or unload is sent on a lane. Meanwhile a connection takes requests only once it has responded to a
#   ``GET /ping``; from then on it is known to be on another thread than that lane, and gets no further ping;
# - a connection whose response is late shares the lane's thread and is closed.
PING = b"GET /ping HTTP/1.1\r\nhost: localhost\r\n\r\n"
PROBE_SECONDS = 400.0
HEAD_START_SECONDS = 0.005
LATE_SECONDS = 0.1
BURST = 8
SPREAD = max(1, min(BURST, len(os.sched_getaffinity(0)) // 2))
"""Over how many threads connections are spread. On few cores more threads only wake each other up: measured on two
cores with 16 callers, Triton switches threads 0.95 times a request where all share one, 1.6 to 3 times where not."""
SWEEP_SECONDS = 0.1
OpenSockets = Callable[[int], Awaitable[list[socket.socket]]]


class ConnectionPool:
    """Connections for inference. The idle one used last is taken first; callers beyond the limit wait."""

    def __init__(self, *, open_sockets: OpenSockets, limit: int) -> None:
        """``open_sockets`` returns the given number of connected sockets; ``limit`` is the most connections at once."""
        self._open_sockets = open_sockets
        self._limit = limit
        self._idle: list[UpstreamConnection] = []
        self._all: set[UpstreamConnection] = set()
        self._waiting: deque[asyncio.Future[UpstreamConnection]] = deque()
        self._busy_lanes: set[UpstreamConnection] = set()
        self._probes: set[UpstreamConnection] = set()
        self._opening: asyncio.Task[None] | None = None
        self._closed = False
        self._sweep: asyncio.TimerHandle | None = None

    @property
    def size(self) -> int:
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

        Raises ContainerGoneError: the container takes no connection.
        """
        while True:
            connection = self.take_idle()
            if connection is not None:
                return connection
            turn: asyncio.Future[UpstreamConnection] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            self._open_more()
            try:
                given = await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled() and turn.exception() is None:
                    self.release(turn.result())
                raise
            if not given.closed:
                return given

    def release(self, connection: UpstreamConnection) -> None:
        """Give a connection back, whole or closed."""
        if connection.busy:  # its caller went away; the next request would get its response
            connection.close()
        if connection.closed:
            self.forget(connection)
        elif self._busy_lanes and not self._busy_lanes <= connection.apart:
            self._probe(connection)
        else:
            self._offer(connection)

    def _offer(self, connection: UpstreamConnection) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(connection)
                return
        self._idle.append(connection)

    def forget(self, connection: UpstreamConnection) -> None:
        """A connection was lost: make room for another."""
        self._all.discard(connection)
        if self._waiting:
            self._open_more()

    # Opening ----------------------------------------------------------------------------------------------------------

    def _open_more(self) -> None:
        if self._closed:
            self._refuse_waiting(ContainerGoneError("the container is stopped"))
        elif self._opening is None and len(self._all) < self._limit:
            wanted = max(BURST if self._busy_lanes else SPREAD, sum(not turn.done() for turn in self._waiting))
            self._opening = asyncio.create_task(self.open(min(wanted, self._limit - len(self._all))))
            self._opening.add_done_callback(self._opened)

    def _opened(self, task: asyncio.Task[None]) -> None:
        self._opening = None
        if task.cancelled():
            self._refuse_waiting(ContainerGoneError("the container is stopped"))
        elif (error := task.exception()) is not None:
            self._refuse_waiting(ContainerGoneError(f"the container takes no connection: {error}"))
        elif any(not turn.done() for turn in self._waiting) and not bool(self._probes & self._all):
            self._open_more()

    def _refuse_waiting(self, error: ContainerGoneError) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_exception(error)

    async def open(self, count: int) -> None:
        """Open ``count`` connections at once. Raises OSError."""
        for connected in await self._open_sockets(count):
            await self.adopt(connected)

    def ask_all(self, request: bytes, *, seconds: float) -> asyncio.Future[list[HttpResponse]]:
        """Send a request over every idle connection, now. The future may fail: ContainerGoneError, TimeoutError."""
        asked, self._idle = self._idle, []
        answers = asyncio.gather(*(connection.send(request, b"", seconds=seconds) for connection in asked))
        answers.add_done_callback(lambda _: self._release_all(asked))
        return answers

    def _release_all(self, connections: list[UpstreamConnection]) -> None:
        for connection in connections:
            self.release(connection)

    async def adopt(self, connected: socket.socket) -> None:
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: UpstreamConnection(self.forget), sock=connected
        )
        if self._closed:
            connection.close()
            return
        self._all.add(connection)
        if self._sweep is None:
            self._look_for_late_answers()
        self.release(connection)

    def _look_for_late_answers(self) -> None:
        now = time.monotonic()
        late = [each for each in self._all if each.busy and now > each.deadline]
        try:
            for connection in late:
                connection.expire()
        finally:  # a callback may fail; the others' time-outs are checked all the same
            if self._all and not self._closed:
                self._sweep = asyncio.get_running_loop().call_later(SWEEP_SECONDS, self._look_for_late_answers)
            else:
                self._sweep = None

    # Staying apart from loads -----------------------------------------------------------------------------------------

    def lane_begins(self, lane: UpstreamConnection) -> None:
        """A load or unload begins on this connection: idle connections prove first that they are apart from it."""
        self._busy_lanes.add(lane)
        unproven = [connection for connection in self._idle if lane not in connection.apart]
        if unproven:
            self._idle = [connection for connection in self._idle if lane in connection.apart]
            for connection in unproven:
                self.release(connection)

    def lane_ends(self, lane: UpstreamConnection) -> None:
        """The load or unload is done."""
        self._busy_lanes.discard(lane)

    def _probe(self, connection: UpstreamConnection) -> None:
        """Send /ping over a connection; it is idle again after the response."""
        asked = frozenset(self._busy_lanes)
        self._probes.add(connection)
        # The load gets a head start: a shared thread would else respond to the ping before it takes up the load.
        asyncio.get_running_loop().call_later(HEAD_START_SECONDS, self._ping, connection, asked)

    def _ping(self, connection: UpstreamConnection, asked: frozenset[UpstreamConnection]) -> None:
        began = time.monotonic()
        probe = connection.send(PING, b"", seconds=PROBE_SECONDS)
        probe.add_done_callback(lambda answered: self._probed(connection, asked, answered, time.monotonic() - began))

    def _probed(
        self,
        connection: UpstreamConnection,
        asked: frozenset[UpstreamConnection],
        answered: asyncio.Future[HttpResponse],
        seconds: float,
    ) -> None:
        self._probes.discard(connection)
        if answered.cancelled() or answered.exception() is not None:
            self.forget(connection)
        elif seconds > LATE_SECONDS and (self._idle or self._busy_lanes):
            connection.close()
            self.forget(connection)
        else:
            if seconds <= LATE_SECONDS:
                connection.apart |= {lane for lane in asked if lane.busy}
            self.release(connection)

    def close(self) -> None:
        """Close every connection; requests in flight end with ContainerGoneError."""
        self._closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        if self._opening is not None:
            self._opening.cancel()
        self._idle.clear()
        for connection in list(self._all):
            connection.close()
        self._refuse_waiting(ContainerGoneError("the container is stopped"))


class Lanes:
    """Connections for loads and unloads, one operation at a time on each."""

    def __init__(self, *, pool: ConnectionPool, open_sockets: OpenSockets, count: int) -> None:
        """``pool`` is notified while a lane is busy."""
        self._pool = pool
        self._open_sockets = open_sockets
        self._free = asyncio.Semaphore(count)
        self._idle: list[UpstreamConnection] = []
        self._busy: set[UpstreamConnection] = set()
        self._closed = False

    async def adopt(self, connected: socket.socket) -> None:
        _, lane = await asyncio.get_running_loop().create_connection(UpstreamConnection, sock=connected)
        self._idle.append(lane)

    async def call(self, head: bytes, body: bytes, *, seconds: float) -> HttpResponse:
        """One operation. Raises ContainerGoneError, TimeoutError."""
        async with self._free:
            lane = await self._take()
            self._busy.add(lane)
            answer = lane.send(head, body, seconds=seconds)
            self._pool.lane_begins(lane)
            try:
                async with asyncio.timeout(seconds):
                    return await answer
            finally:
                self._pool.lane_ends(lane)
                self._busy.discard(lane)
                if lane.busy:
                    lane.close()
                elif not lane.closed:
                    self._idle.append(lane)

    async def _take(self) -> UpstreamConnection:
        while self._idle:
            lane = self._idle.pop()
            if not lane.closed:
                return lane
        if self._closed:
            raise ContainerGoneError("the container is stopped")
        try:
            (connected,) = await self._open_sockets(1)
        except OSError as error:
            raise ContainerGoneError(f"the container takes no connection: {error}") from error
        await self.adopt(connected)
        return self._idle.pop()

    def close(self) -> None:
        """Close every lane; operations end with ContainerGoneError."""
        self._closed = True
        for lane in (*self._idle, *self._busy):
            lane.close()
