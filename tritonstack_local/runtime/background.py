"""Background tasks: each error is logged, and no task is left in a state that never ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

PAUSE_AFTER_ERROR_SECONDS = 1.0
logger = logging.getLogger("tritonstack.runtime")


def say_if_it_failed(task: asyncio.Future[Any]) -> None:
    """Log the failure of a task that is not awaited."""
    if not task.cancelled() and task.exception() is not None:
        logger.error("work in the background failed: %r", task.exception(), exc_info=task.exception())


class Tasks:
    """Tasks that are not awaited where they begin: held until they end, and their failures logged."""

    def __init__(self) -> None:
        """None yet."""
        self._running: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """How many have not ended."""
        return len(self._running)

    def start(self, work: Coroutine[Any, Any, None], *, name: str) -> None:
        """Begin ``work``."""
        task = asyncio.create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(say_if_it_failed)

    async def finish(self, *, cancel: bool = False) -> None:
        """Wait until all have ended, after ``cancel`` at once."""
        for task in list(self._running) if cancel else ():
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)


@dataclass
class ErrorLog:
    """Logs the errors of work that is done again and again: each once, until another one comes or it goes well."""

    what: str
    _last: str = ""

    def failed(self, error: Exception) -> None:
        """The work failed with ``error``; it will be tried again."""
        if repr(error) != self._last:
            logger.error("%s failed, and goes on: %r", self.what, error, exc_info=error)
        self._last = repr(error)

    def went_well(self) -> None:
        """The next error is logged, also where it is the same as the last one."""
        self._last = ""


async def repeat(step: Callable[[], Awaitable[float]], *, what: str) -> None:
    """Do ``step`` until cancelled, with a pause of the seconds that it returns; an error ends one step, not all."""
    errors = ErrorLog(what)
    while True:
        try:
            pause = await step()
            errors.went_well()
        except Exception as error:  # noqa: BLE001  (whatever it is, the next step may go well)
            errors.failed(error)
            pause = PAUSE_AFTER_ERROR_SECONDS
        await asyncio.sleep(pause)
