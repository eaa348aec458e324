"""One model of a container: where it is in its life, and how requests reach it."""

from __future__ import annotations

import asyncio
import time
from enum import Enum

from tritonstack_local.runtime.model_store import model_hash

TARGET_MODEL = b"x-amzn-sagemaker-target-model"


def invoke_line(*, name_hash: str, target_model: str) -> bytes:
    """The beginning of a request to a loaded model (developer guide, mms-container-apis)."""
    return b"POST /models/%b/invoke HTTP/1.1\r\nhost: localhost\r\n%b: %b\r\n" % (
        name_hash.encode(),
        TARGET_MODEL,
        target_model.encode(),
    )


class ModelState(Enum):
    """Where a model is in its life."""

    LOADING = "loading"
    LOADED = "loaded"
    RETIRING = "retiring"
    UNLOADING = "unloading"


class CachedModel:
    """One TargetModel of a container. Times are monotonic seconds."""

    __slots__ = ("done", "hash", "hits", "in_flight", "last_used", "line", "loads", "resident", "state", "target")

    def __init__(self, target: str) -> None:
        """A model that is about to be loaded."""
        self.target = target
        self.hash = model_hash(target)
        self.line = invoke_line(name_hash=self.hash, target_model=target)
        self.state = ModelState.LOADING
        self.in_flight = 0
        self.last_used = time.monotonic()
        self.loads = 0
        self.hits = 0
        self.resident = False
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def idle(self) -> bool:
        """Whether it may be unloaded now."""
        return self.in_flight == 0 and self.state in (ModelState.LOADED, ModelState.RETIRING)

    @property
    def leaving(self) -> bool:
        """Whether it takes no new request until it is loaded anew."""
        return self.state in (ModelState.RETIRING, ModelState.UNLOADING)
