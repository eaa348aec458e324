"""InvokeEndpoint with retries."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
    IncompleteReadError,
    ReadTimeoutError,
    SSLError,
)
from botocore.exceptions import ConnectionError as BotoConnectionError

from tritonstack.aws.session import THROTTLING_CODES, code_of
from tritonstack.client.body import Body
from tritonstack.client.errors import (
    EndpointUnavailableError,
    InvokeError,
    InvokeTarget,
    ModelFailedError,
    ModelNotReadyError,
    RequestRefusedError,
)

# An inference has no side effects, so any may be retried; the question is only whether a retry can succeed. botocore's
# own retries are off for InvokeEndpoint, so these are the only ones.


class FailureKind(Enum):
    """Whether a retry can succeed."""

    LOADING = "the model is being loaded"
    UNAVAILABLE = "the endpoint is not available"
    DOUBTFUL = "the model's server failed or did not respond in time"
    FINAL = "another try would end the same way"


MODEL_ERROR_KINDS = {
    # The container does not hold the model (any more): unloaded, or started anew between load and invoke.
    404: FailureKind.UNAVAILABLE,
    429: FailureKind.UNAVAILABLE,
    502: FailureKind.UNAVAILABLE,
    503: FailureKind.UNAVAILABLE,
    504: FailureKind.UNAVAILABLE,
    # Out of memory: SageMaker unloads unused models, so a later load may fit.
    507: FailureKind.UNAVAILABLE,
    # No status: no (whole) answer within the 60 s an invocation may take, or the container died under it. Few tries:
    # a request that kills the container kills it for every other caller too.
    0: FailureKind.DOUBTFUL,
    # A dying container's last response, or a fault of the model that repeats: a few retries show which.
    500: FailureKind.DOUBTFUL,
}
"""``OriginalStatusCode`` of a ModelError → what to make of it. All others (400, 501, …) are final: the request's."""

_CODES = {
    "ModelNotReadyException": FailureKind.LOADING,
    "InternalFailure": FailureKind.UNAVAILABLE,
    "ServiceUnavailable": FailureKind.UNAVAILABLE,
    "InternalDependencyException": FailureKind.UNAVAILABLE,
    **dict.fromkeys(sorted(THROTTLING_CODES), FailureKind.UNAVAILABLE),
}
_STATUSES = frozenset({429, 500, 502, 503, 504, 530})


def failure_kind(error: Exception) -> FailureKind:
    """The kind of a failed InvokeEndpoint call (botocore's errors; any other is final)."""
    if isinstance(error, ClientError):
        return _answered_kind(error.response)
    if isinstance(error, ReadTimeoutError):
        return FailureKind.DOUBTFUL
    if isinstance(error, SSLError):
        return FailureKind.FINAL
    if isinstance(error, (BotoConnectionError, HTTPClientError, IncompleteReadError)):
        return FailureKind.UNAVAILABLE
    return FailureKind.FINAL


def _answered_kind(response: Any) -> FailureKind:
    code = response.get("Error", {}).get("Code", "")
    if code == "ModelError":
        return MODEL_ERROR_KINDS.get(original_status(response), FailureKind.FINAL)
    if code in _CODES:
        return _CODES[code]
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return FailureKind.UNAVAILABLE if status in _STATUSES else FailureKind.FINAL


def original_status(response: Any) -> int:
    """The container's HTTP status in a ModelError, 0 where it gave none."""
    return int(response.get("OriginalStatusCode") or 0)


LOADING_SECONDS = 360.0
"""A model that loads is waited for this long: SageMaker's own limit for a load."""
RETRY_SECONDS = 420.0
"""No attempt starts after this long."""
RETRIES = {FailureKind.UNAVAILABLE: 8, FailureKind.DOUBTFUL: 3, FailureKind.FINAL: 0}
"""Kind of failure → retries of one request at most."""
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 8.0
"""Seconds before the first retry, and at most; each pause is twice the last one, and random from half of it."""


