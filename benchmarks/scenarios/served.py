"""One model in one container of its own: unpacked, loaded, called once, as SageMaker's front end serves it."""

from __future__ import annotations

import contextlib
import http.client
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvloop

from benchmarks.scenarios.models import LIMITS, Maker, Model
from tritonstack.errors import WorkFailedError
from tritonstack.models.model_config import ConfigFile, merge_configs
from tritonstack.untrusted.unpacking import unpack
from tritonstack_capacity.bench.container import Counters, LocalContainer, entrance, read_counters
from tritonstack_capacity.bench.http_caller import HttpCaller, OpenSocket, ReadyRequest, http_caller
from tritonstack_local.container import ContainerSettings, TritonContainer, prepare_model_data
from tritonstack_local.container.repository import TritonFiles

TARGET_MODEL = "X-Amzn-SageMaker-Target-Model"
HASH = "0123456789abcdef"
RELEASE = "24.09"
METRICS_PORT = 8002
START_SECONDS, TIMEOUT_SECONDS = 60.0, 60.0


@dataclass(frozen=True, kw_only=True)
class Way:
    """How a model is served."""

    name: str  # in the table
    model: Maker  # makes it, in a folder for its files
    fragments: tuple[str, ...] = ()  # what is merged over its ``config.pbtxt``
    arguments: str = ""  # of the server, besides those of SageMaker's script
    files: TritonFiles | None = None  # where the server is installed; None: this repository's environments
    settings: ContainerSettings | None = None  # of another container than ``served`` starts


@dataclass(frozen=True, kw_only=True)
class ColdStart:
    """Seconds; ``first_call``: of the first call after the load."""

    unpack: float
    load: float
    first_call: float

    @property
    def whole(self) -> float:
        """Time from the archive on the disk to the first response."""
        return self.unpack + self.load + self.first_call


class Served:
    """A way's model, loaded; ``cold`` is how that went."""

    def __init__(self, way: Way, model: Model, container: TritonContainer, open_socket: OpenSocket) -> None:
        """Use ``served``."""
        self.name = way.name
        self._way = way
        self._model = model
        self._container = container
        self._open_socket = open_socket
        self._headers = {TARGET_MODEL: f"{model.name}.{HASH}.tar.gz"}
        self.cold = self._start_cold()

    def caller(self, users: int) -> contextlib.AbstractAsyncContextManager[HttpCaller]:
        """Sends the model's request, over so many connections."""
        body = self._model.body
        url = f"http://127.0.0.1:8080/models/{HASH}/invoke"
        headers = {"Content-Type": body.content_type, **self._headers}
        request = ReadyRequest(url=url, headers=headers, body=body.content)
        return http_caller(
            lambda: request, connections=users, timeout_seconds=TIMEOUT_SECONDS, open_socket=self._open_socket
        )

    def counters(self) -> Counters:
        """What Triton counted so far."""
        container = LocalContainer(
            open_socket=self._open_socket, port=8080, metrics_port=METRICS_PORT, server_version=None
        )
        return read_counters(container.metrics())

    def _start_cold(self) -> ColdStart:
        folder = self._container.model_folder(HASH)
        folder.parent.mkdir(parents=True)
        began = time.perf_counter()
        unpack(self._model.archive, folder, limits=LIMITS)
        unpacked = time.perf_counter()
        self._configure(folder)
        began_load = time.perf_counter()
        self._load()
        loaded = time.perf_counter()
        first_call = uvloop.run(self._first_call())
        return ColdStart(unpack=unpacked - began, load=loaded - began_load, first_call=first_call)

    def _configure(self, folder: Path) -> None:
        config = folder / self._model.name / "config.pbtxt"
        base = ConfigFile(file=str(config), text=config.read_text())
        fragments = [ConfigFile(file=self.name, text=text) for text in self._way.fragments]
        config.write_text(merge_configs(base, fragments))
        prepare_model_data(folder)

    def _load(self) -> None:
        connection = http.client.HTTPConnection("localhost")
        with contextlib.closing(connection):
            connection.sock = self._container.connect()
            body = json.dumps({"model_name": HASH, "url": self._container.model_url(HASH)})
            connection.request("POST", "/models", body, self._headers)
            response = connection.getresponse()
            text = response.read().decode()
        if response.status != 200:
            raise WorkFailedError(f"{self.name} was not loaded: {response.status} {text}\n{self._container.log_tail()}")

    async def _first_call(self) -> float:
        async with self.caller(1) as caller:
            began = time.perf_counter()
            failure = await caller()
            took = time.perf_counter() - began
        if failure is not None:
            raise WorkFailedError(f"{self.name}: {failure}")
        return took


@contextmanager
def served(way: Way, model: Model) -> Iterator[Served]:
    """A way's model loaded in a container of its own, and called once.

    Raises WorkFailedError: the container does not start or has no network of its own, the model is not loaded, or the
    call fails.
    """
    environment = {
        "SAGEMAKER_TRITON_LOG_VERBOSE": "false",
        "SAGEMAKER_TRITON_ALLOW_METRICS": "true",
        **({"SAGEMAKER_TRITON_ADDITIONAL_ARGS": way.arguments} if way.arguments else {}),
    }
    settings = way.settings or ContainerSettings(environment=environment, multi_model=True, release=RELEASE)
    with (
        tempfile.TemporaryDirectory(prefix="measurements-") as folder,
        TritonContainer.start(settings, folder=Path(folder) / "container", files=way.files) as container,
    ):
        if container.isolation != "namespace":
            raise WorkFailedError(f"containers side by side need networks of their own: {container.isolation}")
        container.wait_ready(START_SECONDS)
        with entrance(container.pid) as opened:
            yield Served(way, model, container, opened.open_socket)
        container.stop(seconds=0)  # nothing of it is needed, and unloading takes seconds
