"""InvokeEndpoint, tried again where that is safe and can help."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.client.body import Body
from tritonstack.client.errors import (
    CallPlace,
    EndpointUnavailableError,
    InvokeError,
    ModelFailedError,
    ModelNotReadyError,
    RequestRefusedError,
)
from tritonstack.client.retry import Clock, FailureKind, RetryPolicy, RetryState, failure_kind, original_status

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Target:
    """Who is called: an endpoint's SageMaker name and, in multi-model mode, an archive."""

    endpoint_name: str
    target_model: str | None


@dataclass(frozen=True, kw_only=True)
class Wait:
    """A pause before the next try.

    Attributes:
        target: who is called.
        attempt: the number of the try that failed, from 1.
        seconds: the pause's length.
        kind: why the next try can end differently.
        message: what was answered, or what went wrong.
    """

    target: Target
    attempt: int
    seconds: float
    kind: FailureKind
    message: str


@dataclass(frozen=True, kw_only=True)
class RawAnswer:
    """A response as it came: the body, its type, the production variant, milliseconds of the try that was answered."""

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
        """Takes the boto3 client, whose own retries must be off, and is told of each pause through ``on_wait``."""
        self._runtime = runtime
        self._policy = policy
        self._clock = clock
        self._on_wait = on_wait

    def call(self, target: Target, body: Body) -> RawAnswer:
        """Send ``body`` until it is answered or another try cannot help.

        Raises:
            InvokeError: one of its subclasses, with botocore's error as its cause.
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
    """Our error for botocore's last one."""
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
