"""An instance's model cache: models loaded on request, evicted by least recent use when memory is short."""

from __future__ import annotations

import asyncio
import bisect
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter

from tritonstack import aws_names
from tritonstack.aws.sagemaker_rules import (
    INSUFFICIENT_STORAGE,
    ModelState,
    is_idle,
    is_leaving,
    model_to_evict,
    model_to_retire,
    unloads_when_idle,
)
from tritonstack.loopback.http_server import HttpResponse, InvokeError, internal_failure
from tritonstack_local.runtime.background import say_if_it_failed
from tritonstack_local.runtime.errors import ContainerAddress, model_not_ready
from tritonstack_local.runtime.metrics import FleetMetrics
from tritonstack_local.runtime.model_store import DownloadCancelledError, ModelStore, model_hash
from tritonstack_local.runtime.pool import ContainerGoneError
from tritonstack_local.runtime.settings import RuntimeSettings

TARGET_MODEL = b"x-amzn-sagemaker-target-model"
logger = logging.getLogger("tritonstack.runtime")


def invoke_line(*, name_hash: str, target_model: str) -> bytes:
    """The beginning of a request to a loaded model (developer guide, mms-container-apis)."""
    return b"POST /models/%b/invoke HTTP/1.1\r\nhost: localhost\r\n%b: %b\r\n" % (
        name_hash.encode(),
        TARGET_MODEL,
        target_model.encode(),
    )


@dataclass(slots=True, eq=False)
class CachedModel:
    """One TargetModel of a container, which is about to be loaded. Times are monotonic seconds."""

    target: str
    hash: str = field(init=False)
    line: bytes = field(init=False)
    state: ModelState = ModelState.LOADING
    in_flight: int = 0
    last_used: float = field(default_factory=time.monotonic)
    loads: int = 0
    hits: int = 0
    resident: bool = False
    waiting_since: float | None = None  # for room, while no other model is idle
    done: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def __post_init__(self) -> None:
        self.hash = model_hash(self.target)
        self.line = invoke_line(name_hash=self.hash, target_model=self.target)


# A model with a request in flight, or one that a caller waits for, is never unloaded. A load takes its place when its
# turn comes, so that no model goes for one that only queues. Everything runs on the event loop; the only threads are
# the store's.
ALREADY_LOADED = 409


