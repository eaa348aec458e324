"""A stand-in for Triton behind SageMaker's front end: the same routes and statuses, and no inference.

The response to an invocation holds the model's name and the request's body. Events are recorded in order,
above all the unloading of a model while a request to it was in flight.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from pathlib import Path

from tritonstack.loopback.http_server import HttpResponse, Request, Server, StreamedResponse
from tritonstack_local.container import ContainerSettings, TritonContainer

EVENTS = b"text/event-stream; charset=utf-8"
GENERATED = "/v2/models/m/generate_stream"
TARGET_MODEL = b"x-amzn-sagemaker-target-model"


class FakeTriton:
    """What the container does; shared by all containers that one test starts.

    Attributes:
        capacity: models that fit; the next load gets 507. None: any number.
        failing: TargetModel → the status with which its load fails.
        held: TargetModel → an event for which its invocations wait.
        held_loads: TargetModel → an event for which its load waits.
        streamed: makes the parts of a single model's response, which then is a stream of events.
        ping_status: the status of /ping's response.
        pings: the number of requests to /ping.
        calls: ("load" | "unload" | "invoke", TargetModel) in the order of arrival.
        unloaded_in_flight: models that were unloaded while a request to them was in flight. Must stay empty.
    """

    def __init__(self) -> None:
        """Takes everything, in the running event loop."""
        self.loop = asyncio.get_running_loop()
        self.capacity: int | None = None
        self.failing: dict[str, int] = {}
        self.held: dict[str, asyncio.Event] = {}
        self.held_loads: dict[str, asyncio.Event] = {}
        self.statuses: dict[str, int] = {}
        self.streamed: Callable[[], AsyncIterator[bytes]] | None = None
        self.ping_status = 200
        self.pings = 0
        self.exits_at_start: list[int] = []
        self.calls: list[tuple[str, str]] = []
        self.headers: list[dict[bytes, bytes]] = []
        self.in_flight: dict[str, int] = {}
        self.unloaded_in_flight: list[str] = []
        self.largest = 0
        self.containers: list[FakeContainer] = []

    @property
    def loaded(self) -> dict[str, str]:
        """Hash → TargetModel in the newest container."""
        return self.containers[-1].loaded

    async def handle(self, container: FakeContainer, request: Request) -> HttpResponse:
        """One request to a container."""
        target = request.headers.get(TARGET_MODEL, b"").decode()
        parts = request.path.decode().strip("/").split("/")
        if parts == ["ping"]:
            self.pings += 1
            return HttpResponse(self.ping_status, {}, b"")
        if parts == ["models"]:
            return await self._load(container, target, json.loads(request.body))
        if request.path.decode() == container.single_model_path:
            return await self._invoke("invocations", request)
        if request.method == b"DELETE":
            return await self._unload(container, parts[1], target)
        if parts[1] not in container.loaded:
            return _error(404, f"{target} is not loaded")
        return await self._invoke(target, request)

    async def _load(self, container: FakeContainer, target: str, body: dict[str, str]) -> HttpResponse:
        self.calls.append(("load", target))
        if target in self.held_loads:
            await self.held_loads[target].wait()
        if target in self.failing:
            return _error(self.failing[target], f"{target} fails")
        if body["model_name"] in container.loaded:
            return _error(409, "already loaded")
        if not (Path(body["url"]) / "model.txt").is_file():
            return _error(400, f"nothing at {body['url']}")
        if self.capacity is not None and len(container.loaded) >= self.capacity:
            return _error(507, "CUDA out of memory")
        container.loaded[body["model_name"]] = target
        self.largest = max(self.largest, len(container.loaded))
        return HttpResponse(200, {}, b"")

    async def _unload(self, container: FakeContainer, name: str, target: str) -> HttpResponse:
        self.calls.append(("unload", target))
        if self.in_flight.get(target):
            self.unloaded_in_flight.append(target)
        if container.loaded.pop(name, None) is None:
            return _error(404, "not loaded")
        return HttpResponse(200, {}, b"")

    async def _invoke(self, target: str, request: Request) -> HttpResponse:
        self.calls.append(("invoke", target))
        self.headers.append(request.headers)
        if self.streamed is not None:
            return StreamedResponse(200, {b"content-type": EVENTS}, b"", self.streamed())
        self.in_flight[target] = self.in_flight.get(target, 0) + 1
        try:
            if target in self.held:
                await self.held[target].wait()
        finally:
            self.in_flight[target] -= 1
        if target in self.statuses:
            return _error(self.statuses[target], f"{target} answers {self.statuses[target]}")
        given = {b"content-type": b"application/json", b"x-amzn-sagemaker-custom-attributes": b"from=container"}
        return HttpResponse(200, given, json.dumps({"model": target, "body": request.body.decode()}).encode())

    def launch(self, settings: ContainerSettings, *, folder: Path) -> FakeContainer:
        """Start a container; called in a thread, as the real one is."""
        started = asyncio.run_coroutine_threadsafe(self._start(settings, folder), self.loop)
        return started.result(timeout=10)

    async def _start(self, settings: ContainerSettings, folder: Path) -> FakeContainer:
        container = FakeContainer(settings=settings, folder=folder, triton=self)
        await container.listen()
        self.containers.append(container)
        if self.exits_at_start:
            await container.die(self.exits_at_start.pop(0))
        return container

    def count(self, kind: str, target: str | None = None) -> int:
        """How many calls of a kind there were."""
        return sum(1 for one, name in self.calls if one == kind and target in (None, name))


class FakeContainer(TritonContainer):
    """One start of it."""

    pid = 2**22 + 1  # no process has this number
    server_version = "2.51.0"

    def __init__(self, *, settings: ContainerSettings, folder: Path, triton: FakeTriton) -> None:
        """Does not listen yet."""
        self.settings, self.folder = settings, folder
        self.isolation, self.notes = "namespace", ()
        self.port = 0
        self.hangs = False
        self.loaded: dict[str, str] = {}
        self.exited: Future[int] = Future()
        self.log_path = folder / "triton.log"
        self.log_path.write_text("the fake Triton says hello\n")
        self._server = Server(handle=self._handle, max_payload_bytes=1 << 26, log=print)
        self._triton = triton

    async def listen(self) -> None:
        """Listen on a free port of loopback."""
        self.port = await self._server.start(port=0)

    async def _handle(self, request: Request) -> HttpResponse:
        if self.hangs:
            await asyncio.Event().wait()
        return await self._triton.handle(self, request)

    def connect(self) -> socket.socket:
        """A connected socket."""
        if self.exited.done():
            raise ConnectionRefusedError("it has ended")
        return socket.create_connection(("127.0.0.1", self.port), timeout=5)

    connect_single_model = connect

    @property
    def single_model_path(self) -> str:
        """As the container of a model named ``m`` has it."""
        generates = self.settings.environment.get("SAGEMAKER_TRITON_INFERENCE_TYPE") == "generate_stream"
        return GENERATED if generates else "/invocations"

    def model_url(self, name_hash: str) -> str:
        """The folder itself: it shares the file system."""
        return str(self.folder / "models" / name_hash / "model")

    def log_tail(self, lines: int = 20) -> str:
        """The log."""
        return "\n".join(self.log_path.read_text().splitlines()[-lines:])

    async def die(self, code: int = 137) -> None:
        """End as a killed process does: every connection is gone at once."""
        if not self.exited.done():
            self.exited.set_result(code)
            await self._server.stop(seconds=0)
            for connection in list(self._server.connections):
                connection.close()

    def stop(self, *, seconds: float = 10.0) -> int:
        """End it; called in a thread."""
        asyncio.run_coroutine_threadsafe(self.die(0 if seconds else 137), self._triton.loop).result(timeout=10)
        return self.exited.result()


def _error(status: int, text: str) -> HttpResponse:
    return HttpResponse(status, {b"content-type": b"application/json"}, json.dumps({"error": text}).encode())
