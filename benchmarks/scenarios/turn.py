"""One turn of load: callers that call again as soon as they are answered, for so long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from tritonstack.errors import WorkFailedError

Ask = Callable[[], Awaitable[str | None]]
"""Makes one call. Gives None for a right answer, else in a few words what went wrong."""
WARM_UP_SECONDS, SECONDS = 0.5, 1.5


async def turn(
    ask: Ask,
    *,
    users: int,
    warm_up: float = WARM_UP_SECONDS,
    seconds: float = SECONDS,
    now: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """The latencies, in seconds, of the calls that began within so many seconds after the warm-up; at least one.

    All go on calling until the last of these is answered, so that none of them has the server more to itself than the
    others had.

    Raises:
        WorkFailedError: a call failed.
    """
    begin = now() + warm_up
    end = begin + seconds
    latencies: list[float] = []
    under_way = 0

    async def user() -> None:
        nonlocal under_way
        while now() < end or under_way or not latencies:
            sent = now()
            counts = sent >= begin and (sent < end or not latencies)
            under_way += counts
            failure = await ask()
            under_way -= counts
            if failure is not None:
                raise WorkFailedError(failure)
            if counts:
                latencies.append(now() - sent)

    async with asyncio.TaskGroup() as group:
        for _ in range(users):
            group.create_task(user())
    return latencies
