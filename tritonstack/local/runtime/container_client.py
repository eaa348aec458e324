"""A container's HTTP API as SageMaker uses it: ping, load, unload, invoke (developer guide, mms-container-apis).

Requests for inference and requests that load or unload travel on different connections: Triton's front end keeps the
thread of a connection busy for as long as a load on it lasts.
"""

from __future__ import annotations

import json

from tritonstack.local.runtime.messages import Answer
from tritonstack.local.runtime.model_cache import TARGET_MODEL, CachedModel
from tritonstack.local.runtime.settings import RuntimeSettings
from tritonstack.local.runtime.upstream import ConnectionPool, OpenSocket

PING_SECONDS = 2.0
CONTROL_CONNECTIONS = 16

_PING = b"GET /ping HTTP/1.1\r\nhost: localhost\r\n\r\n"
SINGLE_MODEL_LINE = b"POST /invocations HTTP/1.1\r\nhost: localhost\r\n"


class ContainerClient:
    """The API of one running container."""

    def __init__(self, *, open_socket: OpenSocket, settings: RuntimeSettings) -> None:
        """``open_socket`` gives sockets connected to the container."""
        self._settings = settings
        self.invocations = ConnectionPool(open_socket=open_socket, limit=settings.max_connections)
        self._control = ConnectionPool(open_socket=open_socket, limit=CONTROL_CONNECTIONS)

    async def ping(self) -> int:
        """The status of /ping. Raises ContainerGoneError, TimeoutError."""
        return (await self._call(_PING, b"", seconds=PING_SECONDS)).status

    async def load(self, model: CachedModel, *, url: str) -> Answer:
        """Load the model that is unpacked at ``url``. Raises ContainerGoneError, TimeoutError."""
        body = json.dumps({"model_name": model.hash, "url": url}).encode()
        head = (
            b"POST /models HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            b"%b: %b\r\ncontent-length: %d\r\n\r\n" % (TARGET_MODEL, model.target.encode(), len(body))
        )
        return await self._call(head, body, seconds=self._settings.load_seconds)

    async def unload(self, model: CachedModel) -> Answer:
        """Unload a model. Raises ContainerGoneError, TimeoutError."""
        head = b"DELETE /models/%b HTTP/1.1\r\nhost: localhost\r\n%b: %b\r\n\r\n" % (
            model.hash.encode(),
            TARGET_MODEL,
            model.target.encode(),
        )
        return await self._call(head, b"", seconds=self._settings.unload_seconds)

    async def _call(self, head: bytes, body: bytes, *, seconds: float) -> Answer:
        connection = await self._control.take()
        try:
            return await connection.send(head, body, seconds=seconds)
        finally:
            self._control.release(connection)

    async def invoke(self, head: bytes, body: bytes, *, seconds: float) -> Answer:
        """Send one inference request. Raises ContainerGoneError, TimeoutError."""
        pool = self.invocations
        connection = pool.take_idle() or await pool.take()
        try:
            return await connection.send(head, body, seconds=seconds)
        finally:
            pool.release(connection)

    def close(self) -> None:
        """Close every connection; what is in flight ends with ContainerGoneError."""
        self.invocations.close()
        self._control.close()
