"""Faults that tests ask for: requests that AWS refuses, or answers late, updates that end in silence, no instances."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

from tritonstack_local.emulator.request_validation import RefusedError

_CODES = {403: "AccessDenied", 409: "ConditionalRequestConflict", 500: "InternalError", 503: "SlowDown"}
_OPERATION_CODES = {403: "AccessDeniedException", 500: "InternalFailure", 503: "ServiceUnavailable"}
_SOURCE = "a fault that was asked for at /_tritonstack/faults"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What becomes of requests, of an endpoint's update, or of new instances.

    Exactly one of ``path``, ``operation``, ``endpoint`` and ``instance_type`` selects them.
    """

    method: str = ""  # of the request (``PUT``)
    path: str = ""  # a part of its path (``/endpoints/``); S3's error is the answer
    # of a JSON service (``PutParameter``), called by a program or, of our own services, by CloudFormation
    operation: str = ""
    # its next update ends InService with the old config and without a FailureReason, once the new fleet is up:
    # SageMaker has rolled it back silently
    endpoint: str = ""
    instance_type: str = ""  # endpoints get no further instances of it (``ml.g5.xlarge``), ``short_of`` is the reason
    # ``limit``: the account's quota is used up, and the request is refused. ``capacity``: AWS has no instances, which
    # shows after the request
    short_of: str = ""
    # the answer, one of 403, 409 (of S3), 500, 503, or with a ``code`` 400 and any 409; None lets the request through
    # after the delay
    status: int | None = None
    # the error's code, where another than the status's own is meant: ``BucketNotEmpty``; ``ExpiredToken`` (S3) or
    # ``ExpiredTokenException`` (others) where the caller's credentials have ended
    code: str = ""
    times: int  # how many requests it befalls still
    delay_seconds: float = 0.0  # how long the answer takes

    def answer(self) -> tuple[int, bytes] | None:
        """The error, as S3's REST interface or a JSON service has it; None where there is none."""
        if self.status is None:
            return None
        message = f"{_SOURCE}: {self.method} {self.path}{self.operation}"
        if self.operation:
            code = self.code or _OPERATION_CODES[self.status]
            return self.status, json.dumps({"__type": code, "message": message}).encode()
        code = self.code or _CODES[self.status]
        return self.status, f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()


class Faults:
    """The faults that are still to come. Services ask from threads, the gateway from its loop."""

    def __init__(self) -> None:
        """There are none."""
        self._waiting: list[Fault] = []
        self._lock = Lock()

    def add(self, body: bytes) -> None:
        """A fault's fields as JSON; raises ValueError for what is no fault."""
        try:
            fields: Mapping[str, Any] = json.loads(body)
            fault = Fault(**fields)
        except TypeError as error:
            raise ValueError(str(error)) from error
        codes = _OPERATION_CODES if fault.operation else _CODES
        if fault.status is not None and fault.status not in codes and not fault.code:
            raise ValueError(f"status {fault.status} without a code: null or one of {', '.join(map(str, codes))}")
        if len([each for each in (fault.path, fault.operation, fault.endpoint, fault.instance_type) if each]) != 1:
            raise ValueError("one of path, operation, endpoint and instance_type")
        if fault.times < 1:
            raise ValueError("times from 1")
        with self._lock:
            self._waiting.append(fault)

    def clear(self) -> None:
        """Forget those that are still to come."""
        with self._lock:
            self._waiting.clear()

    def shown(self) -> list[dict[str, Any]]:
        """Those that are still to come."""
        with self._lock:
            return [dict(vars(fault)) for fault in self._waiting]

    async def befall(self, method: str, path: str, operation: str = "") -> tuple[int, bytes] | None:
        """The answer to a request in place of AWS's, after the fault's delay; None lets the request through."""
        fault = self._next(
            lambda one: (
                (one.path != "" and one.method == method and one.path in path)
                or (one.operation != "" and one.operation == operation)
            )
        )
        if fault is None:
            return None
        await asyncio.sleep(fault.delay_seconds)
        return fault.answer()

    def refuse(self, operation: str) -> None:
        """Raise RefusedError where a call of this operation inside the local AWS is to fail."""
        fault = self._next(lambda one: one.operation == operation and one.status is not None)
        if fault is not None and fault.status is not None:
            message = f"{_SOURCE}: {operation}"
            code = fault.code or _OPERATION_CODES[fault.status]
            raise RefusedError(code, message, source="tritonstack_local.emulator.faults")

    def silently_back(self, endpoint: str) -> bool:
        """Whether an update of this endpoint is to roll back silently."""
        return self._next(lambda one: one.endpoint == endpoint) is not None

    def short_of(self, instance_type: str, what: str) -> bool:
        """Whether new instances of a type are to be refused for want of ``what``."""
        return self._next(lambda one: (one.instance_type, one.short_of) == (instance_type, what)) is not None

    def _next(self, befalls: Callable[[Fault], bool]) -> Fault | None:
        """The first fault of these; it is counted."""
        with self._lock:
            for place, fault in enumerate(self._waiting):
                if befalls(fault):
                    left = replace(fault, times=fault.times - 1)
                    self._waiting[place : place + 1] = [left] if left.times else []
                    return fault
        return None
