"""InvokeEndpoint with retries."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
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
from botocore.exceptions import (
    ConnectionError as BotoConnectionError,
)

from tritonstack.client.body import Body
from tritonstack.client.errors import (
    CallPlace,
    EndpointUnavailableError,
    InvokeError,
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
    DOUBTFUL = "the model's server failed or did not answer in time"
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

THROTTLING_CODES = frozenset(
    {"Throttling", "ThrottlingException", "ThrottledException", "TooManyRequestsException", "RequestLimitExceeded"}
)
"""Errors that every AWS service may answer to too many calls, also with status 400 (botocore, retries/standard.py)."""

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
    try:
        return int(response.get("OriginalStatusCode") or 0)
    except (TypeError, ValueError):
        return 0


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """Limits of the retries of one request.

    Attributes:
        loading_seconds: retries while a model is loading. SageMaker's own limit for a load is 360 s.
        unavailable_retries: retries while the endpoint is not available.
        doubtful_retries: retries where the server failed in a way that may repeat.
        first_pause: seconds before the first retry; each later pause is twice as long, …
        longest_pause: … up to this. The actual pause is random, between half of it and all of it.
        total_seconds: no attempt starts after this long.
    """

    loading_seconds: float = 360.0
    unavailable_retries: int = 8
    doubtful_retries: int = 3
    first_pause: float = 0.25
    longest_pause: float = 8.0
    total_seconds: float = 420.0


NO_RETRIES = RetryPolicy(loading_seconds=0, unavailable_retries=0, doubtful_retries=0)
"""Every failure is final."""


@dataclass(frozen=True, kw_only=True)
class Clock:
    """Time and randomness, replaceable in tests."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random  # in [0, 1)


@dataclass
class RetryState:
    """The failures of one call so far."""

    policy: RetryPolicy
    clock: Clock
    started: float = field(init=False)
    attempts: int = 0
    counts: dict[FailureKind, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """The call begins now."""
        self.started = self.clock.now()

    def pause_after(self, kind: FailureKind) -> float | None:
        """Seconds to wait before the next attempt after a failure of this kind; None for no further attempt."""
        count = self.counts[kind] = self.counts.get(kind, 0) + 1
        passed = self.clock.now() - self.started
        if kind is FailureKind.FINAL or passed >= self.policy.total_seconds:
            return None
        if kind is FailureKind.LOADING and passed >= self.policy.loading_seconds:
            return None
        if kind is FailureKind.UNAVAILABLE and count > self.policy.unavailable_retries:
            return None
        if kind is FailureKind.DOUBTFUL and count > self.policy.doubtful_retries:
            return None
        whole = min(self.policy.longest_pause, self.policy.first_pause * 2.0 ** min(sum(self.counts.values()) - 1, 30))
        return whole * (0.5 + 0.5 * self.clock.chance())


log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Target:
    """An endpoint's SageMaker name and, in multi-model mode, an archive."""

    endpoint_name: str
    target_model: str | None


@dataclass(frozen=True, kw_only=True)
class Wait:
    """A pause before a retry."""

    target: Target
    attempt: int  # number of the failed attempt, from 1
    seconds: float  # of the pause
    kind: FailureKind
    message: str  # of the error


@dataclass(frozen=True, kw_only=True)
class RawAnswer:
    """A response without decoding: body, content type, production variant, milliseconds of the successful attempt."""

    content: bytes
    content_type: str
    variant: str
    milliseconds: float
    attempts: int


class EndpointCaller:
    """Calls endpoints through one boto3 ``sagemaker-runtime`` client. Thread safe, as that client is."""

    def __init__(
        self, runtime: Any, *, policy: RetryPolicy, clock: Clock, on_wait: Callable[[Wait], None] | None = None
    ) -> None:
        """``runtime``: a boto3 client whose own retries are off. ``on_wait`` is called at each pause."""
        self._runtime = runtime
        self._policy = policy
        self._clock = clock
        self._on_wait = on_wait

    def call(self, target: Target, body: Body) -> RawAnswer:
        """Send ``body`` until there is a response or a retry cannot help.

        Raises InvokeError: one of its subclasses, with botocore's error as its cause.
        """
        state = RetryState(policy=self._policy, clock=self._clock)
        while True:
            state.attempts += 1
            try:
                return self._once(target, body, attempts=state.attempts)
            except (ClientError, BotoCoreError) as error:
                kind = failure_kind(error)
                pause = state.pause_after(kind)
                if pause is None:
                    place = CallPlace(
                        endpoint_name=target.endpoint_name, target_model=target.target_model, attempts=state.attempts
                    )
                    raise final_error(error, kind=kind, place=place) from error
                self._wait(Wait(target=target, attempt=state.attempts, seconds=pause, kind=kind, message=str(error)))

    def _once(self, target: Target, body: Body, *, attempts: int) -> RawAnswer:
        started = self._clock.now()
        request = {
            "EndpointName": target.endpoint_name,
            "Body": body.content,
            "ContentType": body.content_type,
            **({"TargetModel": target.target_model} if target.target_model else {}),
        }
        response = self._runtime.invoke_endpoint(**request)
        content: bytes = response["Body"].read()
        return RawAnswer(
            content=content,
            content_type=response.get("ContentType", ""),
            variant=response.get("InvokedProductionVariant", ""),
            milliseconds=(self._clock.now() - started) * 1000,
            attempts=attempts,
        )

    def _wait(self, wait: Wait) -> None:
        log.info("%s: %s; trying again in %.2f s", wait.target.endpoint_name, wait.message, wait.seconds)
        if self._on_wait is not None:
            self._on_wait(wait)
        self._clock.sleep(wait.seconds)


def final_error(error: Exception, *, kind: FailureKind, place: CallPlace) -> InvokeError:
    """The InvokeError for botocore's last error."""
    if not isinstance(error, ClientError):
        if kind is FailureKind.FINAL:
            return RequestRefusedError(str(error), code=type(error).__name__, place=place)
        return EndpointUnavailableError(str(error), place=place)
    response: Any = error.response
    code = response.get("Error", {}).get("Code", "")
    message = response.get("Error", {}).get("Message", "") or str(error)
    if code == "ModelError":
        return ModelFailedError(
            place=place,
            status=original_status(response),
            container_message=response.get("OriginalMessage") or message,
            log_stream_arn=response.get("LogStreamArn") or "",
        )
    if kind is FailureKind.LOADING:
        return ModelNotReadyError(message, place=place)
    if kind is FailureKind.FINAL:
        return RequestRefusedError(message, code=code, place=place)
    return EndpointUnavailableError(f"{code}: {message}", place=place)
