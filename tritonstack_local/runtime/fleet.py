"""A fleet: the instances of one production variant of an endpoint config, their start and end."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import itertools
import logging
import os
import shutil
import socket
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import psutil

from tritonstack import aws_names
from tritonstack.errors import TritonstackError
from tritonstack.loopback.http_server import HttpResponse, InvokeError
from tritonstack.naming import component_log_group, endpoint_log_group
from tritonstack.untrusted.unpacking import UnpackLimits
from tritonstack_local import NO_MODEL_DATA
from tritonstack_local.container import ContainerSettings, TritonContainer
from tritonstack_local.runtime.container import ContainerClient, prepare_for_here
from tritonstack_local.runtime.deployed import DeployedConfig, DeploymentError
from tritonstack_local.runtime.errors import ContainerAddress, ModelDataNotFoundError
from tritonstack_local.runtime.metrics import Dimensions, FleetMetrics
from tritonstack_local.runtime.model_cache import CachedModel, ModelCache
from tritonstack_local.runtime.model_store import ModelStore, S3Objects
from tritonstack_local.runtime.pool import ContainerGoneError
from tritonstack_local.runtime.settings import RuntimeSettings
from tritonstack_local.trtexec.launchers import release_of


class InstanceUsage:
    """Samples the processes of one container, whichever process it currently is. Call it in a thread."""

    def __init__(self, folder: Path, *, vcpus: int | None = None) -> None:
        """``folder`` lies on the file system whose use counts as DiskUtilization.

        ``vcpus``: those of the emulated instance type; None: as many as this machine has cores.
        """
        self._folder = folder
        cores = len(os.sched_getaffinity(0))
        self._vcpus_a_core = (vcpus or cores) / cores
        self._pid = 0
        self._cpu: dict[int, float] = {}
        self._at = 0.0

    def sample(self, pid: int) -> Mapping[str, float]:
        """CPUUtilization (0..100 x vCPUs, since the last sample), MemoryUtilization and DiskUtilization (0..100).

        CPUUtilization is missing from a process's first sample; the result is empty where it has ended.
        """
        try:
            root = psutil.Process(pid)
            family = [root, *root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return {}
        now = time.monotonic()
        cpu: dict[int, float] = {}
        resident = 0
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                times = process.cpu_times()
                cpu[process.pid] = times.user + times.system
                resident += process.memory_info().rss
        disk = shutil.disk_usage(self._folder)
        found = {
            aws_names.MEMORY_UTILIZATION: 100.0 * resident / psutil.virtual_memory().total,
            aws_names.DISK_UTILIZATION: 100.0 * disk.used / disk.total,
        }
        if pid == self._pid and now > self._at:
            spent = sum(max(used - self._cpu.get(number, 0.0), 0.0) for number, used in cpu.items())
            found[aws_names.CPU_UTILIZATION] = 100.0 * spent / (now - self._at) * self._vcpus_a_core
        self._pid, self._cpu, self._at = pid, cpu, now
        return found


FIRST_RESTART_SECONDS = 0.2
LONGEST_RESTART_SECONDS = 30.0
STEADY_SECONDS = 60.0
GRACE_SECONDS = 10.0
PING_EVERY_SECONDS = 0.05
_numbers = itertools.count(1)
logger = logging.getLogger("tritonstack.runtime")


class FleetState(Enum):
    """State of a fleet's life cycle."""

    STARTING = "starting"
    READY = "ready"
    RESTARTING = "restarting"
    STOPPED = "stopped"


@dataclass(frozen=True, kw_only=True)
class FleetParts:
    """Objects that every fleet is made with."""

    settings: RuntimeSettings
    objects: Callable[[str], S3Objects]  # an execution role → what it may read
    check_role: Callable[[str], None]  # raises DeploymentError, UnreachableError; blocks
    launch: Callable[..., TritonContainer] = TritonContainer.start
    prepare: Callable[[Path, str | None], None] = prepare_for_here


