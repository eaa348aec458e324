"""InvokeEndpoint's HTTP application, and the runtime's status."""

from __future__ import annotations

import asyncio
import logging
import shutil
import time
from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

from tritonstack.loopback.http_server import HttpResponse, InvokeError, Request, Server
from tritonstack_local.keys import OWN_ROUTES, TOKEN_HEADER
from tritonstack_local.runtime.background import say_if_it_failed
from tritonstack_local.runtime.callers import Authority, Callers
from tritonstack_local.runtime.components import ComponentEndpoint
from tritonstack_local.runtime.deployed import DeployedConfig, EmulatorReader
from tritonstack_local.runtime.endpoint import Reconciler, RunningEndpoint
from tritonstack_local.runtime.errors import endpoint_not_found, shortened
from tritonstack_local.runtime.fleet import FleetParts, RunningFleet
from tritonstack_local.runtime.invocation import Done
from tritonstack_local.runtime.metrics import NOT_WRITTEN
from tritonstack_local.runtime.model_cache import CachedModel
from tritonstack_local.runtime.publisher import Publisher


def runtime_status(reconciler: Reconciler) -> dict[str, Any]:
    """Document of ``tritonstack local status``. Times are ISO 8601, durations seconds unless the name has a unit."""
    return {
        "local_aws": reconciler.unreachable or "answers",
        "metrics_not_written": NOT_WRITTEN,
        "endpoints": [_endpoint(endpoint) for _, endpoint in sorted(reconciler.endpoints.items())],
    }


def _endpoint(endpoint: RunningEndpoint | ComponentEndpoint) -> dict[str, Any]:
    described = endpoint.described
    return {
        "name": endpoint.name,
        "status": described.status,
        "endpoint_config": described.config,
        "pending_endpoint_config": described.pending,
        "last_failure": endpoint.last_failure,
        "fleets": [_fleet(fleet, share=endpoint.share(fleet)) for fleet in endpoint.fleets],
    }


def _fleet(fleet: RunningFleet, *, share: float) -> dict[str, Any]:
    container, model, metrics = fleet.container, fleet.config.model, fleet.metrics
    return {
        "endpoint_config": fleet.config.name,
        "variant": fleet.config.variant,
        "component": fleet.config.component,
        "instance_type": fleet.config.instance_type,
        "pooled": fleet.config.pooled,
        "state": fleet.condition,
        "serving": share > 0,
        "share": round(share, 4),
        "mode": "multi-model" if model.multi_model else "single-model",
        "model_data": str(model.data),
        "release_asked_for": fleet.release,
        "server_version": fleet.server_version,
        "isolation": container.isolation if container else None,
        "notes": list(container.notes) if container else [],
        "stand_ins": list(fleet.stand_ins),
        "pid": container.pid if container else None,
        "restarts": fleet.restarts,
        "log": str(container.log_path) if container else None,
        "max_loaded_models": fleet.models.limit,
        "in_flight": fleet.in_flight,
        "requests": metrics.requests,
        "errors": metrics.errors,
        "loads": metrics.loads,
        "unloads": metrics.unloads,
        "hit_ratio": round(metrics.hits / metrics.lookups, 4) if metrics.lookups else None,
        "model_latency_ms": metrics.recent(),
        "last_errors": [{"at": _iso(at), "error": text} for at, text in fleet.last_errors],
        "models": [_model(one) for one in sorted(fleet.models.models.values(), key=lambda one: one.target)],
    }


def _model(model: CachedModel) -> dict[str, Any]:
    return {
        "target_model": model.target,
        "hash": model.hash,
        "state": model.state.value,
        "in_flight": model.in_flight,
        "loads": model.loads,
        "hits": model.hits,
        "last_used": _iso(time.time() - (time.monotonic() - model.last_used)),
    }


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=UTC).isoformat(timespec="milliseconds")


ENDPOINTS = b"/endpoints/"
INVOCATIONS = b"/invocations"
STREAMED_INVOCATIONS = b"/invocations-response-stream"
LAST_REQUESTS_SECONDS = 2.0
logger = logging.getLogger("tritonstack.runtime")


