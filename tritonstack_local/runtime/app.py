"""The runtime as a whole: routes, background work, start and end."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

from tritonstack.http_server import Answer, InvokeError, Request, Server
from tritonstack_local.runtime.deployed import DeployedConfig, Reader
from tritonstack_local.runtime.errors import endpoint_not_found, unknown_operation
from tritonstack_local.runtime.fleet import Fleet, FleetParts
from tritonstack_local.runtime.invocation import Done
from tritonstack_local.runtime.publisher import Publisher
from tritonstack_local.runtime.reconcile import Reconciler
from tritonstack_local.runtime.settings import RuntimeSettings
from tritonstack_local.runtime.status import runtime_status

ENDPOINTS = b"/endpoints/"
INVOCATIONS = b"/invocations"
LAST_REQUESTS_SECONDS = 2.0
logger = logging.getLogger("tritonstack.runtime")


@dataclass(frozen=True, kw_only=True)
class Services:
    """What the runtime works with; tests put their own in."""

    reader: Reader
    parts: FleetParts
    cloudwatch: Any
    logs: Any


class Runtime:
    """InvokeEndpoint for everything that is deployed."""

    def __init__(self, *, settings: RuntimeSettings, services: Services) -> None:
        """Starts nothing yet."""
        self.settings = settings
        self.publisher = Publisher(settings=settings, cloudwatch=services.cloudwatch, logs=services.logs)
        self.reconciler = Reconciler(reader=services.reader, settings=settings, new_fleet=self._new_fleet)
        self._parts = services.parts
        self._server = Server(
            handle=self.handle,
            handle_at_once=self.handle_at_once,
            refused=self.refused,
            max_payload_bytes=settings.max_payload_bytes,
            log=logger.error,
        )
        self._background: list[asyncio.Task[None]] = []

    def _new_fleet(self, endpoint: str, config: DeployedConfig, max_models: int | None) -> Fleet:
        fleet = Fleet(endpoint=endpoint, config=config, parts=self._parts, max_models=max_models)
        fleet.before_removal = self.publisher.last_log
        self.publisher.add(fleet)
        return fleet

    async def handle(self, request: Request) -> Answer:
        """Answer one request. Raises InvokeError."""
        path, name = request.path, endpoint_in(request.method, request.path)
        if name is not None:
            endpoint = self.reconciler.endpoints.get(name)
            if endpoint is None:
                raise endpoint_not_found(endpoint=name, account=self.settings.account)
            return await endpoint.invoke(request, account=self.settings.account)
        if request.method == b"GET" and path == b"/_tritonstack/health":
            return Answer.of_json({"status": "ok"})
        if request.method == b"GET" and path == b"/_tritonstack/status":
            return Answer.of_json(runtime_status(self.reconciler))
        raise unknown_operation(path=path.decode("latin-1"))

    def handle_at_once(self, request: Request, done: Done) -> bool:
        """Begin to answer an ordinary invocation without a task; False where ``handle`` is to answer."""
        name = endpoint_in(request.method, request.path)
        endpoint = None if name is None else self.reconciler.endpoints.get(name)
        return endpoint is not None and endpoint.invoke_at_once(request, done)

    def refused(self, method: bytes, path: bytes, error: InvokeError) -> None:
        """Count a payload that was too large at the endpoint it was sent to."""
        name = endpoint_in(method, path)
        endpoint = None if name is None else self.reconciler.endpoints.get(name)
        if endpoint is not None:
            endpoint.refused(error)

    async def start(self) -> int:
        """Listen and follow what is deployed. Returns the port."""
        await asyncio.to_thread(shutil.rmtree, self.settings.state / "fleets", ignore_errors=True)
        self.settings.state.mkdir(parents=True, exist_ok=True)
        port = await self._server.start(port=self.settings.port)
        self._run(self.reconciler.run())
        self._run(self.publisher.ship_logs())
        self._run(self.publisher.send_metrics())
        logger.info("InvokeEndpoint on http://127.0.0.1:%d", port)
        return port

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        task.add_done_callback(_say_if_it_failed)
        self._background.append(task)

    async def stop(self) -> None:
        """Answer what is in flight, stop every fleet, send the last metrics."""
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self._server.stop(seconds=LAST_REQUESTS_SECONDS)
        await self.reconciler.stop()
        await self.publisher.flush()


def endpoint_in(method: bytes, path: bytes) -> str | None:
    """The name of the endpoint that a request invokes; None where it is no InvokeEndpoint."""
    if method != b"POST" or not path.startswith(ENDPOINTS) or not path.endswith(INVOCATIONS):
        return None
    return unquote_to_bytes(path[len(ENDPOINTS) : -len(INVOCATIONS)]).decode("latin-1")


def _say_if_it_failed(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        logger.critical("background work ended: %r", task.exception(), exc_info=task.exception())
