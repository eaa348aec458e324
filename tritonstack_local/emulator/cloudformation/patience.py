"""A short wait before CloudFormation answers that an operation has begun.

The CDK command line looks once at the stack when the answer is there, and then every five seconds. What ends within
the wait costs it no such pause.
"""

from __future__ import annotations

import asyncio
import urllib.parse
from typing import Any

import ministack.app
from ministack.services.cloudformation import _stacks

_STARTING = frozenset({"CreateStack", "UpdateStack", "DeleteStack", "ExecuteChangeSet", "ContinueUpdateRollback"})
_STEP_SECONDS = 0.01


def install(*, seconds: float) -> None:
    """Wrap MiniStack's CloudFormation; ``seconds`` bounds the wait, 0 means none."""
    handle = ministack.app.SERVICE_HANDLERS["cloudformation"]

    async def patient(method: str, path: str, headers: dict[str, str], body: bytes, query: Any) -> Any:
        answer = await handle(method, path, headers, body, query)
        if _action(body) in _STARTING:
            await _settled(seconds)
        return answer

    ministack.app.SERVICE_HANDLERS["cloudformation"] = patient


async def _settled(seconds: float) -> None:
    """Until no stack of the request's account and region is in progress."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while loop.time() < until and _in_progress():  # noqa: ASYNC110  MiniStack announces no change of a stack
        await asyncio.sleep(_STEP_SECONDS)


def _in_progress() -> bool:
    return any(stack["StackStatus"].endswith("_IN_PROGRESS") for stack in _stacks.values())


def _action(body: bytes) -> str:
    """The operation that a Query request names (a template in the body is not read)."""
    head = body[:200].decode(errors="replace")
    return urllib.parse.parse_qs(head).get("Action", [""])[0]