class Runtime:
    """InvokeEndpoint for everything that is deployed."""

    def __init__(
        self,
        *,
        parts: FleetParts,
        reader: EmulatorReader,
        cloudwatch: Any,
        logs: Callable[[str], Any],
        authority: Authority,
    ) -> None:
        """Starts nothing yet. ``cloudwatch`` is a boto3 client, ``logs`` makes one of an execution role."""
        self._parts, settings = parts, parts.settings
        self.settings = settings
        self.publisher = Publisher(settings=settings, cloudwatch=cloudwatch, logs=logs)
        self.reconciler = Reconciler(
            reader=reader, settings=settings, new_fleet=self._new_fleet, no_capacity=self.publisher.no_capacity
        )
        self._callers = Callers(authority, tags_of=self._tags_of)
        self._server = Server(
            handle=self.handle,
            handle_at_once=self.handle_at_once,
            refused=self.refused,
            max_payload_bytes=settings.max_payload_bytes,
            log=logger.error,
        )
        self._background: list[asyncio.Task[None]] = []

    def _new_fleet(self, endpoint: str, config: DeployedConfig, max_models: int | None) -> RunningFleet:
        fleet = RunningFleet(endpoint=endpoint, config=config, parts=self._parts, max_models=max_models)
        fleet.before_removal = self.publisher.last_log
        self.publisher.add(fleet)
        return fleet

    def _tags_of(self, name: str) -> Mapping[str, str]:
        endpoint = self.reconciler.endpoints.get(name)
        return {} if endpoint is None else endpoint.described.tags

    async def handle(self, request: Request) -> HttpResponse:
        path, call = request.path, invocation_in(request.method, request.path)
        if call is not None:
            await self._callers.check(request, call.endpoint, streamed=call.streamed)
            endpoint = self.reconciler.endpoints.get(call.endpoint)
            if endpoint is None:
                raise endpoint_not_found(endpoint=call.endpoint)
            return await endpoint.invoke(request, streamed=call.streamed)
        if path.startswith(OWN_ROUTES.encode()):
            token = request.headers.get(TOKEN_HEADER.encode())
            fault = self.settings.keys.token_fault(None if token is None else token.decode("latin-1"))
            if fault is not None:
                raise InvokeError("AccessDeniedException", 403, f"The request is refused: {fault}.")
            if request.method == b"GET" and path == b"/_tritonstack/health":
                return HttpResponse.of_json({"status": "ok"})
            if request.method == b"GET" and path == b"/_tritonstack/status":
                return HttpResponse.of_json(runtime_status(self.reconciler))
        found = shortened(path.decode("latin-1"))
        sentence = f"The local runtime implements InvokeEndpoint and InvokeEndpointWithResponseStream, not {found}."
        raise InvokeError("UnknownOperationException", 404, sentence)

    def handle_at_once(self, request: Request, done: Done) -> bool:
        """Begin an ordinary invocation without a task; False where ``handle`` is to respond."""
        call = invocation_in(request.method, request.path)
        endpoint = None if call is None or call.streamed else self.reconciler.endpoints.get(call.endpoint)
        if call is None or endpoint is None:
            return False
        return self._callers.allowed_at_once(request, call.endpoint) and endpoint.invoke_at_once(request, done)

    def refused(self, method: bytes, path: bytes, error: InvokeError) -> None:
        """Count a payload that was too large at the endpoint it was sent to."""
        call = invocation_in(method, path)
        endpoint = None if call is None else self.reconciler.endpoints.get(call.endpoint)
        if endpoint is not None:
            endpoint.refused(error)

    async def start(self) -> int:
        """Listen and follow deployments. Returns the port."""
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
        task.add_done_callback(say_if_it_failed)
        self._background.append(task)

    async def stop(self) -> None:
        """Respond to requests in flight, stop every fleet, send the last metrics."""
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self._server.stop(seconds=LAST_REQUESTS_SECONDS)
        self._callers.stop()
        await self.reconciler.stop()
        await self.publisher.flush()


class Invocation(NamedTuple):
    """What a request invokes, and by which operation."""

    endpoint: str
    streamed: bool  # InvokeEndpointWithResponseStream


def invocation_in(method: bytes, path: bytes) -> Invocation | None:
    """The endpoint that a request invokes; None where it is neither operation."""
    path = path.partition(b"?")[0]  # a presigned request has its signature in the query
    if method != b"POST" or not path.startswith(ENDPOINTS):
        return None
    for ending, streamed in ((INVOCATIONS, False), (STREAMED_INVOCATIONS, True)):
        if path.endswith(ending):
            name = unquote_to_bytes(path[len(ENDPOINTS) : -len(ending)]).decode("latin-1")
            return Invocation(name, streamed)
    return None
