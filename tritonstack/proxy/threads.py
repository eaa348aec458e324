"""A fixed number of threads for calls that block.

Not ``concurrent.futures.ThreadPoolExecutor``: the interpreter's end waits for its threads, and an invocation may take
over a minute. These end with the process.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Result = TypeVar("Result")
_Job = Callable[[], None]


class CallThreads:
    """``count`` threads. What is submitted beyond that waits for its turn."""

    def __init__(self, *, count: int, name: str) -> None:
        """Starts them."""
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        for number in range(count):
            threading.Thread(target=self._work, name=f"{name}-{number}", daemon=True).start()

    def submit(self, work: Callable[[], Result]) -> Future[Result]:
        """Have ``work`` done by the next free thread."""
        future: Future[Result] = Future()

        def job() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = work()
            except BaseException as error:  # noqa: BLE001  (it is raised where the future is waited for)
                future.set_exception(error)
            else:
                future.set_result(result)

        self._jobs.put(job)
        return future

    def _work(self) -> None:
        while True:
            self._jobs.get()()
