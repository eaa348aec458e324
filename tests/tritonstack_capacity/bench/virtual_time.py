"""An event loop whose clock does not move while code runs and jumps to the next timer when there is no other work."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")
Now = Callable[[], float]


class VirtualLoop(asyncio.SelectorEventLoop):
    """Seconds pass only where a timer is waited for."""

    def __init__(self) -> None:
        """At second 0."""
        self.seconds = 0.0
        super().__init__(_Selector(self))

    def time(self) -> float:
        """The loop's own seconds."""
        return self.seconds


class _Selector(selectors.SelectSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        assert timeout is not None, "everything waits for something that nobody does"
        self._loop.seconds += timeout
        return super().select(0)


def run(work: Callable[[Now], Awaitable[T]]) -> T:
    """Run a coroutine function that takes the clock."""
    loop = VirtualLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:

        async def main() -> T:
            return await work(loop.time)

        return runner.run(main())
