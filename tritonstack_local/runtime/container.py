"""A fleet's containers: started with the deployed model, and called over SageMaker's container contract."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

from tritonstack.loopback.http_server import HttpResponse
from tritonstack_local.container import prepare_model_data
from tritonstack_local.container.repository import ConfigSyntaxError
from tritonstack_local.runtime.model_cache import TARGET_MODEL, CachedModel
from tritonstack_local.runtime.pool import (
    PING,
    SPREAD,
    ConnectionPool,
    ContainerGoneError,
    Lanes,
    OpenSockets,
    UpstreamConnection,
)
from tritonstack_local.runtime.settings import RuntimeSettings
from tritonstack_local.runtime.streaming.upstream_stream import UpstreamStream

PING_SECONDS = 2.0
PREPARED = 32
"""Connections that are opened before the first request."""
UNLOAD_LANES = 1
"""Triton's front end holds one lock for as long as an unload lasts, so that more would only queue there."""
SAGEMAKER_PATH = "/invocations"


class ContainerClient:
    """The API of one running container."""

    def __init__(
        self,
        *,
        open_sockets: OpenSockets,
        settings: RuntimeSettings,
        open_single_model: Callable[[], Awaitable[list[socket.socket]]],
        single_model_path: str,
    ) -> None:
        """``open_sockets`` returns the given number of sockets connected to the container; raises OSError.

        ``open_single_model`` returns one connected to the port that serves ``single_model_path``, which is what
        ``/invocations`` of a single-model container does: the same port, unless the container generates.
        """
        self._settings = settings
        self._open_single_model = open_single_model
        self._streams: set[UpstreamStream] = set()
        self.generates = single_model_path != SAGEMAKER_PATH
        self.single_model_line = b"POST %b HTTP/1.1\r\nhost: localhost\r\n" % single_model_path.encode()
        self._open_sockets = open_sockets
        self.pool = ConnectionPool(open_sockets=open_sockets, limit=settings.max_connections)
        self._loads = Lanes(pool=self.pool, open_sockets=open_sockets, count=settings.max_parallel_loads)
        self._unloads = Lanes(pool=self.pool, open_sockets=open_sockets, count=UNLOAD_LANES)

    async def open(self) -> None:
        """Open the connections for inference, then the lanes, so that they get different threads (see ``pool``).

        Raises ContainerGoneError: the container takes no connection.
        """
        prepared = min(PREPARED, self._settings.max_connections)
        try:
            # In groups, each of which gets the same threads as the one before, since those are idle again by then.
            # Under load a new connection goes to the idlest thread: those opened then end up on all threads.
            while self.pool.size < prepared:
                await self.pool.open(SPREAD)
                await self.pool.ask_all(PING, seconds=PING_SECONDS)
            # While these threads respond to pings, one more connection queues at each, and the next go elsewhere.
            answers = self.pool.ask_all(PING, seconds=PING_SECONDS)
            sockets = await self._open_sockets(SPREAD + UNLOAD_LANES + self._settings.max_parallel_loads)
            await answers
        except TimeoutError as error:
            raise ContainerGoneError(f"the container did not respond to /ping: {error}") from error
        except OSError as error:
            raise ContainerGoneError(f"the container takes no connection: {error}") from error
        for number, connected in enumerate(sockets):
            if number < SPREAD:
                await self.pool.adopt(connected)
            elif number < SPREAD + UNLOAD_LANES:
                await self._unloads.adopt(connected)
            else:
                await self._loads.adopt(connected)

    async def ping(self) -> int:
        """The status of /ping, over a new connection. Raises ContainerGoneError, TimeoutError."""
        try:
            (connected,) = await self._open_sockets(1)
        except OSError as error:
            raise ContainerGoneError(f"the container takes no connection: {error}") from error
        _, connection = await asyncio.get_running_loop().create_connection(UpstreamConnection, sock=connected)
        try:
            async with asyncio.timeout(PING_SECONDS):
                return (await connection.send(PING, b"", seconds=PING_SECONDS)).status
        finally:
            connection.close()

    async def load(self, model: CachedModel, *, url: str) -> HttpResponse:
        """Load the model that is unpacked at ``url``. Raises ContainerGoneError, TimeoutError."""
        body = json.dumps({"model_name": model.hash, "url": url}).encode()
        head = (
            b"POST /models HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            b"%b: %b\r\ncontent-length: %d\r\n\r\n" % (TARGET_MODEL, model.target.encode(), len(body))
        )
        return await self._loads.call(head, body, seconds=self._settings.load_seconds)

    async def unload(self, model: CachedModel) -> HttpResponse:
        """Unload a model. Raises ContainerGoneError, TimeoutError."""
        head = b"DELETE /models/%b HTTP/1.1\r\nhost: localhost\r\n%b: %b\r\n\r\n" % (
            model.hash.encode(),
            TARGET_MODEL,
            model.target.encode(),
        )
        return await self._unloads.call(head, b"", seconds=self._settings.unload_seconds)

    async def invoke(self, head: bytes, body: bytes, *, seconds: float) -> HttpResponse:
        """Send one inference request. Raises ContainerGoneError, TimeoutError."""
        pool = self.pool
        connection = pool.take_idle() or await pool.take()
        try:
            return await connection.send(head, body, seconds=seconds)
        finally:
            pool.release(connection)

    async def stream(self, head: bytes, body: bytes) -> UpstreamStream:
        """Send a request to the single model, over a connection of its own; its response is read as it comes.

        Raises ContainerGoneError: the container takes no connection.
        """
        try:
            (connected,) = await self._open_single_model()
        except OSError as error:
            raise ContainerGoneError(f"the container takes no connection: {error}") from error
        loop = asyncio.get_running_loop()
        _, stream = await loop.create_connection(lambda: UpstreamStream(head + body), sock=connected)
        self._streams.add(stream)
        stream.ended.add_done_callback(lambda _: self._streams.discard(stream))
        return stream

    async def generate(self, head: bytes, body: bytes, *, seconds: float) -> HttpResponse:
        """The whole response of a container that generates. Raises ContainerGoneError, TimeoutError."""
        async with asyncio.timeout(seconds):
            stream = await self.stream(head, body)
            try:
                return await stream.response()
            finally:
                stream.close()

    def close(self) -> None:
        """Close every connection; requests in flight end with ContainerGoneError."""
        for stream in tuple(self._streams):
            stream.close()
        self.pool.close()
        self._loads.close()
        self._unloads.close()


logger = logging.getLogger("tritonstack.runtime")


def prepare_for_here(folder: Path, release: str | None) -> None:
    """Change an unpacked model in place so that it loads without a GPU, and with the local server's Python.

    A configuration that cannot be read is left as it is: Triton then refuses it in its own words.
    """
    try:
        for change in prepare_model_data(folder, release=release):
            logger.info("%s", change)
    except ConfigSyntaxError as error:
        logger.warning("left as it is, for Triton to judge: %s", error)