@dataclass(kw_only=True, eq=False)
class ModelCache:
    """The models of one container."""

    # these send requests to the container, and raise ContainerGoneError or TimeoutError
    load: Callable[[CachedModel], Awaitable[HttpResponse]]
    unload: Callable[[CachedModel], Awaitable[HttpResponse]]
    store: ModelStore
    settings: RuntimeSettings
    address: ContainerAddress
    events: FleetMetrics
    log: Callable[[str], None]
    limit: int | None = None  # the most models at once (None: until the container returns 507)
    cache_enabled: bool = True
    models: dict[str, CachedModel] = field(default_factory=dict)
    _resident: int = 0
    _history: dict[str, tuple[int, int]] = field(default_factory=dict)
    # for room, since when: the longest first
    _waiting: list[tuple[float, asyncio.Future[None]]] = field(default_factory=list)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _cancel: threading.Event = field(default_factory=threading.Event)
    _in_load_call: set[CachedModel] = field(default_factory=set)
    _wanting_room: int = 0

    def __post_init__(self) -> None:
        self._loads = asyncio.Semaphore(self.settings.max_parallel_loads)

    # The way of a request -------------------------------------------------------------------------------------------

    def claim_loaded(self, target: str) -> CachedModel | None:
        """The model with one more request in flight if it is loaded, else None. Give it back with ``release``."""
        model = self.models.get(target)
        if model is None or model.state is not ModelState.LOADED:
            return None
        model.in_flight += 1
        model.hits += 1
        return model

    async def claim(self, target: str, *, seconds: float) -> CachedModel:
        """The model with one more request in flight, once it is loaded.

        Raises InvokeError: it cannot be loaded, or is not ready within ``seconds`` (loading goes on).
        """
        try:
            async with asyncio.timeout(seconds):
                while True:
                    model = self.models.get(target)
                    if model is not None and is_leaving(model):
                        await asyncio.shield(model.done)
                        continue
                    if model is None:
                        model = self._begin(target)
                    model.in_flight += 1
                    try:
                        await asyncio.shield(model.done)
                    except BaseException:
                        self.release(model)
                        raise
                    return model
        except TimeoutError:
            raise model_not_ready(target_model=target) from None

    def release(self, model: CachedModel) -> None:
        """One request less in flight."""
        model.in_flight -= 1
        model.last_used = time.monotonic()
        if model.in_flight == 0:
            if unloads_when_idle(model, cache_enabled=self.cache_enabled):
                self._spawn(self._unload(model))
            elif self._waiting:
                self._wake()

    # Loading --------------------------------------------------------------------------------------------------------

    def _begin(self, target: str, *, fetched: bool = False) -> CachedModel:
        model = CachedModel(target)
        model.loads, model.hits = self._history.get(target, (0, 0))
        # One that fails after its callers gave up is logged where it fails, not by asyncio.
        model.done.add_done_callback(lambda done: done.cancelled() or done.exception())
        self.models[target] = model
        self._spawn(self._load(model, fetched=fetched))
        return model

    async def _load(self, model: CachedModel, *, fetched: bool) -> None:
        error: InvokeError | None = None
        try:
            async with asyncio.timeout(self.settings.load_seconds):
                if not fetched:
                    fetching = asyncio.to_thread(self.store.fetch_target, model.target, cancel=self._cancel)
                    self.events.duration(aws_names.MODEL_DOWNLOADING_TIME, await fetching)
                async with self._loads:
                    while self.limit is not None and self._resident >= self.limit:
                        await self._make_room(model)
                    self._resident += 1
                    model.resident = True
                    await self._load_into_container(model)
        except InvokeError as refused:
            error = refused
        except (TimeoutError, DownloadCancelledError):
            error = model_not_ready(target_model=model.target)
        except ContainerGoneError:
            error = self.address.no_answer()
        except OSError as failure:
            error = internal_failure(f"The model's files cannot be written: {failure}")
        except asyncio.CancelledError:
            self._forget(model)
            model.done.set_exception(model_not_ready(target_model=model.target))
            raise
        except Exception as fault:  # a model whose load ended so must not stay ``loading``: its callers wait for it
            logger.exception("%s: its load failed inside the local runtime", model.target)
            error = internal_failure(f"The load of {model.target} failed inside the local runtime: {fault!r}")
        if error is not None:
            await self._failed(model, error)
            return
        model.loads += 1
        model.state = ModelState.LOADED
        model.last_used = time.monotonic()
        model.done.set_result(None)
        self._wake()
        if model.in_flight == 0 and unloads_when_idle(model, cache_enabled=self.cache_enabled):  # every caller gave up
            self._spawn(self._unload(model))

    async def _load_into_container(self, model: CachedModel) -> None:
        while True:
            began = time.monotonic()
            self._in_load_call.add(model)
            try:
                answer = await self.load(model)
            finally:
                self._in_load_call.discard(model)
            if answer.status in (200, ALREADY_LOADED):
                self.events.duration(aws_names.MODEL_LOADING_TIME, time.monotonic() - began)
                return
            message = answer.body.decode(errors="replace")
            if answer.status != INSUFFICIENT_STORAGE or not self._others(model):
                raise self.address.model_error(status=answer.status, message=message)
            self.log(f"{model.target} does not fit (507), another model goes: {message[:200]}")
            await self._make_room(model)

    async def _failed(self, model: CachedModel, error: InvokeError) -> None:
        """Fail the waiting callers. The files go first, since the next caller starts again at once."""
        self.log(f"{model.target} did not load: {error}")
        try:
            await asyncio.to_thread(self.store.remove, model.target)
        finally:
            self._forget(model)
            model.done.set_exception(error)

    # Making room ----------------------------------------------------------------------------------------------------

    def _others(self, model: CachedModel) -> bool:
        """Whether anything else is there that could make room, now or soon.

        Another load that itself waits for room does not count, or two of them would wait for each other.
        """
        return any(
            other is not model and (other.state is not ModelState.LOADING or other in self._in_load_call)
            for other in self.models.values()
        )

    async def _make_room(self, newcomer: CachedModel) -> None:
        """Unload the least recently used idle model, or wait until something changed.

        Where as many models are being unloaded as loads need room, no further one is. The patience counts from the
        first attempt: a model whose next request arrives as its last one ends changes often and is never idle.
        """
        self._wanting_room += 1
        try:
            leaving = sum(model.state is ModelState.UNLOADING for model in self.models.values())
            victim = model_to_evict(self._oldest_first(besides=newcomer)) if leaving < self._wanting_room else None
            if victim is not None:
                self.log(f"{victim.target} is unloaded for {newcomer.target}")
                newcomer.waiting_since = None
                await self._unload(victim)
                return
            now = time.monotonic()
            newcomer.waiting_since = newcomer.waiting_since or now
            left = newcomer.waiting_since + self.settings.victim_patience_seconds - now
            if left <= 0 or not await self._changed(left, since=newcomer.waiting_since):
                if (chosen := model_to_retire(self._oldest_first())) is not None:
                    chosen.state = ModelState.RETIRING
                    chosen.done = asyncio.get_running_loop().create_future()
                newcomer.waiting_since = None
        finally:
            self._wanting_room -= 1

    def _oldest_first(self, *, besides: CachedModel | None = None) -> list[CachedModel]:
        """Models by their last use, without one."""
        return sorted((model for model in self.models.values() if model is not besides), key=attrgetter("last_used"))

    def evict_for(self, called: CachedModel) -> None:
        """An inference of ``called`` got 507: the least recently used other idle model goes, if none goes already."""
        others = self._oldest_first(besides=called)
        if any(is_leaving(model) for model in others):
            return
        victim = model_to_evict(others)
        if victim is not None:
            self.log(f"an inference of {called.target} got 507: {victim.target} is unloaded")
            self._spawn(self._unload(victim))

    async def _changed(self, seconds: float, *, since: float) -> bool:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # One that looked in vain keeps its place before those that came meanwhile.
        bisect.insort(self._waiting, (since, turn), key=itemgetter(0))
        try:
            async with asyncio.timeout(seconds):
                await turn
            return True
        except TimeoutError:
            return False

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for _, turn in waiting:
            if not turn.done():
                turn.set_result(None)

    async def _unload(self, model: CachedModel) -> None:
        """Unload an idle model and delete its files. Marked before the first await, so that no request slips in."""
        if not is_idle(model) or self.models.get(model.target) is not model:
            return
        if model.state is ModelState.LOADED:
            model.done = asyncio.get_running_loop().create_future()
        model.state = ModelState.UNLOADING
        began = time.monotonic()
        try:
            answer = await self.unload(model)
            if answer.status not in (200, 404):
                self.log(
                    f"{model.target}: unload returned {answer.status}: {answer.body.decode(errors='replace')[:500]}"
                )
        except (ContainerGoneError, TimeoutError) as error:
            self.log(f"{model.target}: unload failed: {error}")
        except Exception:  # neither this model nor the one that needs its place may wait for ever
            logger.exception("%s: its unload failed inside the local runtime", model.target)
        finally:
            self.events.duration(aws_names.MODEL_UNLOADING_TIME, time.monotonic() - began)
            try:
                await asyncio.shield(asyncio.to_thread(self.store.remove, model.target))
            finally:  # also where the load that wanted the place is given up meanwhile
                self._forget(model)
                if not model.done.done():
                    model.done.set_result(None)

    def _forget(self, model: CachedModel) -> None:
        if self.models.get(model.target) is model:
            del self.models[model.target]
            self._history[model.target] = (model.loads, model.hits)
        if model.resident:
            model.resident = False
            self._resident -= 1
        self._wake()

    # Life of the container ------------------------------------------------------------------------------------------

    def container_gone(self) -> list[str]:
        """The container ended: no model is loaded any more. Returns those that were, the most recently used first."""
        loaded = [model for model in self.models.values() if model.state in (ModelState.LOADED, ModelState.RETIRING)]
        loaded.sort(key=attrgetter("last_used"), reverse=True)
        for model in loaded:
            was_retiring = model.state is ModelState.RETIRING
            model.state = ModelState.UNLOADING
            self._forget(model)
            if was_retiring:
                model.done.set_result(None)
        return [model.target for model in loaded]

    def restore(self, targets: list[str]) -> None:
        """Load models again whose files are still there, in this order. Call it before the container is up again:
        callers then share these loads."""
        for target in targets:
            if target not in self.models:
                self._begin(target, fetched=True)

    async def close(self) -> None:
        """Cancel loads and unloads under way."""
        self._cancel.set()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def loaded_count(self) -> int:
        """Number of models in the container."""
        return self._resident

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(say_if_it_failed)
