"""Faults that tests ask for: requests to a path that S3 answers with an error, or not for a while."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

LONGEST_DELAY = 60.0

_CODES = {403: "AccessDenied", 500: "InternalError", 503: "SlowDown"}


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What becomes of requests.

    Attributes:
        method: of the request (``PUT``).
        path: a part of its path (``/endpoints/``).
        status: the answer, one of 403, 500, 503; None lets the request through after the delay.
        times: how many requests it befalls still.
        delay_seconds: how long the answer takes.
    """

    method: str
    path: str
    status: int | None
    times: int
    delay_seconds: float = 0.0

    def answer(self) -> tuple[int, bytes] | None:
        """S3's error, as its REST interface has it; None where there is none."""
        if self.status is None:
            return None
        code = _CODES[self.status]
        message = f"a fault that was asked for at /_tritonstack/faults: {self.method} {self.path}"
        return self.status, f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()


class Faults:
    """The faults that are still to come."""

    def __init__(self) -> None:
        """There are none."""
        self._waiting: list[Fault] = []

    def add(self, body: bytes) -> None:
        """``{"method", "path", "status", "times", "delay_seconds"}``; raises ValueError for what is no fault."""
        try:
            told: Mapping[str, Any] = json.loads(body)
            fault = Fault(**told)
        except TypeError as error:
            raise ValueError(str(error)) from error
        if not (fault.status is None or fault.status in _CODES):
            raise ValueError(f"status {fault.status}: null or one of {', '.join(map(str, _CODES))}")
        if not (fault.times >= 1 and 0 <= fault.delay_seconds <= LONGEST_DELAY and fault.path):
            raise ValueError(f"times from 1, delay_seconds from 0 to {LONGEST_DELAY:g}, and a path")
        self._waiting.append(fault)

    def clear(self) -> None:
        """Forget those that are still to come."""
        self._waiting.clear()

    def shown(self) -> list[dict[str, Any]]:
        """Those that are still to come."""
        return [dict(vars(fault)) for fault in self._waiting]

    async def befall(self, method: str, path: str) -> tuple[int, bytes] | None:
        """The answer to a request in place of S3's, after the fault's delay; None lets the request through."""
        for place, fault in enumerate(self._waiting):
            if fault.method == method and fault.path in path:
                left = replace(fault, times=fault.times - 1)
                self._waiting[place : place + 1] = [left] if left.times else []
                await asyncio.sleep(fault.delay_seconds)
                return fault.answer()
        return None