@dataclass(frozen=True, kw_only=True)
class Clock:
    """Time and randomness, replaceable in tests."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random  # in [0, 1)


def pause_after(failures: Sequence[FailureKind], *, passed: float, seconds: float, chance: float) -> float | None:
    """Seconds to wait before the next attempt; None for no further one.

    Args:
        failures: of the call so far, the newest last.
        passed: seconds since the call began.
        seconds: no attempt starts after this long.
        chance: random, in [0, 1).
    """
    kind = failures[-1]
    if passed >= seconds or (kind is FailureKind.LOADING and passed >= LOADING_SECONDS):
        return None
    if kind in RETRIES and failures.count(kind) > RETRIES[kind]:
        return None
    whole = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(len(failures) - 1, 30))
    return whole * (0.5 + 0.5 * chance)


log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Wait:
    """A pause before a retry."""

    attempt: int  # number of the failed attempt, from 1
    seconds: float  # of the pause
    kind: FailureKind
    message: str  # of the error


OnWait = Callable[[Wait], None]
"""Called at each pause before a retry, in the calling thread."""


@dataclass(frozen=True, kw_only=True)
class RawResponse:
    """A response without decoding."""

    content: bytes
    content_type: str
    variant: str  # the production variant that responded
    milliseconds: float  # of the successful attempt
    attempts: int


def call_endpoint(
    runtime: Any, target: InvokeTarget, body: Body, *, clock: Clock, retry_seconds: float, on_wait: OnWait | None
) -> RawResponse:
    """Send ``body`` until there is a response or a retry cannot help.

    ``runtime``: a boto3 ``sagemaker-runtime`` client whose own retries are off. Raises InvokeError: one of its
    subclasses, with botocore's error as its cause.
    """
    request = {"EndpointName": target.endpoint_name, "Body": body.content, "ContentType": body.content_type}
    if target.target_model:
        request["TargetModel"] = target.target_model
    if target.variant:
        request["TargetVariant"] = target.variant
    attempts = Attempts(clock=clock, retry_seconds=retry_seconds, on_wait=on_wait)
    while True:
        attempts.begin()
        try:
            response = runtime.invoke_endpoint(**request)
            return RawResponse(
                content=response["Body"].read(),
                content_type=response.get("ContentType", ""),
                variant=response.get("InvokedProductionVariant", ""),
                milliseconds=attempts.milliseconds(),
                attempts=attempts.number,
            )
        except (ClientError, BotoCoreError) as error:
            attempts.failed(error, kind=failure_kind(error), target=target)


class Attempts:
    """The attempts of one request, and the pauses between them."""

    def __init__(self, *, clock: Clock, retry_seconds: float, on_wait: OnWait | None) -> None:
        """The request begins now; ``retry_seconds`` and ``on_wait`` are those of ``ModelClient``."""
        self._clock, self._retry_seconds, self._on_wait = clock, retry_seconds, on_wait
        self._started = self._attempted = clock.now()
        self._failures: list[FailureKind] = []

    def begin(self) -> None:
        """An attempt begins."""
        self._attempted = self._clock.now()

    def milliseconds(self) -> float:
        """Since this attempt began."""
        return (self._clock.now() - self._attempted) * 1000

    @property
    def number(self) -> int:
        """Of this attempt, from 1."""
        return len(self._failures) + 1

    def failed(self, error: Exception, *, kind: FailureKind, target: InvokeTarget) -> None:
        """Pause before the next attempt. Raises InvokeError: there is none."""
        self._failures.append(kind)
        failures, clock = self._failures, self._clock
        passed = clock.now() - self._started
        pause = pause_after(failures, passed=passed, seconds=self._retry_seconds, chance=clock.chance())
        if pause is None:
            raise final_error(error, kind=kind, target=target, attempts=len(failures)) from error
        log.info("%s: %s; trying again in %.2f s", target.endpoint_name, error, pause)
        if self._on_wait is not None:
            self._on_wait(Wait(attempt=len(failures), seconds=pause, kind=kind, message=str(error)))
        clock.sleep(pause)


def failure_message(error: Exception) -> str:
    """AWS's message, else the error's own."""
    response: Any = error.response if isinstance(error, ClientError) else {}
    return response.get("Error", {}).get("Message") or str(error)


def final_error(error: Exception, *, kind: FailureKind, target: InvokeTarget, attempts: int) -> InvokeError:
    """The InvokeError for botocore's last error."""
    place = f"{target} after {attempts} attempts" if attempts > 1 else str(target)
    response: Any = error.response if isinstance(error, ClientError) else {}
    code, message = code_of(error), failure_message(error)
    if code == "ModelError":
        return ModelFailedError(
            place=place,
            status=original_status(response),
            # of a stream whose first response is an error, that is an event: "data: {…}", with a status of 400 or more
            container_message=str(response.get("OriginalMessage") or message).removeprefix("data: ").strip(),
            log_stream_arn=response.get("LogStreamArn") or "",
        )
    if kind is FailureKind.LOADING:
        return ModelNotReadyError(message, place=place)
    if kind is FailureKind.FINAL:
        return RequestRefusedError(message, code=code or type(error).__name__, place=place)
    return EndpointUnavailableError(f"{code}: {message}" if code else message, place=place)