class RunningFleet:
    """The container, models and figures of one production variant."""

    def __init__(self, *, endpoint: str, config: DeployedConfig, parts: FleetParts, max_models: int | None) -> None:
        """Starts nothing yet. ``max_models`` limits the loaded models (None: until the container returns 507)."""
        self.endpoint = endpoint
        self.config = config
        self.state = FleetState.STARTING
        self.restarts = 0
        self.started_at = time.time()
        self.container: TritonContainer | None = None
        self.client: ContainerClient | None = None
        self.ready = asyncio.Event()
        self.refused_ping: int | None = None
        self.server_version: str | None = None
        self.stand_ins: dict[str, None] = {}
        self.last_errors: deque[tuple[float, str]] = deque(maxlen=20)
        self._parts = parts
        self._settings = parts.settings
        own = f"{config.name}.{next(_numbers)}"  # a config that is deployed again gets a folder and a log of its own
        self.instance_id = "i-" + hashlib.sha256(f"{endpoint}/{own}/{self.started_at}".encode()).hexdigest()[:17]
        self.folder = parts.settings.state / "fleets" / endpoint / (config.component or config.variant) / own
        self.address = _address(endpoint, config, self.instance_id)
        self.metrics = FleetMetrics(
            dimensions=Dimensions(
                endpoint=endpoint,
                variant=config.variant,
                config=config.name,
                component=config.component,
                instance_type=config.instance_type if config.pooled else "",
                instance=self.instance_id if config.enhanced_metrics else None,
            ),
            seconds=config.metrics_seconds,
        )
        self.store = ModelStore(
            objects=parts.objects(config.model.role),
            prefix=config.model.data,
            root=self.folder / "models",
            limits=UnpackLimits(max_bytes=parts.settings.max_unpacked_bytes, max_members=parts.settings.max_members),
            download_seconds=config.download_seconds,
            prepare=lambda folder: parts.prepare(folder, self.release),
        )
        self.models = ModelCache(
            load=self.load,
            unload=self.unload,
            store=self.store,
            settings=parts.settings,
            address=self.address,
            events=self.metrics,
            log=self.note,
            limit=max_models,
            cache_enabled=config.model.cache_enabled,
        )
        self.in_flight = 0
        self._drained: asyncio.Event | None = None
        self.invoke_seconds = parts.settings.invoke_seconds
        self.stream_seconds = parts.settings.stream_seconds
        self.variant_header = config.variant.encode()
        self.before_removal: Callable[[RunningFleet], Awaitable[None]] | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._give_up = threading.Event()

    def note(self, line: str) -> None:
        """A line for the runtime's log and, as one of the last errors, for its status."""
        logger.info("%s/%s: %s", self.endpoint, self.config.name, line)

    def stand_in(self, line: str) -> None:
        """The container's log names a stand-in."""
        if len(self.stand_ins) < 50:
            self.stand_ins[line] = None

    def failed(self, error: InvokeError) -> None:
        """An invocation failed: kept for the status."""
        self.last_errors.append((time.time(), f"{error.code} ({error.status}): {error.message[:300]}"))

    # The container's models -----------------------------------------------------------------------------------------

    async def load(self, model: CachedModel) -> HttpResponse:
        """Load a model into the container, once it is up."""
        client, container = await self._running()
        return await client.load(model, url=container.model_url(model.hash))

    async def unload(self, model: CachedModel) -> HttpResponse:
        """Unload a model from the container."""
        client, _ = await self._running()
        return await client.unload(model)

    async def _running(self) -> tuple[ContainerClient, TritonContainer]:
        while self.client is None or self.container is None or not self.ready.is_set():
            if self.state is FleetState.STOPPED:
                raise ContainerGoneError("the fleet is stopped")
            await self.ready.wait()
        return self.client, self.container

    # Life -----------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start the container and wait until it responds to /ping.

        Raises DeploymentError: it cannot start; with the last lines of its log. Raises UnreachableError.
        """
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        try:
            await asyncio.to_thread(self._parts.check_role, self.config.model.role)
            await self._fetch_single_model()
            container = await self._boot()
        except DeploymentError:
            await self.stop()
            raise
        self.state = FleetState.READY
        self._tasks = [
            asyncio.create_task(self._supervise(container), name=f"supervise {self.config.name}"),
            asyncio.create_task(self._watch_health(), name=f"health {self.config.name}"),
        ]

    @property
    def release(self) -> str | None:
        """The requested Triton release, by the image's tag."""
        return release_of(self.config.model.image)

    @property
    def _model_data(self) -> Path:
        return self.folder / "single" / "model"

    async def _fetch_single_model(self) -> None:
        model = self.config.model
        if model.multi_model:
            return
        try:
            await asyncio.to_thread(self.store.fetch, model.data, self._model_data, cancel=self._give_up)
        except ModelDataNotFoundError as error:
            raise DeploymentError(NO_MODEL_DATA.format(model.data)) from error
        except InvokeError as error:
            raise DeploymentError(error.message) from error

    async def _boot(self) -> TritonContainer:
        """One start of the container, up to its response to /ping."""
        model = self.config.model
        settings = ContainerSettings(
            environment=model.environment,
            multi_model=model.multi_model,
            release=self.release,
            model_data=None if model.multi_model else self._model_data,
        )
        container = await self._launch(settings)
        client = ContainerClient(
            open_sockets=lambda count: _connect(container.connect, count),
            open_single_model=lambda: _connect(container.connect_single_model, 1),
            single_model_path=container.single_model_path,
            settings=self._settings,
        )
        try:
            await self._await_ping(container, client)
            await client.open()
            self.server_version = await asyncio.to_thread(lambda: container.server_version)
        except ContainerGoneError as error:
            client.close()
            await asyncio.to_thread(container.stop)
            raise DeploymentError(f"The container ended as soon as it had responded to /ping: {error}") from error
        except BaseException:
            client.close()
            await asyncio.shield(asyncio.to_thread(container.stop))
            raise
        self.refused_ping = None
        self.container, self.client = container, client
        self.ready.set()
        return container

    async def _launch(self, settings: ContainerSettings) -> TritonContainer:
        launching = asyncio.ensure_future(asyncio.to_thread(self._parts.launch, settings, folder=self.folder))
        try:
            return await asyncio.shield(launching)
        except asyncio.CancelledError:  # the thread goes on; what it starts must not stay behind
            with contextlib.suppress(TritonstackError, OSError):
                container = await launching
                await asyncio.to_thread(container.stop)
            raise
        except (TritonstackError, OSError) as error:
            raise DeploymentError(f"The container could not be started: {error}") from error

    async def _await_ping(self, container: TritonContainer, client: ContainerClient) -> None:
        deadline = time.monotonic() + self.config.startup_seconds
        found = "no response"
        while time.monotonic() < deadline:
            if container.exited.done():
                raise DeploymentError(
                    f"The container ended with exit code {container.exited.result()} before it responded to /ping. "
                    f"{container.reason()}"
                )
            try:
                status = await client.ping()
                if status == 200:
                    return
                found = f"status {status}"
            except (ContainerGoneError, TimeoutError) as error:
                found = str(error)
            await asyncio.sleep(PING_EVERY_SECONDS)
        raise DeploymentError(
            f"The container did not pass the ping health check within {self.config.startup_seconds:.0f} s ({found}). "
            f"{container.reason()}"
        )

    async def _supervise(self, container: TritonContainer) -> None:
        """When the container ends, start it again, and its models in it."""
        pause, began = FIRST_RESTART_SECONDS, time.monotonic()
        while True:
            code = await asyncio.shield(asyncio.wrap_future(container.exited))  # see Enclosure.exited
            self._not_ready()
            self.restarts += 1
            lost = self.models.container_gone()  # before anything is awaited: no caller may find a model loaded
            self.models.restore(lost)
            if self.client is not None:
                self.client.close()
            await self._end_container(container)
            self.last_errors.append((time.time(), f"the container ended with exit code {code}; it is started again"))
            self.note(f"the container ended with exit code {code}; starting it again with {len(lost)} models")
            if time.monotonic() - began > STEADY_SECONDS:
                pause = FIRST_RESTART_SECONDS
            container = await self._boot_again(pause)
            pause, began = min(pause * 2, LONGEST_RESTART_SECONDS), time.monotonic()
            self.state = FleetState.READY

    def _not_ready(self) -> None:
        """No request and no load goes to the container from now on, until another one is up."""
        self.ready.clear()
        self.state = FleetState.RESTARTING

    async def _end_container(self, container: TritonContainer) -> None:
        """End a container, or its remains; an error must not keep another one from starting."""
        try:
            await asyncio.to_thread(container.stop)
        except Exception:
            logger.exception("%s/%s: its container could not be ended", self.endpoint, self.config.name)

    async def _boot_again(self, pause: float) -> TritonContainer:
        while True:
            await asyncio.sleep(pause)
            try:
                return await self._boot()
            except Exception as error:  # noqa: BLE001  (whatever it is, a fleet without a container is started again)
                pause = min(pause * 2, LONGEST_RESTART_SECONDS)
                reason = str(error) if isinstance(error, DeploymentError) else f"the local runtime failed: {error!r}"
                self.last_errors.append((time.time(), reason[:1000]))
                self.note(f"{reason} — trying again in {pause:.1f} s")

    async def _watch_health(self) -> None:
        """Watch /ping: without a response the container is ended, so that ``_supervise`` starts it again."""
        answered = time.monotonic()
        while True:
            await asyncio.sleep(self._settings.health_seconds)
            client, container = await self._running()
            try:
                self._judge(await client.ping())
                answered = time.monotonic()
            except Exception as error:  # noqa: BLE001  (whatever kept /ping from a response)
                if container.exited.done():
                    answered = time.monotonic()
                elif time.monotonic() - answered > self._settings.unhealthy_seconds:
                    seconds = self._settings.unhealthy_seconds
                    self.note(f"/ping unanswered for {seconds:.0f} s ({error}); the container is ended")
                    self._not_ready()  # its end takes seconds, in which nothing more may be sent to it
                    while not container.exited.done():
                        await self._end_container(container)
                        await asyncio.sleep(PING_EVERY_SECONDS)
                    answered = time.monotonic()

    def _judge(self, status: int) -> None:
        """Only 200 is healthy (developer guide, your-algorithms-inference-code). Anything else is logged once."""
        refused = None if status == 200 else status
        if refused != self.refused_ping:
            unhealthy = f"unhealthy: /ping returns {status}; it is not started again"
            self.note(f"the container is {unhealthy if refused is not None else 'healthy again'}")
        self.refused_ping = refused

    @property
    def condition(self) -> str:
        """Its state for the status: an unhealthy fleet is not ``ready``."""
        if self.state is FleetState.READY and self.refused_ping is not None:
            return f"unhealthy (/ping returns {self.refused_ping})"
        return self.state.value

    async def drain(self) -> None:
        """Wait until the requests in flight have ended, at most ``drain_seconds``."""
        self._drained = asyncio.Event()
        if self.in_flight:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._drained.wait(), self._settings.drain_seconds)

    def request_ended(self) -> None:
        """One request less in flight."""
        self.in_flight -= 1
        if self._drained is not None and self.in_flight == 0:
            self._drained.set()

    async def stop(self, *, grace_seconds: float = GRACE_SECONDS) -> None:
        """End the container and delete its files. Requests still in flight end with an error.

        Triton's own end takes seconds: it polls its models until they are idle. ``grace_seconds`` 0
        kills it at once.
        """
        self.state = FleetState.STOPPED
        self._give_up.set()
        async with AsyncExitStack() as ending:  # from the last to the first, whichever of them fails
            ending.push_async_callback(asyncio.to_thread, shutil.rmtree, self.folder, ignore_errors=True)
            if self.before_removal is not None:
                ending.push_async_callback(self.before_removal, self)
            if self.container is not None:
                ending.push_async_callback(asyncio.to_thread, self.container.stop, seconds=grace_seconds)
            ending.push_async_callback(self.models.close)
            if self.client is not None:
                ending.callback(self.client.close)
            ending.callback(self.ready.set)  # waiting requests get the error that there will be no container
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)


def _address(endpoint: str, config: DeployedConfig, instance_id: str) -> ContainerAddress:
    """Of a component a stream is named after the instance alone (UNVERIFIED)."""
    if config.component is not None:
        group = component_log_group(config.component)
        return ContainerAddress(endpoint=endpoint, log_group=group, log_stream=instance_id)
    stream = f"{config.variant}/{instance_id}"
    return ContainerAddress(endpoint=endpoint, log_group=endpoint_log_group(endpoint), log_stream=stream)


async def _connect(connect: Callable[[], socket.socket], count: int) -> list[socket.socket]:
    """Connected sockets, opened within a fraction of a millisecond. Raises OSError."""

    def connect_all() -> list[socket.socket]:
        connected: list[socket.socket] = []
        try:
            for _ in range(count):
                connected.append(connect())
                connected[-1].setblocking(False)
        except OSError:
            for one in connected:
                one.close()
            raise
        return connected

    return await asyncio.to_thread(connect_all)
